"""Cards, notices and the directory: one publisher at a time, in order, each once."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from store import approvals, cards, clicks, directory, notices, runs
from store.engine import Database
from store.records import UPDATES, Card, DirectoryUser, Notice
from tests import databases
from tests.integration.store.rows import (
    ANA,
    LEASE,
    TEAM,
    a_claimed_run,
    a_pending_approval,
    a_run,
    an_attempted_call,
    approve,
    expire,
    mark_unknown,
    pending_approvals,
    reject,
    settle,
    shift_clock,
    the,
    vote,
)

pytestmark = pytest.mark.store


async def behind(db: Database, token: str = "t") -> Card | None:
    return await cards.claim_behind(db, token=token, worker="w1", lease=LEASE)


async def shown(db: Database, ts: str = "5.5") -> Card:
    """The card of a new pending approval, posted."""
    await a_pending_approval(db)
    return await post(db, ts)


async def post(db: Database, ts: str) -> Card:
    card = await behind(db)
    assert card is not None
    assert await cards.posted(db, card, "t", channel_id="C0APPROVALS", ts=ts, version=card.wanted_version)
    return card


# --- cards ---


async def test_publishers_at_once_take_different_cards(db: Database) -> None:
    await pending_approvals(db, [["b1"], ["b2"], ["b3"]])
    taken = await asyncio.gather(*(behind(db, f"t{n}") for n in range(8)))
    found = [card.id for card in taken if card is not None]
    assert len(found) == len(set(found)) == 3


async def test_cards_of_the_same_effect_and_items_follow_while_they_wait(db: Database) -> None:
    first, waits, _, over = await pending_approvals(db, [["b1", "b2"], ["b2", "b3"], ["b4"], ["b2"]])
    await pending_approvals(db, [["b2"]], effect="message")
    assert await reject(db, over)
    posted = {card.approval_id: card for card in [await post(db, f"{n}.1") for n in range(5)]}
    assert await behind(db) is None
    told = await cards.tell_others(db, posted[first.id], 1)
    card = await behind(db)
    assert (told, card and card.approval_id) == (1, waits.id)
    assert await behind(db) is None
    [kept] = await db.query("SELECT told_revision FROM cards WHERE approval_id = %s", [first.id])
    assert kept == {"told_revision": 1}


async def test_once_a_card_is_posted_that_of_the_approval_it_replaces_is_to_show_where(db: Database) -> None:
    old, new = await pending_approvals(db, [["b1"], ["b2"]])
    await db.query("UPDATE approvals SET replaces = %s WHERE id = %s", [old.id, new.id])
    first = await post(db, "5.1")
    assert first.approval_id == old.id
    assert (await post(db, "5.2")).approval_id == new.id
    again = await behind(db)
    assert again is not None
    assert (again.id, again.wanted_version) == (first.id, (await the(db, old.id)).version)
    assert await cards.posted(db, again, "t", channel_id="C0", ts="5.1", version=again.wanted_version)
    assert await cards.count_behind(db) == 0


async def test_so_it_is_when_the_new_card_is_pressed_before_its_post_is_recorded(db: Database) -> None:
    old, new = await pending_approvals(db, [["b1"], ["b2"]])
    await db.query("UPDATE approvals SET replaces = %s WHERE id = %s", [old.id, new.id])
    await post(db, "5.1")
    assert await cards.adopt(
        db, approval_id=new.id, team_id=TEAM, channel_id="C0APPROVALS", ts="5.2", user_id=None
    )
    (kept,) = await cards.of_approvals(db, [old.id])
    assert (kept.shown_version, kept.wanted_version) == (1, 2)


async def test_a_new_card_is_to_be_posted_and_then_is_not_behind(db: Database) -> None:
    card = await shown(db)
    assert (card.ts, card.shown_version, card.wanted_version) == (None, 0, 1)
    assert await behind(db) is None
    assert await cards.count_behind(db) == 0
    (kept,) = await cards.of_approvals(db, [card.approval_id])
    assert (kept.ts, kept.channel_id, kept.shown_version) == ("5.5", "C0APPROVALS", 1)


async def test_every_copy_is_behind_from_the_decision_on(db: Database) -> None:
    card = await shown(db)
    approval = await the(db, card.approval_id)
    assert await approve(db, approval)
    late = await behind(db)
    assert late is not None
    assert (late.id, late.ts, late.shown_version, late.wanted_version) == (card.id, "5.5", 1, 2)
    assert (await the(db, approval.id)).version == 2


async def test_a_card_changed_while_it_was_posted_is_still_behind(db: Database) -> None:
    approval = await a_pending_approval(db, quorum=2)
    card = await behind(db)
    assert card is not None
    assert await vote(db, approval)
    assert await cards.posted(db, card, "t", channel_id="C0APPROVALS", ts="5.5", version=1)
    again = await behind(db)
    assert again is not None
    assert (again.shown_version, again.wanted_version) == (1, 2)


async def test_a_publisher_that_lost_its_card_writes_nothing(
    db: Database, database: databases.Database
) -> None:
    await a_pending_approval(db)
    lost = await behind(db, "lost")
    assert lost is not None
    assert await behind(db) is None
    shift_clock(database, "16 seconds")
    assert await behind(db, "held") is not None
    assert not await cards.posted(db, lost, "lost", channel_id="C", ts="5.5", version=1)
    await cards.failed(db, lost.id, "lost", error="x", retry_in=1)
    await cards.lost(db, lost.id, "lost")
    (card,) = await cards.of_approvals(db, [lost.approval_id])
    assert (card.ts, card.failures, card.token) == (None, 0, "held")


async def test_a_card_that_failed_is_tried_again_after_a_time_or_a_change(
    db: Database, database: databases.Database
) -> None:
    approval = await a_pending_approval(db, quorum=2)
    card = await behind(db)
    assert card is not None
    await cards.failed(db, card.id, "t", error="\x00ratelimited", retry_in=30)
    assert await behind(db) is None
    assert await cards.count_behind(db) == 1
    assert await vote(db, approval)
    assert await behind(db) is not None
    shift_clock(database, "16 seconds")
    again = await behind(db)
    assert again is not None
    assert again.failures == 1


async def test_cards_where_nothing_may_be_sent_now_let_others_pass(db: Database) -> None:
    async def next_but(*held: str) -> Card | None:
        return await cards.claim_behind(db, token="t", worker="w1", lease=LEASE, held=held)

    approval = await a_pending_approval(db, quorum=2)
    assert await next_but("C0APPROVALS") is None
    card = await next_but("", UPDATES)
    assert card is not None
    assert await cards.posted(db, card, "t", channel_id="C0APPROVALS", ts="5.5", version=1)
    await approvals.escalate(db, approval, [(TEAM, "U0ANA")])
    copy = await next_but(UPDATES)
    assert copy is not None and copy.user_id == "U0ANA"
    await cards.failed(db, copy.id, "t", error="ratelimited", retry_in=0, counts=False)
    assert await next_but("", UPDATES) is None
    late = await next_but("", "C0APPROVALS")
    assert late is not None and late.ts == "5.5"
    assert [c.failures for c in await cards.of_approvals(db, [approval.id])] == [0, 0]


async def test_a_card_whose_message_is_gone_is_posted_anew(db: Database) -> None:
    card = await shown(db)
    await vote(db, await the(db, card.approval_id))
    assert await behind(db) is not None
    await cards.lost(db, card.id, "t")
    again = await post(db, "6.6")
    assert (again.id, again.ts, again.shown_version) == (card.id, None, 0)


async def doubt(db: Database, revision: int | None = None, attempts: int | None = None) -> bool:
    return await cards.doubt(
        db, team_id=TEAM, channel_id="C0APPROVALS", ts="5.5", revision=revision, attempts=attempts
    )


async def test_an_update_that_got_no_answer_is_shown_once_more_when_it_can_no_longer_come(
    db: Database, database: databases.Database
) -> None:
    card = await shown(db)
    approval = await the(db, card.approval_id)
    await vote(db, approval)
    assert await behind(db) is not None
    await cards.failed(db, card.id, "t", error="no answer", retry_in=2, unanswered=True)
    shift_clock(database, "3 seconds")
    await post(db, "5.5")
    assert await behind(db) is None
    assert await approve(db, await the(db, approval.id), ANA)  # what is new does not wait for it
    await post(db, "5.5")
    assert await behind(db) is None
    shift_clock(database, "31 seconds")
    await post(db, "5.5")
    assert await behind(db) is None


async def test_a_post_that_got_no_answer_is_no_update(db: Database, database: databases.Database) -> None:
    await a_pending_approval(db)
    card = await behind(db)
    assert card is not None
    await cards.failed(db, card.id, "t", error="no answer", retry_in=0, unanswered=True)
    await post(db, "5.5")
    shift_clock(database, "31 seconds")
    assert await behind(db) is None


async def test_what_a_publisher_that_is_gone_has_sent_is_shown_once_more(
    db: Database, database: databases.Database
) -> None:
    card = await shown(db)
    await vote(db, await the(db, card.approval_id))
    assert await behind(db, "gone") is not None
    shift_clock(database, "16 seconds")
    await post(db, "5.5")
    assert await behind(db) is None
    shift_clock(database, "48 seconds")
    await post(db, "5.5")
    assert await behind(db) is None


async def test_a_copy_whose_buttons_should_be_gone_is_shown_anew_once_for_many_clicks(
    db: Database, database: databases.Database
) -> None:
    card = await shown(db)
    assert not await doubt(db, 1)  # it is pending: its buttons are right
    assert await doubt(db, 2)
    shift_clock(database, "3 seconds")
    await post(db, "5.5")
    assert await approve(db, await the(db, card.approval_id))
    assert not await doubt(db, 1)  # it is behind anyhow
    await post(db, "5.5")
    assert [await doubt(db, 1) for _ in range(3)] == [True, False, False]
    assert await behind(db) is None
    shift_clock(database, "6 seconds")
    await post(db, "5.5")
    assert await behind(db) is None


async def test_a_copy_that_asks_what_happened_is_shown_anew_once_somebody_has_said_it(db: Database) -> None:
    claimed = await an_attempted_call(db)
    assert await mark_unknown(db, claimed)
    await post(db, "5.5")
    assert not await doubt(db, 1, attempts=1)
    assert await doubt(db, 1, attempts=2)
    await db.query("UPDATE cards SET not_before = NULL")
    await post(db, "5.5")
    assert await settle(db, claimed.call.id)
    await post(db, "5.5")
    assert await doubt(db, 1, attempts=1)


async def test_a_copy_that_is_just_being_shown_is_shown_anew_afterwards(
    db: Database, database: databases.Database
) -> None:
    card = await shown(db)
    await vote(db, await the(db, card.approval_id))
    assert await behind(db) is not None
    assert await doubt(db)
    assert await cards.posted(db, card, "t", channel_id="C0APPROVALS", ts="5.5", version=2)
    assert await behind(db) is None
    shift_clock(database, "16 seconds")
    await post(db, "5.5")
    assert await behind(db) is None


async def adopt(db: Database, approval_id: str, ts: str, channel: str = "C0APPROVALS") -> bool:
    return await cards.adopt(
        db, approval_id=approval_id, team_id=TEAM, channel_id=channel, ts=ts, user_id=None
    )


async def test_a_message_whose_posting_was_not_confirmed_becomes_the_copy_that_it_is(db: Database) -> None:
    approval = await a_pending_approval(db)
    card = await behind(db)
    assert card is not None
    assert sorted(await asyncio.gather(*(adopt(db, approval.id, "5.5") for _ in range(6)))) == [
        *[False] * 5,
        True,
    ]
    assert not await cards.posted(db, card, "t", channel_id="C0APPROVALS", ts="6.6", version=1)
    (copy,) = await cards.of_approvals(db, [approval.id])
    assert (copy.id, copy.ts, copy.shown_version) == (card.id, "5.5", 0)


async def test_a_second_message_of_an_approval_becomes_a_copy_of_its_own_once(db: Database) -> None:
    card = await shown(db)
    assert not await adopt(db, card.approval_id, "5.5")
    adopted = await asyncio.gather(*(adopt(db, card.approval_id, "6.6") for _ in range(6)))
    assert sum(adopted) == 1
    assert sorted(str(c.ts) for c in await cards.of_approvals(db, [card.approval_id])) == ["5.5", "6.6"]


async def test_a_message_is_adopted_and_posted_at_once_without_an_error(db: Database) -> None:
    for number in range(8):
        approval = await a_pending_approval(db)
        card = await behind(db)
        assert card is not None
        ts = f"{number}.9"
        await asyncio.gather(
            adopt(db, approval.id, ts),
            cards.posted(db, card, "t", channel_id="C0APPROVALS", ts=ts, version=1),
        )
        assert [c.ts for c in await cards.of_approvals(db, [approval.id])] == [ts]
        while (late := await behind(db)) is not None:
            await cards.posted(db, late, "t", channel_id="C0APPROVALS", ts=str(late.ts), version=1)


async def test_one_of_two_copies_in_a_channel_that_is_gone_is_not_posted_again(db: Database) -> None:
    card = await shown(db)
    await adopt(db, card.approval_id, "6.6")
    late = await behind(db)
    assert late is not None
    await cards.lost(db, late.id, "t")
    assert await behind(db) is None
    await approve(db, await the(db, card.approval_id))
    following = await behind(db)
    assert following is not None
    assert following.id == card.id
    assert await behind(db) is None


async def test_a_click_is_answered_once_for_a_day(db: Database, database: databases.Database) -> None:
    key = ["U0MARTA", "button\x00", "\ud800"]
    assert sum(await asyncio.gather(*(clicks.first(db, key) for _ in range(8)))) == 1
    shift_clock(database, "23 hours")
    await clicks.forget(db)
    assert not await clicks.first(db, key)
    shift_clock(database, "25 hours")
    await clicks.forget(db)
    assert await clicks.first(db, key)


# --- notices ---


async def next_notice(db: Database, token: str = "t") -> Notice | None:
    return await notices.claim(db, token=token, worker="w1", lease=LEASE)


async def say(db: Database, conversation: str, key: str) -> None:
    await notices.add_to_conversation(
        db, dedupe_key=key, conversation_id=conversation, kind="call_ran", data={"key": key}
    )


async def test_notices_of_a_conversation_are_posted_in_order(db: Database) -> None:
    run = await a_run(db)
    for key in ("a", "b", "a"):
        await say(db, run.conversation_id, key)
    order = []
    while (notice := await next_notice(db)) is not None:
        assert await next_notice(db) is None
        order.append(notice.data.get("key", notice.kind))
        assert await notices.posted(db, notice, "t", ts="7.7")
    assert order == ["run_received", "a", "b"]


async def test_a_reminder_goes_its_own_way_once_the_card_is_there_below_which_it_stands(db: Database) -> None:
    approval = await a_pending_approval(db)
    received = await next_notice(db)
    assert received is not None and received.kind == "run_received"
    await notices.failed(db, received, "t", error="fatal_error", retry_in=0)
    await notices.add_to_conversation(
        db,
        dedupe_key="reminder",
        conversation_id=approval.conversation_id,
        kind="outcome_reminder",
        data={"approval_ids": [approval.id], "number": 1},
    )
    card = await behind(db)
    assert card is not None
    await cards.failed(db, card.id, "t", error="not_in_channel", retry_in=0)
    assert await next_notice(db) == replace(received, failures=1)
    assert await next_notice(db) is None, "without a card it stands in the thread, in its turn"
    await post(db, "7.7")
    held = await notices.claim(db, token="t", worker="w1", lease=LEASE, held=["C0APPROVALS"])
    assert held is None
    reminder = await next_notice(db)
    assert reminder is not None and reminder.kind == "outcome_reminder"
    await say(db, approval.conversation_id, "later")
    await notices.posted(db, received, "t", ts="8.8")
    later = await next_notice(db)
    assert later is not None and later.data == {"key": "later"}


async def test_reminders_below_one_card_stay_in_order(db: Database, database: databases.Database) -> None:
    approval = await a_pending_approval(db)
    received = await next_notice(db)
    assert received is not None
    await notices.posted(db, received, "t", ts="1.1")
    await post(db, "7.7")

    async def remind(number: int) -> None:
        await notices.add_to_conversation(
            db,
            dedupe_key=f"reminder {number}",
            conversation_id=approval.conversation_id,
            kind="outcome_reminder",
            data={"approval_ids": [approval.id], "number": number},
        )

    await remind(1)
    first = await next_notice(db)
    assert first is not None and not await notices.is_reminded_later(db, first)
    await remind(2)
    assert await notices.is_reminded_later(db, first)
    assert await next_notice(db, "u") is None, "the first is just being posted"
    await notices.failed(db, first, "t", error="fatal_error", retry_in=300)
    assert await next_notice(db) is None
    shift_clock(database, "6 minutes")
    again = await next_notice(db)
    assert again is not None and again.id == first.id
    await notices.withdraw(db, again, "t")
    second = await next_notice(db)
    assert second is not None and second.data["number"] == 2
    assert not await notices.is_reminded_later(db, second)


async def test_publishers_at_once_take_notices_of_different_conversations(db: Database) -> None:
    made = {(await a_run(db)).conversation_id for _ in range(4)}
    for conversation in made:
        await say(db, conversation, f"more:{conversation}")
    taken = await asyncio.gather(*(next_notice(db, f"t{n}") for n in range(12)))
    found = [notice.conversation.id for notice in taken if notice and notice.conversation]
    assert sorted(found) == sorted(made)


async def test_one_conversation_that_waits_does_not_stop_another(db: Database) -> None:
    await a_run(db)
    first = await next_notice(db)
    assert first is not None
    await notices.failed(db, first, "t", error="ratelimited", retry_in=60)
    run = await a_run(db)
    second = await next_notice(db)
    assert second is not None
    assert second.data == {"run_id": run.id}


async def test_a_notice_that_failed_is_tried_again_with_its_failures_counted(
    db: Database, database: databases.Database
) -> None:
    await a_run(db)
    notice = await next_notice(db)
    assert notice is not None
    await notices.failed(db, notice, "t", error="ratelimited", retry_in=60)
    assert await next_notice(db) is None
    shift_clock(database, "61 seconds")
    again = await next_notice(db)
    assert again is not None
    assert (again.id, again.failures) == (notice.id, 1)


async def test_notices_where_nothing_may_be_sent_now_let_others_pass(db: Database) -> None:
    async def next_but(*held: str) -> Notice | None:
        return await notices.claim(db, token="t", worker="w1", lease=LEASE, held=held)

    await a_run(db)
    first = await next_but("", UPDATES)
    assert first is not None and first.conversation is not None
    place = first.conversation.channel_id
    await notices.failed(db, first, "t", error="ratelimited", retry_in=0, counts=False)
    assert await next_but(place) is None
    again = await next_but("C0OTHER")
    assert again is not None
    assert (again.id, again.failures) == (first.id, 0)
    assert await notices.posted(db, again, "t", ts="2.2")
    await db.query("UPDATE notices SET posted_at = NULL")
    assert await next_but(UPDATES) is None
    assert await next_but("", place) is not None


async def test_a_notice_that_cannot_be_posted_stops_nobody(db: Database) -> None:
    run = await a_run(db)
    await say(db, run.conversation_id, "a")
    notice = await next_notice(db)
    assert notice is not None
    await notices.failed(db, notice, "t", error="channel_not_found", retry_in=None)
    following = await next_notice(db)
    assert following is not None
    assert following.kind == "call_ran"


async def test_a_publisher_that_lost_its_notice_writes_nothing(
    db: Database, database: databases.Database
) -> None:
    run = await a_run(db, thread=None)
    lost = await next_notice(db, "lost")
    assert lost is not None
    shift_clock(database, "16 seconds")
    held = await next_notice(db, "held")
    assert held is not None
    assert not await notices.posted(db, lost, "lost", ts="1.1")
    assert await notices.posted(db, held, "held", ts="2.2")
    row = await db.one("SELECT thread_ts FROM conversations WHERE id = %s", [run.conversation_id])
    assert row == {"thread_ts": "2.2"}


async def test_a_thread_begins_once(db: Database) -> None:
    run = await a_run(db, thread="1.1")
    notice = await next_notice(db)
    assert notice is not None
    await notices.posted(db, notice, "t", ts="2.2")
    row = await db.one("SELECT thread_ts FROM conversations WHERE id = %s", [run.conversation_id])
    assert row == {"thread_ts": "1.1"}


@pytest.mark.parametrize("then", ["posted", "failed", "ten seconds later"])
async def test_a_notice_of_new_cards_waits_for_them_but_not_for_long(
    db: Database, database: databases.Database, then: str
) -> None:
    approval = await a_pending_approval(db)
    await db.query("UPDATE notices SET posted_at = house_now()")
    await notices.add_to_conversation(
        db,
        dedupe_key="asked",
        conversation_id=approval.conversation.id,
        kind="call_asked",
        data={"approval_ids": [approval.id]},
    )
    assert await next_notice(db) is None
    if then == "posted":
        await post(db, "5.5")
    elif then == "failed":
        card = await behind(db)
        assert card is not None
        await cards.failed(db, card.id, "t", error="channel_not_found", retry_in=300)
    else:
        shift_clock(database, "10 seconds")
    assert await next_notice(db) is not None


async def test_a_notice_to_a_person_has_no_conversation(db: Database, database: databases.Database) -> None:
    approval = await a_pending_approval(db)
    await db.query("UPDATE notices SET posted_at = house_now()")
    shift_clock(database, "24 hours")
    await expire(db, approval)
    told = [await next_notice(db, f"t{n}") for n in range(3)]
    assert [(n.team_id, n.user_id, n.conversation) for n in told if n] == [
        (TEAM, "U0ANA", None),
        (TEAM, "U0LEO", None),
    ]


async def test_a_run_tells_its_thread_when_it_ends(db: Database) -> None:
    claimed = await a_claimed_run(db)
    await runs.complete(db, claimed, body=[], answer="Done.", input_tokens=0, output_tokens=0)
    found = await db.query("SELECT kind, data->>'text' AS text FROM notices ORDER BY id")
    assert found[-1] == {"kind": "run_completed", "text": "Done."}


# --- directory ---


async def test_a_user_is_kept_with_the_age_of_what_is_known(
    db: Database, database: databases.Database
) -> None:
    user = DirectoryUser(TEAM, "U0MARTA", "Marta", False, False, False, False, 0.0)
    await directory.save_user(db, user)
    shift_clock(database, "5 minutes")
    found = await directory.read_user(db, TEAM, "U0MARTA")
    assert found is not None
    assert found.age >= 300
    await directory.save_user(db, DirectoryUser(TEAM, "U0MARTA", "Marta\x00", False, True, False, False, 0))
    again = await directory.read_user(db, TEAM, "U0MARTA")
    assert again is not None
    assert (again.name, again.deleted) == ("Marta\ufffd", True)
    assert again.age < 60
    assert await directory.read_user(db, "T0OTHER", "U0MARTA") is None


async def test_an_answer_of_slack_does_not_undo_what_came_after_it_was_asked(db: Database) -> None:
    marta = DirectoryUser(TEAM, "U0MARTA", "Marta", False, False, False, False, 0)
    before = await db.now()
    await directory.save_user(db, replace(marta, deleted=True))
    await directory.save_user(db, marta, asked_at=before)
    found = await directory.read_user(db, TEAM, "U0MARTA")
    assert found is not None and found.deleted
    await directory.save_user(db, marta, asked_at=await db.now())
    found = await directory.read_user(db, TEAM, "U0MARTA")
    assert found is not None and not found.deleted


async def test_of_two_answers_the_one_that_was_asked_for_later_stays(db: Database) -> None:
    marta = DirectoryUser(TEAM, "U0MARTA", "Marta", False, False, False, False, 0)
    first, then = await db.now(), await db.now()
    await directory.save_user(db, marta, asked_at=first)
    await directory.save_user(
        db, replace(marta, deleted=True), asked_at=then
    )  # while the first was on its way
    assert (await known(db)).deleted
    await directory.save_user(db, marta, asked_at=first)
    assert (await known(db)).deleted


async def test_what_is_known_is_as_old_as_its_question(db: Database, database: databases.Database) -> None:
    asked_at = await db.now()
    shift_clock(database, "5 minutes")
    await directory.save_user(
        db, DirectoryUser(TEAM, "U0MARTA", "Marta", False, False, False, False, 0), asked_at=asked_at
    )
    assert (await known(db)).age >= 300


async def test_an_event_that_comes_again_does_not_undo_a_newer_one(db: Database) -> None:
    marta = DirectoryUser(TEAM, "U0MARTA", "Marta", False, False, False, False, 0)
    await directory.save_user(db, marta)
    older, newer = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, microsecond=1, tzinfo=UTC)
    await directory.hear_of_user(db, replace(marta, restricted=True), event_at=newer)
    await directory.hear_of_user(db, marta, event_at=older)
    assert (await known(db)).restricted
    await directory.save_user(db, replace(marta, restricted=True), asked_at=await db.now())
    await directory.hear_of_user(db, marta, event_at=older)  # also after an answer
    assert (await known(db)).restricted and not (await known(db)).unconfirmed


async def test_what_an_event_says_is_unconfirmed_until_slack_is_asked_after_it(db: Database) -> None:
    marta = DirectoryUser(TEAM, "U0MARTA", "Marta", False, False, False, False, 0)
    before = await db.now()
    await directory.hear_of_user(db, marta, event_at=before)
    await directory.save_user(db, marta, asked_at=before)
    assert (await known(db)).unconfirmed
    await directory.save_user(db, marta, asked_at=await db.now())
    assert not (await known(db)).unconfirmed


async def test_a_doubt_holds_until_slack_is_asked_after_it(db: Database) -> None:
    marta = DirectoryUser(TEAM, "U0MARTA", "Marta", False, False, False, False, 0)
    before = await db.now()
    await directory.save_user(db, marta, asked_at=before)
    await directory.doubt_user(db, "T0OTHER", "U0MARTA")
    assert not (await known(db)).unconfirmed
    await directory.doubt_user(db, TEAM, "U0MARTA")
    await directory.save_user(db, marta, asked_at=before)
    assert (await known(db)).unconfirmed


async def known(db: Database) -> DirectoryUser:
    """What the directory has of Marta."""
    found = await directory.read_user(db, TEAM, "U0MARTA")
    assert found is not None
    return found


async def test_a_person_is_called_what_slack_last_called_them(db: Database) -> None:
    for team, name in (("T0OTHER", "M. Gil"), (TEAM, "Marta")):
        await directory.save_user(db, DirectoryUser(team, "U0MARTA", name, False, False, False, False, 0))
    assert await directory.name_of(db, "U0MARTA") == "Marta"
    assert await directory.name_of(db, "U0LEO") is None
