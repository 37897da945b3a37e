"""Lines: a run's first message, which waits again when a later notice tells something new of the run."""

from store import lines, notices, runs
from store.engine import Database
from store.records import Notice, Run
from store.transitions import RunStatus
from tests import databases
from tests.integration.store.rows import (
    LEASE,
    a_claimed_run,
    a_run,
    a_turn,
    asked,
    propose,
    shift_clock,
)

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
    assert not await notices.posted(db, older, "older", ts="5.5")
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


async def test_there_is_no_line_of_no_run(db: Database) -> None:
    assert await lines.read(db, "run_none") is None
