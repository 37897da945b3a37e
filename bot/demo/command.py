"""The command `vistobueno demo`: open the world and wait, or play the story unattended."""

import asyncio
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import typer

from bot.commands.output import TRYING, complete, read_settings
from bot.demo.keeper import Keeper, kept_running
from bot.demo.play import play
from bot.demo.scene import Scene
from bot.demo.world import SCRIPTED, World, open_world
from bot.process import stopped_by_signals
from bot.settings import Settings
from store.engine import Database

REFUND_SECONDS = 0.1  # of each: so that people see it count


def register(cli: typer.Typer) -> None:
    """Add the command to `vistobueno`."""
    cli.command(rich_help_panel=TRYING)(demo)


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
    until Ctrl-C. Each time it begins with an empty database of its own, so that two of them do not meet; with
    DATABASE_URL set it works in that database as it is, and makes only its shop anew, as its owner. So unset
    it if it names the database of a running demo.
    With --play it lives the whole story, of 38 refunds that became 41, and exits 0 only if every fact holds.
    """
    if as_json and not unattended:
        raise typer.BadParameter("--json is for --play")
    settings = read_settings(quiet=True)
    complete(play(settings, port=port, as_json=as_json) if unattended else _show(settings, port))


async def _show(settings: Settings, port: int) -> None:
    stop = asyncio.Event()
    opened = open_world(settings, port=port, pace=REFUND_SECONDS)
    async with opened as world, shown(world) as keeper:
        with stopped_by_signals(stop):
            for line in lines(world, settings):
                typer.echo(line)
            keeper.let_speak()
            await _first_of(stop, keeper)
    print("The demo is over.", file=sys.stderr)


@asynccontextmanager
async def shown(world: World) -> AsyncIterator[Keeper]:
    """The app kept running, and the world around it shown on the page."""
    changed = world.sandbox.workspace.changes.announce
    db = Database.open(world.urls.app, pool_size=2)
    try:
        async with kept_running(world, changed) as keeper:
            scene = Scene(world, keeper, db, changed)
            world.sandbox.surround(scene)
            try:
                yield keeper
            finally:
                await scene.close()
    finally:
        await db.close()


def lines(world: World, settings: Settings) -> list[str]:
    """What the terminal says once everything runs."""
    return [
        f"Open {world.sandbox.base_url}",
        "to be any of the people of the demo's local Slack: ask the bot as Leo, decide as Marta.",
        *_of_the_shop(world),
        f"The bot answers with {world.model}.",
        *_what_it_does_not_know(world, settings),
        *_where_it_is_kept(world, settings),
        "Ctrl-C ends the demo.",
    ]


def _of_the_shop(world: World) -> list[str]:
    """What there is to see; the shop's story only where the agent has the shop's tools."""
    if not world.has_shop:
        return ["Beside the Slack is the world: kill the app, make Slack slow."]
    return [
        "`make demo ARGS=--play` lives the whole story, unattended.",
        "Beside the Slack is the world: let payments fail overnight, kill the app, make Slack slow.",
    ]


def _what_it_does_not_know(world: World, settings: Settings) -> list[str]:
    """The scripted model has one story; a person's own tools need a real one."""
    if world.model != SCRIPTED or world.has_shop:
        return []
    return [
        f"The scripted model knows only the tools of the demo's shop, and not those of {settings.tools}: set "
        "ANTHROPIC_API_KEY to have yours used.",
    ]


def _where_it_is_kept(world: World, settings: Settings) -> list[str]:
    if settings.database_url is not None:
        return [
            "It works in the database that DATABASE_URL names: what is in it already counts too; only its "
            "shop is made anew.",
        ]
    program = Path(sys.executable).with_name("vistobueno")
    command = shlex.join([str(program) if program.exists() else "vistobueno", "approvals", "list"])
    return [
        "It begins with an empty database, which goes with it. To look at it from another terminal:",
        f"  DATABASE_URL={shlex.quote(world.urls.app)} {command}",
    ]


async def _first_of(stop: asyncio.Event, keeper: Keeper) -> None:
    """Return when the demo is to stop; raises DemoFailed when there is no app any more."""
    ended = asyncio.create_task(keeper.ended())
    waits = {asyncio.create_task(stop.wait()), ended}
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    if ended.done() and not stop.is_set():
        ended.result()  # raises
