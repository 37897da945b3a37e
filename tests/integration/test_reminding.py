"""Where a reminder stands, whom it names, and when it need not be said any more."""

from pathlib import Path

import pytest

from bot.reminding import reminder_of, repeat_of
from bot.texts import texts
from store import cards
from store.records import Approval, Notice
from tests.databases import Database
from tests.integration.agent.office import Office, office, with_tool, without
from tests.integration.agent.test_settling import ASKED, lost, says

EN = texts("en")


def claimed(approval: Approval) -> Notice:
    """The first reminder, on its way."""
    data = {"approval_ids": [approval.id], "number": 1}
    return Notice(1, "outcome_reminder", data, approval.conversation, None, None, 0, "t")


async def shown(o: Office, approval: Approval) -> None:
    """Its card stands in #approvals."""
    card = await cards.claim_behind(o.house.db, token="t", worker="w", lease=15)
    assert card is not None
    await cards.posted(o.house.db, card, "t", channel_id="C0APPROVALS", ts="7.7", version=approval.version)


async def test_it_stands_below_the_card_and_names_those_who_are_asked(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, ASKED, repeatable=False) as o:
        approval = await lost(o)
        await shown(o, approval)
        found = await reminder_of(o.house, EN, claimed(approval))
        assert found is not None
        message, channel, ts = found
        assert (channel, ts) == ("C0APPROVALS", "7.7")
        assert message.text.startswith("<@U0MARTA> <@U0M1> ")
        assert "<@U0ANA>" not in message.text


async def test_it_does_not_ask_the_requester_whom_four_eyes_bar(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED, repeatable=False) as o:
        asked = await o.propose(requester=o.person().actor())
        await o.approve(asked, "U0M1")
        o.world.fail = [RuntimeError("no answer")]
        await o.work()
        found = await reminder_of(o.house, EN, claimed(await o.approval(asked.id)))
        assert found is not None and "<@U0MARTA>" not in found[0].text


async def test_without_a_card_it_stands_in_the_conversation(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED, repeatable=False) as o:
        found = await reminder_of(o.house, EN, claimed(await lost(o)))
        assert found is not None and found[1:] == ("C0SUPPORT", "1.1")


async def test_it_is_not_said_once_it_is_settled(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED, repeatable=False) as o:
        approval = await lost(o)
        await says(o, approval, "ran")
        assert await reminder_of(o.house, EN, claimed(approval)) is None


@pytest.mark.parametrize(("repeatable", "risk"), [(True, "safe"), (False, "risky")])
async def test_what_another_attempt_would_be_is_the_tools_to_say(
    database: Database, tmp_path: Path, repeatable: bool, risk: str
) -> None:
    async with office(database, tmp_path, ASKED, repeatable=False) as o:
        approval = await lost(o)
        assert await repeat_of(with_tool(o.house, "pay", repeatable=repeatable), approval) == risk
        assert await repeat_of(with_tool(o.house, "pay", version="2"), approval) == "no"
        assert await repeat_of(without(o.house, "pay"), approval) == "no"
