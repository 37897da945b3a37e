"""Why something did not go as it was asked: in the words of the reader's language, wherever it is shown."""

from collections.abc import Callable
from dataclasses import fields, replace
from string import Formatter
from typing import Any

import pytest

from agent.decide import Refused
from agent.why import PARTS, Code, Why, because, said
from bot.blocks.card import CardContext, card
from bot.blocks.notices import notice
from bot.blocks.status import moved_text
from bot.blocks.why import stored_why, why_text
from bot.replies import refused
from bot.texts import LANGUAGES, Texts, texts
from bot.texts.words import Plural, WhyWords
from store.records import Approval
from tests.unit.agent.reasons import one_of
from tests.unit.bot.rows import approval, approved, unknown
from tests.unit.bot.seen import accepted, read

EN = texts("en")
FOR_THE_LOG = {Code.DATABASE_FAULT: {"error"}}
"""Parts that a thread in Slack is not told."""


def marked(template: str | Plural) -> str | Plural:
    """The same sentence in a language whose sentences stand in brackets."""
    if isinstance(template, Plural):
        return Plural(one=f"[{template.one}]", other=f"[{template.other}]")
    return f"[{template}]"


BRACKETS = replace(EN, why=WhyWords(**{name: marked(words) for name, words in vars(EN.why).items()}))


def names(template: str | Plural) -> set[str]:
    """The placeholders of a sentence, which are the same in all its forms."""
    forms = [form for form in vars(template).values() if form] if isinstance(template, Plural) else [template]
    (found,) = {frozenset(name for _, name, _, _ in Formatter().parse(form) if name) for form in forms}
    return set(found)


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES.keys())
def test_every_reason_has_its_words_with_exactly_its_parts(language: Texts) -> None:
    assert {field.name for field in fields(language.why)} == set(Code)
    for code in Code:
        template = vars(language.why)[code]
        assert names(template) == PARTS[code] - FOR_THE_LOG.get(code, set()), code
        assert isinstance(template, Plural) == ("n" in PARTS[code]), code


@pytest.mark.parametrize("code", Code)
def test_a_reason_reads_in_english_as_it_is_kept(code: Code) -> None:
    if code not in FOR_THE_LOG:
        assert why_text(one_of(code), EN) == one_of(code).text


def test_numbers_are_written_and_counted_as_in_the_language() -> None:
    german = replace(EN, locale="de")
    assert why_text(because(Code.COUNTED_OF, done=1_200, total=2_000), german).endswith(
        "1.200 of 2.000 by then."
    )
    assert why_text(because(Code.TIMED_OUT, tool="pay", seconds=0.2), german).endswith("within 0,2 s.")
    once = because(Code.WORN_OUT, n=1, why=because(Code.LAST_WORKER_GONE))
    assert "broke off 1 time (the last" in why_text(once, EN)


def test_a_reason_in_another_and_those_after_it_are_in_the_language_too() -> None:
    why = because(Code.NO_ANSWER, n=8, why=because(Code.MODEL_CUT)).and_also(because(Code.SET_KEY))
    assert why_text(why, BRACKETS).count("[") == 3


def stored(why: Why) -> dict[str, Any]:
    """What is stored of a reason, with a text that nobody in Slack should read."""
    return {"text": "ENGLISH", "error": "ENGLISH", "why": why.to_json(), "moved": [], "done": None}


WHERE: dict[str, Callable[[dict[str, Any], Texts], str]] = {
    "failed": lambda outcome, texts: shown(approved("failed", outcome=outcome), texts),
    "unknown": lambda outcome, texts: shown(unknown(outcome=outcome), texts),
    "superseded": lambda outcome, texts: shown(approval("superseded", outcome=outcome), texts),
    "the answer to a click": lambda outcome, texts: read(
        accepted(
            refused(Refused("superseded", approval("superseded", outcome=outcome)), texts, user_id="U0ANA")
        )
    ),
    "the notice of a failed run": lambda data, texts: read(accepted(notice("run_failed", data, texts))),
}


def shown(row: Approval, texts: Texts) -> str:
    """What the card of a row says."""
    return read(accepted(card(row, CardContext(texts))))


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("code", Code)
def test_wherever_a_reason_is_shown_it_is_in_the_readers_language(where: str, code: Code) -> None:
    words = WHERE[where](stored(one_of(code)), BRACKETS)
    assert why_text(one_of(code), BRACKETS) in words
    assert "[" in words and "ENGLISH" not in words


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("why", [{}, {"why": None}, {"why": {"code": "new", "parts": {}, "more": []}}])
def test_what_only_another_release_can_say_is_shown_as_it_was_kept(where: str, why: dict[str, Any]) -> None:
    kept = {"text": "Words that were kept.", "error": "Words that were kept.", "moved": [], "done": None}
    assert "Words that were kept." in WHERE[where](kept | why, BRACKETS)


def test_nothing_is_said_where_nothing_was_kept() -> None:
    assert stored_why({"text": None}, EN) == ""


def test_what_moved_is_named_in_the_readers_language() -> None:
    foreign = replace(EN, outcome=replace(EN.outcome, count="Zahl", check="Prüfung", as_shown="wie gezeigt"))
    assert moved_text({"kind": "count", "name": "count", "was": 38, "is": 41}, foreign) == "Zahl: 38 → 41"
    named = {"kind": "fact", "name": "count", "was": 38, "is": 41}
    assert moved_text(named, foreign) == "count: 38 → 41", "a tool's own name for a fact"
    check = {"kind": "fact", "name": "check", "was": "as shown", "is": "The card is closed."}
    assert moved_text(check, foreign) == "check: as shown → The card is closed."
    told = check | {"why": said("The card is closed.").to_json()}
    assert moved_text(told, foreign) == "Prüfung: wie gezeigt → The card is closed."
