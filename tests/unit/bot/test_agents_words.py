"""The only words of the model on a card: quoted as the agent's own, and cut to length."""

from bot.blocks import limits
from bot.blocks.card import CardContext, card
from bot.texts import texts
from tests.unit.bot.rows import approval


def test_the_agents_words_are_quoted_and_cut() -> None:
    message = card(approval(rationale="words " * 1000), CardContext(texts("en")))
    elements = [element for block in message.blocks for element in block.get("elements", ())]
    [quoted] = [element for element in elements if element["type"] == "rich_text_quote"]
    text = "".join(part["text"] for part in quoted["elements"])
    assert text.startswith("words words")
    assert len(text) <= limits.WORDS_OF_THE_AGENT < limits.SECTION_TEXT
