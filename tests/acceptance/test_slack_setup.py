"""docs/slack-setup.md is followed, from its .env to the first approved call and the look at the record."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent.scripted import Script
from bot.doctor.scopes import BOT_SCOPES
from tests.acceptance.children import Child
from tests.acceptance.commands import clean
from tests.acceptance.scripts import NOTHING
from tests.acceptance.stage import APPROVALS, ROOT, Stage, staged
from tests.acceptance.test_documents import ASKS, MADE, README, saved
from tests.databases import Database
from tests.documents import Typed, blocks, files, folder_with_commands, follow, typed, with_commands

GUIDE = ROOT / "docs" / "slack-setup.md"
SECRET = "0123456789abcdef0123456789abcdef"
MENTION = "please delete the exports may.csv and june.csv"


def told(command: str) -> list[Typed]:
    """The commands of the guide's block that has this one."""
    found = [typed(block) for block in blocks(GUIDE) if block.language in {"console", "sh"}]
    [block] = [block for block in found if any(one.command == command for one in block)]
    return block


ENVIRONMENT, RULES, HEALTH = map(
    told, ("set -a; . ./.env; set +a", "vistobueno policy check", "vistobueno doctor")
)
RUNNING, RECORD = map(told, ("vistobueno dev", "vistobueno audit verify"))


def filled_in(values: Mapping[str, str]) -> str:
    """The guide's .env with what its reader puts in the place of each …"""
    lines = files(GUIDE)[".env"].splitlines()
    names = {line.partition("=")[0] for line in lines if line.endswith("…")}
    assert names == set(values)
    return "".join(
        f"{name}={values.get(name, value)}\n" if equals else f"{name}\n"
        for name, equals, value in (line.partition("=") for line in lines)
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What the guide's reader has: the first tool, its policy, and something to delete."""
    (tmp_path / "exports").mkdir()
    for name, text in MADE.items():
        (tmp_path / "exports" / name).write_text(text)
    return saved(README, tmp_path)


@asynccontextmanager
async def setting_up(
    database: Database, folder: Path, patch: pytest.MonkeyPatch, model: Script
) -> AsyncIterator[tuple[Stage, dict[str, str]]]:
    """Slack with the app installed and a model; and what is there besides the guide's .env, in `folder`."""
    async with staged(database, patch, model, processes=0) as stage:
        app = stage.sandbox.workspace.app
        app.scopes, stage.sandbox.slack.deliverer.signing_secret = set(BOT_SCOPES), SECRET
        given = {
            "SLACK_BOT_TOKEN": app.bot_token,
            "SLACK_SIGNING_SECRET": SECRET,
            "ANTHROPIC_API_KEY": "sk-test",
        }
        (folder / ".env").write_text(filled_in(given), encoding="utf-8")
        yield (
            stage,
            clean(
                {
                    "DATABASE_URL": database.url,
                    "DATABASE_OWNER_URL": database.owner_url,
                    "SLACK_API_URL": stage.sandbox.api_url,
                    "ANTHROPIC_BASE_URL": stage.model.server.url,
                    "PORT": "0",
                }
            ),
        )


@asynccontextmanager
async def running(folder: Path, environ: Mapping[str, str]) -> AsyncIterator[Child]:
    """The command of the guide that runs everything, with its .env."""
    folder_with_commands(folder)
    [run] = RUNNING
    lines = [*(one.command for one in ENVIRONMENT), f"exec {run.command}"]
    process = await asyncio.create_subprocess_exec(
        *("/bin/sh", "-c", "\n".join(lines)),
        cwd=folder,
        env=with_commands(folder, environ),
        stderr=asyncio.subprocess.PIPE,
    )
    started = Child(process)
    try:
        await started.listens()
        yield started
    finally:
        await started.kill()


async def test_the_guide_leads_from_its_env_to_the_first_approved_call(
    database: Database, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with setting_up(database, folder, monkeypatch, ASKS) as (stage, environ):
        async with running(folder, environ) as app:
            stage.sandbox.connect(app.url)
            asked = await stage.ask(MENTION)
            card = await stage.card("Delete 2 of the exports")
            assert len(os.listdir(folder / "exports")) == 2
            await stage.marta.click(card, "Approve")
            await stage.said(asked, "That is all.")
            assert os.listdir(folder / "exports") == []
            await stage.sandbox.until(lambda: stage.marta.buttons(card.ts) == [])
        await asyncio.to_thread(follow, [*ENVIRONMENT, *RECORD], folder, environ)


async def test_the_guides_checks_print_what_it_says(
    database: Database, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with setting_up(database, folder, monkeypatch, NOTHING) as (stage, environ):
        steps = [*ENVIRONMENT, *RULES, *HEALTH]
        await stage.sandbox.admin.kick(APPROVALS)
        await asyncio.to_thread(follow, steps, folder, environ, fails="vistobueno doctor")
        stage.sandbox.admin.invite(APPROVALS)
        [health] = HEALTH
        again = Typed(health.command, "")
        [_, said] = await asyncio.to_thread(follow, [*ENVIRONMENT, again], folder, environ)
        assert "failed" not in said
