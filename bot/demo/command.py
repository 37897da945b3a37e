"""The command `vistobueno demo`: open the world and wait, or play the story unattended."""

import asyncio
import sys
from typing import Annotated

import typer

from bot.commands.output import complete, read_settings
from bot.demo.child import Child, running
from bot.demo.errors import DemoFailed
from bot.demo.play import play
from bot.demo.world import open_world
from bot.process import stopped_by_signals
from bot.settings import Settings

REFUND_SECONDS = 0.1  # of each: so that people see it count


def demo(
    unattended: Annotated[
        bool, typer.Option("--play", help="Live the story unattended, in under a minute, then end.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --play: the last line is one JSON object.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the local Slack; 0: any free one.")
    ] = 0,
) -> None:
    """Start everything on this machine: database, app, a shop to look after, and a sandbox Slack.

    Needs no account and no key. Prints the one URL of its page, where you are any of its people, and runs
    until Ctrl-C.
    With --play it lives the whole story, of 38 refunds that became 41, and exits 0 only if every fact holds.
    """
    if as_json and not unattended:
        raise typer.BadParameter("--json is for --play")
    settings = read_settings(quiet=True)
    complete(play(settings, port=port, as_json=as_json) if unattended else _show(settings, port))


async def _show(settings: Settings, port: int) -> None:
    stop = asyncio.Event()
    opened = open_world(settings, port=port, own_database=False, pace=REFUND_SECONDS)
    async with opened as world, running(world.environ) as child:
        world.sandbox.connect(child.url)
        with stopped_by_signals(stop):
            typer.echo(f"Open {world.sandbox.base_url}")
            typer.echo(
                "to be any of the people of the demo's local Slack: ask the bot as Leo, decide as Marta."
            )
            typer.echo("`make demo ARGS=--play` lives the whole story, unattended.")
            typer.echo(f"The bot answers with {world.model}. Ctrl-C ends the demo.")
            await _first_of(stop, child)
        if not stop.is_set():
            raise DemoFailed("The app ended by itself: what it said is above.")
    print("The demo is over.", file=sys.stderr)


async def _first_of(stop: asyncio.Event, child: Child) -> None:
    """Return when the demo is to stop, or its app has ended by itself."""
    waits = {asyncio.create_task(stop.wait()), asyncio.create_task(child.ended())}
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
