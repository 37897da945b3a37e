"""`vistobueno` commands as processes of their own: what they print, and the code they end with."""

import asyncio
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext
from pathlib import Path

from bot.commands.root import MODULES

ROOT = Path(__file__).parents[2]
SECONDS = 60.0
SLACK = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_SIGNING_SECRET": "s"}
MODEL = {"ANTHROPIC_API_KEY": "test"}
EVERYTHING = {**SLACK, **MODEL}
NOWHERE = "postgresql://app:s3cret@127.0.0.1:1/shop"
"""Nothing listens there."""
COMMAND = (sys.executable, "-m", "bot.cli")


@dataclass(frozen=True)
class Ended:
    """What a command that has ended said."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The one line of an error that a person can mend; AssertionError for anything else."""
        assert "Traceback" not in self.err, self.err
        assert self.code == 1, self
        [line] = self.err.splitlines()
        said = line.removeprefix("vistobueno: ")
        assert said != line, line
        assert said.endswith((".", "?")), line
        return said


def clean(variables: Mapping[str, str]) -> dict[str, str]:
    """An environment with these variables and nothing of the test's own."""
    return {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **variables}


def vistobueno(*words: str, folder: str = str(ROOT), **variables: str) -> Ended:
    """Run a command to its end in an environment of its own.

    The process is forked from one that has loaded what the command is made of, which takes seconds.
    """
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload([*MODULES, "tests.acceptance.commands"])
    with tempfile.TemporaryDirectory() as said:
        return _ended(forks, Path(said), words, folder, clean(variables))


async def answered(*words: str, **variables: str) -> Ended:
    """The same, while what the command talks to runs in this loop."""
    return await asyncio.to_thread(lambda: vistobueno(*words, **variables))


def loaded_anew(*words: str, stdout: int = subprocess.PIPE, **variables: str) -> Ended:
    """Run a command as a shell does, from the start."""
    done = subprocess.run(
        [*COMMAND, *words],
        cwd=ROOT,
        env=clean(variables),
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return Ended(done.returncode, done.stdout or "", done.stderr)


def _ended(
    forks: ForkServerContext, said: Path, words: tuple[str, ...], folder: str, environ: dict[str, str]
) -> Ended:
    process = forks.Process(target=_become, args=(words, folder, environ, str(said)))
    process.start()
    process.join(SECONDS)
    if process.exitcode is None:
        process.kill()
        process.join()
    assert process.exitcode is not None
    return Ended(process.exitcode, (said / "out").read_text(), (said / "err").read_text())


def _become(words: tuple[str, ...], folder: str, environ: dict[str, str], said: str) -> None:
    """In the new process: be the command."""
    from bot.cli import main

    for number, name in ((1, "out"), (2, "err")):
        file = os.open(f"{said}/{name}", os.O_CREAT | os.O_WRONLY)
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(folder)
    sys.argv = ["vistobueno", *words]
    main()
