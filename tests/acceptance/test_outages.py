"""Slack wants to be left alone, is away, or refuses a message: all that is to be said is said in the end."""

from typing import Any

import pytest
from slack_sdk.errors import SlackApiError

from agent.scripted import say, script, step
from bot.following import Busy, Following
from bot.posting import Held
from bot.sandbox import Fault, Message
from bot.sandbox.server import ApiCall
from tests.acceptance.scripts import ONLY_ASK
from tests.acceptance.stage import APPROVALS, SUPPORT, Stage, eventually, staged
from tests.acceptance.test_cards import try_again
from tests.acceptance.test_messages import HELLO
from tests.acceptance.test_progress import nothing_unposted, unheard
from tests.databases import Database

ANSWER = "Hello yourself."


async def test_what_slack_asks_to_wait_for_is_said_however_often_it_asks(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, HELLO) as stage:
        stage.sandbox.faults.add("chat.postMessage", Fault.rate_limited(0), times=40)
        await stage.said(await stage.ask("hello"), ANSWER)
        await eventually(lambda: all_said(stage))


AWAY = {
    "gateway": Fault.http(502),
    "Slack": Fault.error("internal_error"),
    "token": Fault.error("token_revoked"),
    "connection": Fault.drop_before(),
}


@pytest.mark.parametrize("fault", AWAY.values(), ids=AWAY)
async def test_what_is_to_be_said_is_not_given_up_while_slack_is_away(
    database: Database, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    async with staged(database, monkeypatch, HELLO) as stage:
        stage.sandbox.faults.add("chat.postMessage", fault, times=2)
        asked = await stage.ask("hello")
        await eventually(lambda: failing(stage))
        await stage.db.query("UPDATE notices SET failures = 100, last_error = NULL")  # for days
        await try_again(stage, "notices")
        await eventually(lambda: failing(stage))
        await try_again(stage, "notices")
        await stage.said(asked, ANSWER)
        await eventually(lambda: all_said(stage))


async def test_a_channel_is_left_alone_for_as_long_as_slack_asks_and_others_are_not(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, HELLO) as stage:
        stage.sandbox.faults.add("chat.postMessage", Fault.rate_limited(3600))
        first = await stage.ask("hello")
        await eventually(lambda: failing(stage))
        second = await stage.ask("hello again")
        await stage.said(await stage.leo.mention(APPROVALS, "hello"), ANSWER)
        assert [call.error for call in posts(stage) if call.args["channel"] == SUPPORT] == [
            "fault:rate_limited"
        ]
        stage.processes[0].app.bot.publisher._held = Held()  # an hour later
        await try_again(stage, "notices")
        for asked in (first, second):
            await stage.said(asked, ANSWER)


async def test_a_card_that_changes_meanwhile_waits_as_long_as_slack_asks_for_updates(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Following, "_keep", unheard)
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        card = await stage.card()
        await eventually(lambda: nothing_unposted(stage))
        stage.sandbox.faults.add("chat.update", Fault.rate_limited(3600))
        for version in (2, 3):  # as after votes of two
            await stage.db.query("UPDATE cards SET wanted_version = %s, not_before = NULL", [version])
            await stage.processes[0].app.bot.publisher.publish_cards()
        assert [call.error for call in updates(stage, card)] == ["fault:rate_limited"]


async def test_lines_are_left_alone_too_for_as_long_as_slack_asks_for_updates(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        lines = stage.processes[0].app.bot.publisher.lines
        await stage.ask()
        await stage.card()
        await eventually(lambda: nothing_unposted(stage))
        [(run,)] = [row.values() for row in await stage.db.query("SELECT id FROM runs")]
        stage.sandbox.faults.add("chat.update", Fault.rate_limited(3600))
        with pytest.raises(SlackApiError):
            await lines.bring_up_to_date(run, None)
        asked = len(stage.sandbox.calls)
        with pytest.raises(Busy):
            await lines.show(run)
        assert "chat.update" not in [call.method for call in stage.sandbox.calls[asked:]]


async def test_dms_are_left_alone_for_as_long_as_slack_asks(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        await stage.card()
        await eventually(lambda: nothing_unposted(stage))
        before = len(posts(stage))
        stage.sandbox.faults.add("chat.postMessage", Fault.rate_limited(3600))
        for number in range(2):
            await stage.db.query(
                "INSERT INTO notices (dedupe_key, team_id, user_id, kind, data)"
                " SELECT %s, n.team_id, 'U0ANA', 'approval_expired', jsonb_build_object('approval_id', a.id)"
                "   FROM approvals a JOIN conversations n ON n.id = a.conversation_id",
                [f"expired:{number}"],
            )
            await stage.processes[0].app.bot.publisher.publish_notices()
        assert [call.error for call in posts(stage)[before:]] == ["fault:rate_limited"]


@pytest.mark.parametrize("code", ["msg_blocks_too_long", "msg_too_long"])
@pytest.mark.parametrize("times", [1, 2])
async def test_what_slack_refuses_to_show_is_said_in_plain_text_and_cut_if_that_is_too_long(
    database: Database, monkeypatch: pytest.MonkeyPatch, code: str, times: int
) -> None:
    long = script(step(say(f"All 38 are done. {'word ' * 1900}")))
    async with staged(database, monkeypatch, long) as stage:
        stage.model.hold()
        asked = await stage.ask()
        await eventually(lambda: all_said(stage))
        stage.sandbox.faults.add("chat.postMessage", Fault.error(code), times=times)
        await stage.model.release()
        await stage.said(asked, "All 38 are done.")
        answer = stage.sandbox.channel(SUPPORT).thread(asked.ts)[-1]
        assert answer.blocks == [] and len(answer.text) <= (4_000, 1_000)[times - 1]
        assert [call.error for call in posts(stage)] == [None, *[code] * times, None]


async def test_what_slack_refuses_in_every_form_is_not_sent_over_and_over_and_holds_nothing_up(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, HELLO) as stage:
        stage.sandbox.faults.add("chat.postMessage", Fault.error("msg_too_long"), times=3)
        await stage.said(await stage.ask("hello"), ANSWER)
        assert [call.error for call in posts(stage)] == [*["msg_too_long"] * 3, None]


async def test_what_is_brought_up_to_date_is_said_in_plain_text_if_its_blocks_are_refused(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, HELLO) as stage:
        stage.model.hold()
        asked = await stage.ask("hello")
        await eventually(lambda: all_said(stage))
        stage.sandbox.faults.add("chat.update", Fault.error("invalid_blocks"), times=1)
        await stage.model.release()
        await stage.said(asked, "Finished.")


def posts(stage: Stage) -> list[ApiCall]:
    """What the bot has posted, or tried to."""
    return [call for call in stage.sandbox.calls if call.method == "chat.postMessage"]


def updates(stage: Stage, card: Message) -> list[ApiCall]:
    """The updates of a card that were tried."""
    of_card = [call for call in stage.sandbox.calls if call.args.get("ts") == card.ts]
    return [call for call in of_card if call.method == "chat.update"]


async def failing(stage: Stage) -> bool:
    """Whether something could not be said."""
    return any(row["last_error"] for row in await unsaid(stage))


async def all_said(stage: Stage) -> bool:
    """Whether all that was to be said is in Slack."""
    return not await unsaid(stage)


async def unsaid(stage: Stage) -> list[dict[str, Any]]:
    """What is not in Slack: still to be said, or given up."""
    return await stage.db.query("SELECT kind, last_error, posted_at FROM notices WHERE ts IS NULL")
