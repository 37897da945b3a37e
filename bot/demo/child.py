"""The app as a process of its own, so that it can be killed like one."""

import asyncio
import json
import re
import signal
import sys
from collections.abc import Mapping

from bot.demo.errors import DemoFailed

START_SECONDS = 30.0
STOP_SECONDS = 12.0
FROM_OUTSIDE = frozenset(
    {0, 130, 143, *(-number for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP))}
)
"""Exit statuses of an app that somebody ended; it does not end without an error by itself."""
LISTENING = re.compile(rb"listening on (http://\S+)")


class Child:
    """A running `vistobueno dev`: where it listens, its process id, and how to end it."""

    def __init__(self, process: asyncio.subprocess.Process, *, held: bool = False) -> None:
        self._process = process
        self._held: list[str] | None = [] if held else None
        self.url = ""
        self.pid = process.pid
        self._said: list[str] = []
        self._listening = asyncio.Event()
        self._relaying = asyncio.create_task(self._relay(), name="demo child's stderr")

    @classmethod
    async def start(cls, environ: Mapping[str, str], *, held: bool = False) -> "Child":
        """Start one; it answers and is ready for work. Raises DemoFailed.

        `held`: what it says is kept until `let_speak`, or its end.
        """
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "bot.demo.app",
            env=dict(environ),
            stdin=asyncio.subprocess.PIPE,  # closed when this process ends, however it ends
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the demo, which then ends its child
        )
        child = cls(process, held=held)
        try:
            async with asyncio.timeout(START_SECONDS):
                await child._answers()
        except asyncio.CancelledError:
            await child.kill()
            raise
        except TimeoutError as error:
            await child.kill()
            raise DemoFailed(
                f"The app was not ready within {START_SECONDS:g} s.{child._last_words()}"
            ) from error
        return child

    def let_speak(self) -> None:
        """Pass on what was held, and from now on all it says, at once."""
        held, self._held = self._held or [], None
        for text in held:
            self._pass_on(text)

    async def kill(self) -> None:
        """End it as a power cut would."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await self._relaying

    async def stop(self) -> None:
        """Ask it to end, and end it if it does not."""
        if self._process.returncode is None:
            self._process.terminate()
            try:
                await asyncio.wait_for(self._process.wait(), STOP_SECONDS)
            except TimeoutError:
                self._process.kill()
        await self.kill()

    async def ended(self) -> bool:
        """Wait for its end; whether somebody ended it who did not go through this object."""
        code = await self._process.wait()
        await self._relaying
        return code in FROM_OUTSIDE

    def epitaph(self) -> str:
        """How it ended, and its last words, for a person."""
        return f"ended by itself, with exit status {self._process.returncode}.{self._last_words()}"

    async def _answers(self) -> None:
        ended = asyncio.create_task(self._process.wait())
        listening = asyncio.create_task(self._listening.wait())
        await asyncio.wait({ended, listening}, return_when=asyncio.FIRST_COMPLETED)
        if not self._listening.is_set():
            listening.cancel()
            await self._relaying
            raise DemoFailed(f"The app could not start.{self._last_words()}")
        ended.cancel()

    async def _relay(self) -> None:
        """Pass on what it says, and keep the last lines for an error."""
        assert self._process.stderr is not None
        async for line in self._process.stderr:
            found = LISTENING.search(line)
            if found:
                self.url = found[1].decode()
                self._listening.set()
                continue
            text = line.decode(errors="replace").rstrip()
            if _is_about_the_policy(text):
                continue
            self._said = [*self._said[-20:], text]
            self._pass_on(text)
        self.let_speak()

    def _pass_on(self, text: str) -> None:
        if self._held is not None:
            self._held.append(text)
        else:
            print(text, file=sys.stderr, flush=True)

    def _last_words(self) -> str:
        return f" It said: {self._said[-1]}" if self._said else ""


def _is_about_the_policy(text: str) -> bool:
    """Whether it is a warning of who may be left without anybody to decide: in a demo one is all of them."""
    try:
        line = json.loads(text)
    except ValueError:
        return False
    return isinstance(line, dict) and line.get("event") == "policy"
