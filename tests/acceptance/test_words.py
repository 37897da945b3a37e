"""What people read in Slack is in the language of the app, whatever the agent kept of it in English."""

from dataclasses import replace

import pytest

from bot.texts import LANGUAGES
from bot.texts.words import FormWords, Plural, WhyWords
from tests.acceptance.scripts import NOTHING, ONLY_ASK
from tests.acceptance.stage import DEADLINE_SECONDS, Stage, staged
from tests.databases import Database

WAIT = {"timeout": DEADLINE_SECONDS}
EN = LANGUAGES["en"]


def bracketed(words: str | Plural) -> str | Plural:
    """The same words in a language whose sentences stand in brackets."""
    if isinstance(words, Plural):
        return Plural(one=f"[{words.one}]", other=f"[{words.other}]")
    return f"[{words}]"


@pytest.fixture(autouse=True)
def brackets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The app speaks that language where it says why, or what is wrong with a field."""
    why = WhyWords(**{name: bracketed(words) for name, words in vars(EN.why).items()})
    form = FormWords(**{name: bracketed(words) for name, words in vars(EN.form).items()})
    monkeypatch.setattr("bot.texts.LANGUAGES", {"en": replace(EN, why=why, form=form)})


async def edit(stage: Stage, payments: str) -> None:
    """Open the form of the edit, fill it in and send it."""
    await stage.marta.click(await stage.card("38 payments"), "Edit")
    await stage.sandbox.until(lambda: "Payments" in shown(stage), **WAIT)
    stage.marta.fill({"Payments": payments})
    await stage.marta.submit()


def shown(stage: Stage) -> str:
    """The text of the window on top, or nothing."""
    return stage.marta.read(stage.marta.view) if stage.marta.views else ""


async def test_what_is_wrong_with_an_edit_is_said_in_its_window_in_that_language(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        await edit(stage, "\n".join(map(str, range(501))))
        assert list(stage.marta.view.errors.values()) == ["[Give at most 500; there are 501]"]
        stage.marta.fill({"Payments": "pay_9999"})
        await stage.marta.submit()
        above = "nothing was changed: [there are no payments pay_9999"
        await stage.sandbox.until(lambda: above in shown(stage), **WAIT)


async def test_a_run_that_fails_says_why_in_that_language(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, NOTHING) as stage:
        stage.model.fail_next(401)
        asked = await stage.ask()
        await stage.said(asked, "I could not finish: [The model refused (401): ")
        await stage.said(asked, "[Set ANTHROPIC_API_KEY to a key that works.]")
        run = await stage.run()
        assert run.error is not None and "[" not in run.error
