"""README.md and docs/ name only what there is: commands, options, variables, files, headings, words."""

import re
import tomllib
from pathlib import Path

import pytest
import typer

from bot.doctor.scopes import BOT_SCOPES
from tests.documents import DOCUMENTS, ROOT, Typed, blocks, commands, files, prose
from tests.unit.bot.test_help import COMMANDS, whole
from tests.unit.test_project_files import VARIABLES

WORDS = [
    "conversation",
    "run",
    "requester",
    "turn",
    "tool",
    "call",
    "item",
    "facts",
    "policy",
    "verdict",
    "tier",
    "preview",
    "precondition",
    "approval",
    "revision",
    "decision",
    "checkpoint",
    "claim",
    "lease",
    "attempt",
    "card",
    "escalation",
    "veto",
    "effect class",
    "audit event",
]
"""The words of the project, each with one meaning."""

README = ROOT / "README.md"
LONGEST_TOOL = 40  # lines, of the first one
SET_BY_OTHERS = {"ARGS", "PATH", "SHOP_PROVIDER_URL"}
EXTERNAL = re.compile(r"https?://|mailto:")
TARGETS = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)

every_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


def complaint(words: list[str]) -> str | None:
    """What is wrong with a command that a document tells its reader to type."""
    if words[0] == "make":
        targets = [word for word in words[1:] if "=" not in word]
        return None if set(targets) <= set(TARGETS) else f"no target: {' '.join(words)}"
    path: list[str] = []
    known: typer.core.TyperGroup | typer.core.TyperCommand = whole()
    while isinstance(known, typer.core.TyperGroup) and len(words) > len(path) + 1:
        word = words[len(path) + 1]
        if word not in known.commands:
            return None if word in {"--help", "COMMAND"} else f"no command: {' '.join(words)}"
        found = known.commands[word]
        assert isinstance(found, typer.core.TyperGroup | typer.core.TyperCommand)
        known = found
        path.append(word)
    if isinstance(known, typer.core.TyperGroup):
        return None  # a group named as such
    options = {option for parameter in COMMANDS[" ".join(path)].params for option in parameter.opts}
    wrong = [word for word in words if word.startswith("--") and word not in {*options, "--help"}]
    return f"{' '.join(path)} has no {wrong}" if wrong else None


@every_document
def test_every_command_and_option_of_a_document_exists(document: Path) -> None:
    assert [found for words in commands(document) if (found := complaint(words))] == []


def test_commands_that_do_not_exist_are_found() -> None:
    wrong = [
        ["vistobueno", "stats"],
        ["vistobueno", "runs", "delete"],
        ["vistobueno", "preview", "x", "--yes"],
        ["make", "coffee"],
    ]
    assert [words for words in wrong if complaint(words) is None] == []


@every_document
def test_every_variable_of_a_document_exists(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    named = set(re.findall(r"\b((?:VISTOBUENO|SLACK|ANTHROPIC|DATABASE)_[A-Z_]+|PORT|LOG_LEVEL)\b", text))
    named |= set(re.findall(r"(?:^|\s)([A-Z][A-Z_]+)=", text))
    assert named - {*VARIABLES, *SET_BY_OTHERS} == set()


def anchors(document: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a document."""
    headings = re.findall(r"^#+ (.*)$", prose(document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every_document
def test_every_link_leads_to_a_file_and_a_heading(document: Path) -> None:
    text = prose(document)
    links = [*re.findall(r"\]\(([^)\s]+)\)", text), *re.findall(r'src="([^"]+)"', text)]
    for link in links:
        if EXTERNAL.match(link):
            continue
        name, _, anchor = link.partition("#")
        target = document.parent / name if name else document
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@every_document
def test_every_path_of_the_project_that_a_document_names_exists(document: Path) -> None:
    paths = re.findall(r"`((?:bot|agent|store|tests|docs)/[\w./*-]*)`", document.read_text(encoding="utf-8"))
    assert [path for path in paths if not (ROOT / path).exists()] == []


@every_document
def test_blocks_of_code_can_be_read(document: Path) -> None:
    for block in blocks(document):
        assert block.language, f"line {block.line}: say what is in it, text if nothing else"
        if block.language == "python":
            compile(block.text, document.name, "exec")
        if block.language == "toml":
            tomllib.loads(block.text)


def test_the_glossary_has_every_word_of_the_project_in_its_order() -> None:
    assert re.findall(r"^\| \*\*(.+?)\*\* \| \S", prose(README), re.MULTILINE) == WORDS


def test_the_first_tool_is_a_complete_file_of_at_most_40_lines() -> None:
    tool = files(README)["my_tools.py"]
    assert len(tool.splitlines()) <= LONGEST_TOOL
    assert "TOOLS = [" in tool


def test_the_scopes_that_a_document_lists_are_those_that_are_needed() -> None:
    text = (ROOT / "docs" / "slack-setup.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| `([a-z_.]+(?::[a-z]+)?)` \|", text, re.MULTILINE)) == sorted(BOT_SCOPES)


def test_the_picture_of_the_card_is_small_and_has_words() -> None:
    [(name, alternative)] = re.findall(r'<img src="([^"]+)"[^>]*alt="([^"]+)"', README.read_text("utf-8"))
    assert (ROOT / name).stat().st_size < 100_000
    assert "Approve" in alternative


def test_what_a_command_prints_is_compared_line_by_line() -> None:
    told = Typed("x", "one\n…\nfour … six\n")
    assert told.pattern.fullmatch("one\ntwo\nthree\nfour five six\n")
    assert told.pattern.fullmatch("one\nfour 5 six\n")
    assert not told.pattern.fullmatch("one\ntwo\n")
    assert not told.pattern.fullmatch("one\nfour five six\nseven\n")
