"""The words: every language has every sentence, with the same placeholders."""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from babel import Locale

from bot.texts import LANGUAGES, Texts, texts
from bot.texts.words import Plural

BOT = Path(__file__).parents[3] / "bot"
SHOWING = ("blocks/*.py", "listeners/*.py", "faults.py", "fields.py", "forms.py", "lines.py", "replies.py")
"""What makes messages and windows; the rest of bot also speaks to operators, in logs and on the terminal."""

ONLY_IN_SOME = frozenset({"date_short_pretty", "date", "date_long", "time"})  # formats of Slack's date tokens


def sentences(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if is_dataclass(value) and not isinstance(value, Plural):
        for field in fields(value):
            yield from sentences(getattr(value, field.name), f"{path}.{field.name}".lstrip("."))
    elif isinstance(value, tuple):
        for part in value:
            yield f"{path}[{part.partition(':')[0]}]", part
    else:
        yield path, value


def placeholders(sentence: str | Plural) -> frozenset[str]:
    forms = [form for form in vars(sentence).values() if form] if isinstance(sentence, Plural) else [sentence]
    found = {name for form in forms for _, name, _, _ in Formatter().parse(form) if name}
    return frozenset(found - ONLY_IN_SOME)


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES.keys())
def test_no_sentence_is_empty_and_its_placeholders_are_those_of_english(language: Texts) -> None:
    english = dict(sentences(texts("en")))
    for path, sentence in sentences(language):
        if path == "locale":
            continue
        assert sentence if isinstance(sentence, Plural) else sentence.strip(), path
        assert placeholders(sentence) == placeholders(english[path]), path


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES.keys())
def test_titles_and_buttons_of_windows_fit(language: Texts) -> None:
    modal = language.modal
    for words in (
        modal.edit,
        modal.reject,
        modal.close,
        modal.cancel,
        modal.submit_edit,
        modal.submit_confirm,
    ):
        assert len(words) <= 24


def test_the_buttons_read_exactly_as_they_must() -> None:
    card = texts("en").card
    assert (card.approve, card.edit, card.reject) == ("Approve", "Edit", "Reject")
    assert texts("en").modal.submit_confirm == "Approve these changes"


def test_a_region_keeps_its_way_of_writing_and_an_unknown_language_is_english() -> None:
    assert texts("en-GB").locale == "en_GB"
    for unknown in ("xx", "", "tlh", "not a locale", "ja"):
        assert texts(unknown).locale == "en"


def test_a_plural_follows_the_rules_of_the_language() -> None:
    forms = Plural(one="{n} x", two="{n} a", few="{n} b", other="{n} c")
    assert [forms.of(n, "sl") for n in (1, 2, 3, 5)] == ["{n} x", "{n} a", "{n} b", "{n} c"]
    assert forms.of(0, "en") == "{n} c"


def test_a_form_that_a_language_needs_and_lacks_falls_back() -> None:
    assert Plural(one="a", other="b").of(3, "sl") == "b"
    assert Locale.parse("sl").plural_form(3) == "few"


def own_words(source: str) -> Iterator[str]:
    """The strings of a source that read like words of a sentence.

    Docstrings do not count, nor what an error or the log says: nobody in Slack reads these.
    """
    tree = ast.parse(source)
    unread = (ast.Raise, ast.Assert)
    skipped = [node for node in ast.walk(tree) if isinstance(node, unread) or _is_unread(node)]
    inside = {id(part) for node in skipped for part in ast.walk(node)}
    strings = (n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in inside)
    for text in strings:
        if isinstance(text, str) and re.search(r"[A-Za-z]{2}[,.:;]? [A-Za-z]{2}", text):
            yield text


def _is_unread(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Call) and ast.unparse(node.func).startswith("log.")


def test_what_makes_messages_and_windows_has_no_words_of_its_own() -> None:
    files = [path for pattern in SHOWING for path in BOT.glob(pattern)]
    assert len(files) > 30
    assert {path.name: found for path in files if (found := list(own_words(path.read_text("utf-8"))))} == {}


def test_words_in_a_source_are_found() -> None:
    source = 'def f(n):\n    """Some words."""\n    log.info("some words")\n    return f"{n} words more"\n'
    assert list(own_words(source)) == [" words more"]
