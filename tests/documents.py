"""README.md and docs/ as tests read them: their blocks of code, their commands, and what those print."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SHELLS = {"console", "sh"}
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w.]+\.(?:py|toml))\n")
_VARIABLE = re.compile(r"[A-Z][A-Z_]*=.*")
_END = "--- end of a command ---"


@dataclass(frozen=True)
class Block:
    """A fenced block of code: its language, its text, and the line of the document it begins in."""

    language: str
    text: str
    line: int

    @property
    def file(self) -> str | None:
        """The name that its first line gives the file it is to be saved as."""
        named = _FILE.match(self.text)
        return named[1] if named else None


@dataclass(frozen=True)
class Typed:
    """A command as a reader types it, and what the document says it prints ("" where it does not say)."""

    command: str
    printed: str

    @property
    def pattern(self) -> re.Pattern[str]:
        """What the output must look like: … stands for anything, on a line of its own for any lines."""
        lines = [
            r"(?:.*\n)*?" if line == "…" else f"{re.escape(line).replace('…', '.*?')}\n"
            for line in self.printed.splitlines()
        ]
        return re.compile("".join(lines))


def blocks(document: Path) -> list[Block]:
    """Every fenced block of a document."""
    text = document.read_text(encoding="utf-8")
    return [
        Block(found[1], found[2], text[: found.start()].count("\n") + 1) for found in _FENCE.finditer(text)
    ]


def prose(document: Path) -> str:
    """A document without its fenced blocks."""
    return _FENCE.sub("", document.read_text(encoding="utf-8"))


def files(document: Path) -> dict[str, str]:
    """The files that a document asks its reader to save, by name."""
    return {block.file: block.text for block in blocks(document) if block.file}


def typed(block: Block) -> list[Typed]:
    """The commands of a block: in `console` after a dollar sign, with what they print; in `sh` every line."""
    text = block.text.replace("\\\n", "")
    if block.language == "sh":
        lines = (line.strip() for line in text.splitlines())
        return [Typed(line, "") for line in lines if line and not line.startswith("#")]
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    return [Typed(command, printed) for command, _, printed in (part.partition("\n") for part in parts)]


def commands(document: Path) -> Iterator[list[str]]:
    """The words of every command of vistobueno or make in a document, its blocks and its running text."""
    told = [told.command for block in blocks(document) if block.language in SHELLS for told in typed(block)]
    told += re.findall(r"`([^`\n]+)`", prose(document))
    for line in told:
        for part in re.split(r" && |; | \| ", line):
            yield from _command(part)


def _command(line: str) -> Iterator[list[str]]:
    try:
        words = shlex.split(line, comments=True)
    except ValueError:  # a lone quotation mark: no command
        return
    while words and (_VARIABLE.fullmatch(words[0]) or words[0] == "$"):
        words.pop(0)
    if words and words[0].removeprefix(".venv/bin/") in {"vistobueno", "make"}:
        yield [words[0].removeprefix(".venv/bin/"), *words[1:]]


def follow(told: list[Typed], folder: Path, environ: Mapping[str, str]) -> list[str]:
    """Type the commands, one shell for all, in `folder`; AssertionError for one that prints something else.

    Returns what each printed, on stdout and stderr.
    """
    (folder / "bin").mkdir(exist_ok=True)
    command = folder / "bin" / "vistobueno"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m bot.cli "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    lines = [line for one in told for line in (one.command, f"echo '{_END}'")]
    done = subprocess.run(
        ["/bin/sh", "-e", "-c", "exec 2>&1\n" + "\n".join(lines)],
        cwd=folder,
        env={**environ, "PATH": f"{folder / 'bin'}:{environ['PATH']}", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    printed = [part.removeprefix("\n") for part in done.stdout.split(_END)[:-1]]
    for one, said in zip(told, printed, strict=True):
        assert not one.printed or one.pattern.fullmatch(said), f"$ {one.command}\n{said}"
    return printed
