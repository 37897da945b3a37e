"""Lines: a run's first message, which waits again when a later notice tells something new of the run."""

from typing import Any

import pytest

from store import calls, lines, notices, runs
from store.engine import Database
from store.records import Notice, Run
from store.transitions import RunStatus
from tests import databases
from tests.integration.store.rows import (
    CANCELLED,
    LEASE,
    LEO,
    a_claimed_call,
    a_claimed_run,
    a_pending_approval,
    a_run,
    a_turn,
    an_attempted_call,
    asked,
    cancel,
    ending,
    mark_unknown,
    propose,
    release,
    settle,
    shift_clock,
    the,
    vote,
)
from tests.integration.store.test_cards import post

TOKEN = "t"


async def next_notice(db: Database, token: str = TOKEN) -> Notice | None:
    return await notices.claim(db, token=token, worker="w1", lease=LEASE)


async def a_posted_line(db: Database) -> Run:
    """A run whose first message is in Slack at 5.5, and which has something more to say."""
    run = await a_run(db)
    first = await next_notice(db)
    assert first is not None and first.ts is None
    assert await notices.posted(db, first, TOKEN, ts="5.5")
    await say(db, run, "asked")
    return run


async def say(db: Database, run: Run, key: str) -> None:
    await notices.add_to_conversation(
        db, dedupe_key=key, conversation_id=run.conversation_id, kind="call_asked", data={}
    )


async def told(db: Database, run: Run, token: str = TOKEN) -> None:
    """Post the next notice, which tells something new of the run."""
    notice = await next_notice(db, token)
    assert notice is not None and notice.ts is None
    assert await notices.posted(db, notice, token, ts="6.6", moved=run.id)


async def test_what_is_new_of_a_run_opens_its_first_message_again(db: Database) -> None:
    run = await a_posted_line(db)
    assert (await next_notice(db, "other")) is not None  # the notice itself
    await db.query("UPDATE notices SET token = NULL, lease_until = NULL")
    await told(db, run)
    line = await next_notice(db)
    assert line is not None
    assert (line.kind, line.data, line.ts) == ("run_received", {"run_id": run.id}, "5.5")
    assert await notices.posted(db, line, TOKEN, ts="5.5")
    assert await next_notice(db) is None


async def test_what_tells_nothing_new_of_a_run_opens_nothing(db: Database) -> None:
    await a_posted_line(db)
    notice = await next_notice(db)
    assert notice is not None
    assert await notices.posted(db, notice, TOKEN, ts="6.6")
    assert await next_notice(db) is None


async def test_a_line_that_waits_comes_after_what_is_to_be_posted_and_holds_up_none(db: Database) -> None:
    run = await a_posted_line(db)
    await told(db, run)
    await say(db, run, "answer")
    posted_first = await next_notice(db)
    assert posted_first is not None and posted_first.ts is None
    line = await next_notice(db)
    assert line is not None and line.ts == "5.5"


async def test_a_first_message_that_is_not_posted_yet_is_not_opened(db: Database) -> None:
    run = await a_run(db)
    first = await next_notice(db)
    assert first is not None
    await notices.failed(db, first, TOKEN, error="not_in_channel", retry_in=None)
    await say(db, run, "asked")
    await told(db, run)
    assert await next_notice(db) is None


async def test_news_while_a_line_is_brought_up_to_date_open_it_once_more(db: Database) -> None:
    run = await a_posted_line(db)
    await told(db, run)
    older = await next_notice(db, "older")
    assert older is not None and older.ts == "5.5"
    await say(db, run, "answer")
    await told(db, run)
    assert await next_notice(db, "newer") is None  # one at a time
    assert await notices.posted(db, older, "older", ts="5.5")
    newer = await next_notice(db, "newer")
    assert newer is not None and newer.id == older.id
    assert await notices.posted(db, newer, "newer", ts="5.5")
    assert await next_notice(db) is None


async def test_a_line_whose_publisher_is_gone_is_taken_by_another(
    db: Database, database: databases.Database
) -> None:
    run = await a_posted_line(db)
    await told(db, run)
    assert await next_notice(db, "gone") is not None
    assert await next_notice(db) is None
    shift_clock(database, "16 seconds")
    line = await next_notice(db)
    assert line is not None and line.ts == "5.5"


# --- one at a time ---


async def shown_line(db: Database, run: Run, **values: Any) -> bool:
    """Take the line, and let it go as one that shows something."""
    turn = await lines.take(db, run.id, token="l", worker="w1", lease=LEASE)
    assert turn is not None and turn.is_ours
    return await lines.let_go(db, run.id, "l", shown="digest", **values)


async def a_line_at_rest(db: Database) -> Run:
    """A run whose first message is in Slack, at 5.5."""
    run = await a_run(db)
    assert await lines.take(db, run.id, token="a", worker="w1", lease=LEASE) is None  # not posted yet
    first = await next_notice(db)
    assert first is not None
    assert await notices.posted(db, first, TOKEN, ts="5.5")
    return run


async def test_a_line_is_taken_by_one_at_a_time_and_knows_what_it_shows(db: Database) -> None:
    run = await a_line_at_rest(db)
    taken = [await lines.take(db, run.id, token=t, worker="w1", lease=LEASE) for t in ("a", "b")]
    assert taken == [lines.Turn(True, None), lines.Turn(False, None)]
    assert not await lines.let_go(db, run.id, "a", shown="digest")
    assert await lines.take(db, run.id, token="b", worker="w1", lease=LEASE) == lines.Turn(True, "digest")


