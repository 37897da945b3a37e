"""What README.md and docs/ tell their reader to do is done here, word for word."""

import asyncio
import importlib
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from agent.scripted import call, expect_results, say, script, step
from tests.acceptance.commands import clean
from tests.acceptance.stage import DEADLINE_SECONDS, ROOT, Stage, eventually, staged
from tests.databases import Database
from tests.documents import (
    SHELLS,
    blocks,
    files,
    folder_with_commands,
    follow,
    typed,
    with_commands,
)
from tests.standins.model import scripted_server

README = ROOT / "README.md"
WRITING = ROOT / "docs" / "writing-a-tool.md"
MADE = {"may.csv": "1,2,3\n", "june.csv": "4,5,6\n"}
ASKS = script(
    step(call("delete_exports", {"names": sorted(MADE), "rationale": "They are from last year."})),
    step(say("That is all."), expect=expect_results(1)),
)


def saved(document: Path, folder: Path) -> Path:
    """A folder with the files that a document asks its reader to save."""
    for name, text in files(document).items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_the_commands_of_the_first_tool_print_what_the_readme_says(
    database: Database, tmp_path: Path
) -> None:
    told = [one for block in blocks(README) if block.language in SHELLS for one in typed(block)]
    first = [one for one in told if not one.command.startswith("make ")]
    assert [one.command.split()[:2] for one in first if one.printed] == [
        ["vistobueno", "policy"],
        ["vistobueno", "preview"],
    ]
    follow(first, saved(README, tmp_path), clean({"DATABASE_URL": database.url}))
    assert {path.name: path.read_text() for path in (tmp_path / "exports").iterdir()} == MADE


def test_the_tool_of_the_guide_is_previewed_and_tested_as_it_says(database: Database, tmp_path: Path) -> None:
    told = [one for block in blocks(WRITING) if block.language in SHELLS for one in typed(block)]
    assert len([one for one in told if one.printed]) == 4
    follow(told, saved(WRITING, tmp_path), clean({"DATABASE_URL": database.url}))


@pytest.fixture
def first_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the first tool, as the one the app works in."""
    (tmp_path / "exports").mkdir()
    for name, text in MADE.items():
        (tmp_path / "exports" / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_tools", raising=False)
    monkeypatch.chdir(tmp_path)
    return saved(README, tmp_path)


@pytest.mark.usefixtures("first_tool")
@pytest.mark.parametrize("names", [["may.csv"], [*MADE]])
def test_the_card_of_the_first_tool_is_right_for_one_and_for_several(names: list[str]) -> None:
    tools = importlib.import_module("my_tools")
    input = tools.DeleteExports(names=names)
    title = tools.show(input, tools.measure(input, None), None).title
    assert title == f"Delete {len(names)} of the exports"


async def asked(stage: Stage) -> str:
    """Leo asks; the words of the card that Marta gets."""
    await stage.ask("please delete the exports of may and june")
    return stage.marta.read(await stage.card())


async def test_the_first_tool_asks_and_does_what_was_approved(
    database: Database, monkeypatch: pytest.MonkeyPatch, first_tool: Path
) -> None:
    kept = shutil.copy(first_tool / "exports" / "may.csv", first_tool / "exports" / "july.csv")
    policy = first_tool / "my_policy.toml"
    async with staged(database, monkeypatch, ASKS, policy=policy, tools="my_tools:TOOLS") as stage:
        card = await asked(stage)
        assert "Delete 2 of the exports" in card
        assert sorted(path.name for path in (first_tool / "exports").iterdir()) == [
            *("july.csv", "june.csv", "may.csv")
        ]
        await stage.marta.click(await stage.card(), "Approve")
        await stage.said(stage.sandbox.channel("C0SUPPORT").messages[0], "That is all.")
        assert list((first_tool / "exports").iterdir()) == [Path(kept)]


async def test_the_first_tool_does_not_run_when_a_file_has_changed_since(
    database: Database, monkeypatch: pytest.MonkeyPatch, first_tool: Path
) -> None:
    policy = first_tool / "my_policy.toml"
    async with staged(database, monkeypatch, ASKS, policy=policy, tools="my_tools:TOOLS") as stage:
        await asked(stage)
        (first_tool / "exports" / "may.csv").write_text("1,2,3,4\n")
        card = await stage.card()
        await stage.marta.click(card, "Approve")
        await stage.shows(card, "The facts moved before it ran")
        assert sorted(path.name for path in (first_tool / "exports").iterdir()) == sorted(MADE)


@asynccontextmanager
async def demo(folder: Path, environ: dict[str, str]) -> AsyncIterator[str]:
    """`vistobueno demo` in a folder; the URL of its page."""
    folder_with_commands(folder)
    process = await asyncio.create_subprocess_exec(
        str(folder / "bin" / "vistobueno"),
        "demo",
        cwd=folder,
        env=with_commands(folder, environ),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(2 * DEADLINE_SECONDS):
            line = (await process.stdout.readline()).decode()
        assert line.startswith("Open http://127.0.0.1:"), line
        yield line.split()[1]
    finally:
        process.terminate()
        await process.communicate()


async def test_with_a_model_the_demo_offers_the_first_tool_on_its_page(
    database: Database, first_tool: Path
) -> None:
    async with scripted_server(ASKS) as model:
        environ = {
            "DATABASE_URL": database.url,
            "DATABASE_OWNER_URL": database.owner_url,
            "ANTHROPIC_API_KEY": "test",
            "ANTHROPIC_BASE_URL": model.url,
            "VISTOBUENO_TOOLS": "my_tools:TOOLS",
            "VISTOBUENO_POLICY": "my_policy.toml",
        }
        async with demo(first_tool, clean(environ)) as url, aiohttp.ClientSession() as http:
            asked = {"text": "@vistobueno please delete the exports of may and june"}
            said = await http.post(f"{url}/say?as=U0LEO&in=C0SUPPORT", data=asked, headers={"Origin": url})
            assert said.status == 200

            async def card() -> bool:
                async with http.get(f"{url}/?as=U0MARTA&in=C0APPROVALS") as page:
                    text = await page.text()
                return "Delete 2 of the exports" in text and ">Approve</button>" in text

            await eventually(card)
