"""Copies of a card: one that nobody heard of is adopted, one too many is not posted again."""

import pytest

from store import cards
from store.engine import Database
from store.records import Card
from tests.integration.store.rows import a_pending_approval

pytestmark = pytest.mark.store


async def adopt(db: Database, approval_id: str, ts: str) -> bool:
    return await cards.adopt(
        db, approval_id=approval_id, team_id="T0SHOP", channel_id="C0APPROVALS", ts=ts, user_id=None
    )


async def claimed(db: Database) -> Card:
    card = await cards.claim_behind(db, token="t", worker="w", lease=20)
    assert card is not None
    return card


async def test_a_message_that_nobody_heard_of_takes_the_place_of_the_card_to_be_posted(db: Database) -> None:
    approval = await a_pending_approval(db)
    posting = await claimed(db)
    assert await adopt(db, approval.id, "1.1")
    assert not await cards.posted(db, posting, "t", channel_id="C0APPROVALS", ts="1.1", version=1)
    [card] = await cards.of_approvals(db, [approval.id])
    assert (card.ts, card.shown_version) == ("1.1", 0)


async def test_a_further_message_becomes_a_copy_once(db: Database) -> None:
    approval = await a_pending_approval(db)
    await cards.posted(db, await claimed(db), "t", channel_id="C0APPROVALS", ts="1.1", version=1)
    assert not await adopt(db, approval.id, "1.1")
    assert await adopt(db, approval.id, "1.2")
    assert not await adopt(db, approval.id, "1.2")
    assert {card.ts for card in await cards.of_approvals(db, [approval.id])} == {"1.1", "1.2"}


async def test_a_message_of_no_approval_is_not_adopted(db: Database) -> None:
    assert not await adopt(db, "apr_made_up", "1.1")


async def test_a_message_that_is_gone_is_not_adopted_from_a_late_click_on_it(db: Database) -> None:
    approval = await a_pending_approval(db)
    await cards.posted(db, await claimed(db), "t", channel_id="C0APPROVALS", ts="1.1", version=1)
    await db.query("UPDATE cards SET wanted_version = wanted_version + 1")
    await cards.lost(db, (await claimed(db)).id, "t")
    posting = await claimed(db)
    assert not await adopt(db, approval.id, "1.1")
    assert await cards.posted(db, posting, "t", channel_id="C0APPROVALS", ts="1.2", version=2)
    assert not await adopt(db, approval.id, "1.1")
    assert [card.ts for card in await cards.of_approvals(db, [approval.id])] == ["1.2"]


async def test_a_copy_that_is_gone_is_posted_again_only_if_it_was_the_last(db: Database) -> None:
    approval = await a_pending_approval(db)
    await cards.posted(db, await claimed(db), "t", channel_id="C0APPROVALS", ts="1.1", version=1)
    await adopt(db, approval.id, "1.2")
    extra = await claimed(db)
    await cards.lost(db, extra.id, "t")
    assert await cards.count_behind(db) == 0
    await db.query("UPDATE cards SET wanted_version = wanted_version + 1")
    last = await claimed(db)
    assert last.ts == "1.1"
    await cards.lost(db, last.id, "t")
    assert (await claimed(db)).ts is None
