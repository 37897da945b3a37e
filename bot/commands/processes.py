"""The commands that run: dev, web, worker; and migrate."""

import os
import socket
from dataclasses import replace
from typing import Annotated

import typer

from agent.leases import LEASE_SECONDS
from bot.app import build
from bot.commands.output import RUNNING, complete, read_settings
from bot.commands.start import start
from bot.databases import migrate_named, own_or_named
from bot.process import Announce, listen, run
from bot.settings import DEFAULT_PORT, Settings

LOCAL, EVERYWHERE = "127.0.0.1", "0.0.0.0"  # a platform that sets PORT routes to the second
LeaseOption = Annotated[
    int,
    typer.Option(
        min=1,
        max=300,
        metavar="SECONDS",
        help="How long the work of a process that is gone is left to it before another one takes it up.",
    ),
]


def register(cli: typer.Typer) -> None:
    """Add the commands to `vistobueno`."""
    for command in (dev, migrate, web, worker, start):
        cli.command(rich_help_panel=RUNNING)(command)


def dev(lease: LeaseOption = int(LEASE_SECONDS)) -> None:
    """Run everything in one process, for trying it out: HTTP, worker, and the embedded PostgreSQL.

    Needs SLACK_BOT_TOKEN, SLACK_SIGNING_SECRET and ANTHROPIC_API_KEY; with SLACK_APP_TOKEN instead of the
    secret, Slack's requests come over Socket Mode. With DATABASE_URL set it uses that database instead.
    Migrates by itself. Listens on 127.0.0.1, PORT or 3000.
    """
    settings = read_settings()
    settings.require_slack("vistobueno dev")
    settings.require_requests("vistobueno dev")
    settings.require_model("vistobueno dev")
    complete(_dev(settings, lease))


def web(
    host: Annotated[
        str | None,
        typer.Option(
            help="Address to listen on, like 0.0.0.0; default: 127.0.0.1, or every address if PORT is set."
        ),
    ] = None,
) -> None:
    """Run what Slack talks to: events, buttons, commands, at /slack/events or over Socket Mode.

    Needs DATABASE_URL, SLACK_BOT_TOKEN and SLACK_SIGNING_SECRET, or SLACK_APP_TOKEN for Socket Mode. Listens
    on 127.0.0.1:3000; if a platform sets PORT, on that port of every address. Run as many as you like; in
    Socket Mode Slack connects no more than ten.
    """
    settings = read_settings()
    settings.require_database("vistobueno web")
    settings.require_slack("vistobueno web")
    settings.require_requests("vistobueno web")
    complete(_web(settings, host))


def worker(lease: LeaseOption = int(LEASE_SECONDS)) -> None:
    """Run what does the agent's work: model, tools, cards, deadlines.

    Needs DATABASE_URL, SLACK_BOT_TOKEN and ANTHROPIC_API_KEY. Run as many as you like.
    """
    settings = read_settings()
    settings.require_database("vistobueno worker")
    settings.require_slack("vistobueno worker")
    settings.require_model("vistobueno worker")
    complete(_worker(settings, lease))


def migrate() -> None:
    """Make or update the tables of the database; run it before each new version of web and worker.

    It works as the database's owner: DATABASE_OWNER_URL if that is set, else DATABASE_URL; both name the same
    database. Running it again changes nothing.
    """
    doubt = complete(migrate_named(read_settings()))
    if doubt is not None:
        typer.echo(f"vistobueno: {doubt}", err=True)
    typer.echo("the database is ready")


def listening_at(settings: Settings) -> tuple[str, int]:
    """The address and the port of `web`, where no `--host` is given."""
    return (LOCAL, DEFAULT_PORT) if settings.port is None else (EVERYWHERE, settings.port)


async def _dev(settings: Settings, lease: int) -> None:
    with listen(LOCAL, DEFAULT_PORT if settings.port is None else settings.port) as listening:
        async with own_or_named(settings) as urls:
            os.environ["DATABASE_URL"] = urls.app  # the tools are user code and look there
            app_settings = replace(settings, database_url=urls.app)
            async with build(app_settings, "vistobueno dev", lease=lease) as app:
                await run(app, listening=listening, work=True, announce=_announced(LOCAL, listening))


async def _web(settings: Settings, host: str | None) -> None:
    fallback, port = listening_at(settings)
    host = host or fallback
    with listen(host, port) as listening:
        async with build(settings, "vistobueno web") as app:
            await run(app, listening=listening, work=False, announce=_announced(host, listening))


def _announced(host: str, listening: socket.socket) -> Announce:
    port = listening.getsockname()[1]
    return lambda: typer.echo(f"listening on http://{host}:{port}", err=True)


async def _worker(settings: Settings, lease: int) -> None:
    async with build(settings, "vistobueno worker", serves=False, lease=lease) as app:
        await run(app, listening=None, work=True)