async def test_a_line_that_is_taken_waits_for_its_publisher(db: Database) -> None:
    run = await a_posted_line(db)
    await lines.take(db, run.id, token="l", worker="w1", lease=LEASE)
    await told(db, run)
    assert await next_notice(db) is None
    assert await lines.let_go(db, run.id, "l", shown="digest")
    line = await next_notice(db)
    assert line is not None and (line.ts, line.shown) == ("5.5", "digest")
    assert await lines.take(db, run.id, token="l", worker="w1", lease=LEASE) == lines.Turn(False, None)


async def test_an_update_of_a_line_that_got_no_answer_is_sent_once_more(
    db: Database, database: databases.Database
) -> None:
    run = await a_line_at_rest(db)
    assert not await shown_line(db, run, unanswered=True)
    assert not await shown_line(db, run)
    assert await next_notice(db) is None
    shift_clock(database, "31 seconds")
    line = await next_notice(db)
    assert line is not None and line.shown is None  # nobody knows what it shows
    assert await notices.posted(db, line, TOKEN, ts="5.5", shown="digest")
    assert await next_notice(db) is None


async def test_who_was_overtaken_in_a_line_has_it_sent_once_more(
    db: Database, database: databases.Database
) -> None:
    run = await a_line_at_rest(db)
    await lines.take(db, run.id, token="slow", worker="w1", lease=LEASE)
    shift_clock(database, "16 seconds")
    await lines.take(db, run.id, token="quick", worker="w1", lease=LEASE)
    assert not await lines.let_go(db, run.id, "slow", shown="old")
    assert not await lines.let_go(db, run.id, "quick", shown="new")
    assert await lines.let_go(db, run.id, "slow", shown="old")
    line = await next_notice(db)
    assert line is not None and line.shown is None


@pytest.mark.parametrize("how", ["done", "failed", "settled", "stopped"])
async def test_how_a_call_ends_is_told_in_the_line_of_a_run_that_has_ended_before(
    db: Database, how: str
) -> None:
    claimed = await (a_claimed_call(db) if how == "stopped" else an_attempted_call(db))
    while (notice := await next_notice(db)) is not None:
        assert await notices.posted(db, notice, TOKEN, ts="5.5")
    if how == "settled":
        assert await mark_unknown(db, claimed)
    assert await cancel(db, claimed.run.id)
    while (notice := await next_notice(db)) is not None:
        assert await notices.posted(db, notice, TOKEN, ts=notice.ts or "6.6")
    match how:
        case "done":
            assert await calls.finish_done(db, claimed, **ending())
        case "failed":
            assert await calls.finish_failed(db, claimed, **ending())
        case "settled":
            assert await settle(db, claimed.call.id)
        case "stopped":
            assert await release(db, claimed)
            assert await calls.stop_released(db, CANCELLED)
    line = await next_notice(db)
    if line is not None and line.kind == "outcome_settled":
        assert await notices.posted(db, line, TOKEN, ts="7.7")
        line = await next_notice(db)
    assert line is not None and (line.kind, line.ts) == ("run_received", "5.5")


async def test_a_line_is_read_with_the_last_turns_calls_and_all_approvals(db: Database) -> None:
    claimed = await a_claimed_run(db)
    assert await lines.read(db, claimed.run.id) is None  # it is not posted yet
    first = await next_notice(db)
    assert first is not None
    await notices.posted(db, first, TOKEN, ts="5.5")
    [call] = await a_turn(db, claimed)
    new = asked(call)
    assert await propose(db, claimed, [runs.Outcome(call.id, "asked")], [new])
    line = await lines.read(db, claimed.run.id)
    assert line is not None
    assert (line.run.status, line.ts) == (RunStatus.AWAITING_APPROVAL, "5.5")
    assert line.conversation.channel_id == "C0SUPPORT"
    assert [c.id for c in line.calls] == [call.id]
    assert [a.id for a in line.approvals] == [new.id]


async def test_what_a_reply_waits_for_is_told_anew_with_every_card_of_the_run_before_it(db: Database) -> None:
    approval = await a_pending_approval(db)
    conversation = await runs.read_conversation(db, approval.conversation_id)
    reply, _ = await runs.start(
        db,
        team_id=conversation.team_id,
        channel_id=conversation.channel_id,
        thread_ts=conversation.thread_ts,
        agent="Helper",
        task="Are you done?",
        requester=LEO,
        source_key="reply",
    )
    for ts in ("1.1", "2.2"):
        received = await next_notice(db)
        assert received is not None and received.ts is None
        await notices.posted(db, received, "t", ts=ts)
    assert await next_notice(db) is None
    await post(db, "5.5")
    line = await next_notice(db)
    assert line is not None and (line.data["run_id"], line.ts) == (reply.id, "2.2")
    await notices.posted(db, line, "t", ts="2.2")
    await vote(db, await the(db, approval.id))
    assert await next_notice(db) is None, "the card does not show it yet"
    await post(db, "5.5")
    line = await next_notice(db)
    assert line is not None and line.data["run_id"] == reply.id


async def test_there_is_no_line_of_no_run(db: Database) -> None:
    assert await lines.read(db, "run_none") is None
