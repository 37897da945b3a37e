"""README.md and docs/ as tests read them: their blocks of code, their commands, and what those print."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELLS = {"console", "sh"}
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w.-]*\.(?:py|toml|env))(?:, next)?\n")
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
    """The files that a document asks its reader to save, by name; one that goes on later is put together."""
    found: dict[str, str] = {}
    for block in blocks(document):
        if block.file:
            found[block.file] = found.get(block.file, "") + block.text
    return found


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


def follow(
    told: list[Typed], folder: Path, environ: Mapping[str, str], *, fails: str | None = None
) -> list[str]:
    """Type the commands, one shell for all, in `folder`; AssertionError for one that prints something else.

    Only the command that `fails` names must end with 1, all others with 0. Returns what each printed, on
    stdout and stderr.
    """
    folder_with_commands(folder)
    lines = [line for one in told for line in (one.command, f'echo "$? {_END}"')]
    done = subprocess.run(
        ["/bin/sh", "-c", "exec 2>&1\n" + "\n".join(lines)],
        cwd=folder,
        env=with_commands(folder, environ),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    printed: list[str] = []
    for one, said in zip(told, done.stdout.split(f" {_END}\n"), strict=False):
        text, code = said[:-1], said[-1:]
        assert code == ("1" if one.command == fails else "0"), f"$ {one.command}\n{said}"
        assert not one.printed or one.pattern.fullmatch(text), f"$ {one.command}\n{text}"
        printed.append(text)
    assert len(printed) == len(told), done.stdout
    return printed


def folder_with_commands(folder: Path) -> None:
    """Put the commands `vistobueno` and `python` into the folder, as an activated .venv has them."""
    (folder / "bin").mkdir(exist_ok=True)
    for name, module in (("vistobueno", "-m bot.cli "), ("python", "")):
        command = folder / "bin" / name
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {module}"$@"\n', encoding="utf-8")
        command.chmod(0o755)


def with_commands(folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment in which those commands are found, and run what is in this project."""
    return {**environ, "PATH": f"{folder / 'bin'}:{environ['PATH']}", "PYTHONPATH": str(ROOT)}
