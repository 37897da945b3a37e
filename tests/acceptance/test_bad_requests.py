"""What comes over HTTP and is wrong: nothing in the database changes, and whoever there is is told."""

import json
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from bot.blocks.modals import Callback
from bot.sandbox.delivery import Delivery, SignedRequest
from store import backlog, cards
from tests.acceptance.contents import contents
from tests.acceptance.scripts import NOTHING, ONLY_ASK
from tests.acceptance.stage import Stage, eventually, staged
from tests.acceptance.test_http import BODY, post, signed
from tests.acceptance.test_modals import open_form
from tests.databases import Database

Payload = dict[str, Any]
RECORD = "audit_%"
"""Clicks that name an approval are on the record, also when they are refused."""


async def settled(stage: Stage) -> None:
    """Wait until nothing is on its way: no task after an answer, no card, notice or line."""
    await eventually(lambda: _is_settled(stage))


async def _is_settled(stage: Stage) -> bool:
    behind = await cards.count_behind(stage.db) + await backlog.count_unposted(stage.db)
    bots = [process.app.bot for process in stage.processes]  # looked at last: what was posted moves a line
    return not behind and not any(
        len(bot.tasks) + len(bot.publisher.lines.following._followed) for bot in bots
    )


async def asked(stage: Stage) -> None:
    """Leo's question waits for Marta, whom the bot knows, and everything around it is done."""
    await stage.ask()
    await stage.card()
    await stage.marta.slash("/approvals")
    await settled(stage)


def changed(stage: Stage, request: SignedRequest, change: Callable[[Payload], None]) -> SignedRequest:
    """The same request, signed by Slack with another content."""
    payload = json.loads(json.dumps(request.payload))
    change(payload)
    return stage.sandbox.slack.deliverer.sign_interaction(payload)


async def sent(stage: Stage, request: SignedRequest) -> Delivery:
    """The answer to a request, once all that was to be done after it is done."""
    [answer] = await stage.sandbox.send_identical(request, times=1)
    await settled(stage)
    return answer


# --- not from Slack, or not readable ---


async def test_what_is_forged_old_or_garbage_changes_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, NOTHING, work=False) as stage:
        good = signed(stage, BODY)
        garbage = [
            b"{no json",
            b"\xff\xfe\x00",
            b"[]",
            b"null",
            b"payload=%7Bno",
            b"payload=[]",
            b"payload=" + b"[" * 5_000,
            b"[" * 100_000,
            b"payload=" + b"9" * 5_000,
            b"a" * 100,
            b"",
        ]
        long = b"x" * (2 * 1024 * 1024 + 1)
        refused = [
            (BODY, {}),
            (BODY, {name: good[name] for name in good if name != "X-Slack-Signature"}),
            (BODY, {name: good[name] for name in good if name != "X-Slack-Request-Timestamp"}),
            (BODY, good | {"X-Slack-Signature": "v0=" + "0" * 64}),
            (BODY, signed(stage, BODY, secret="another")),
            (BODY, signed(stage, BODY, age=301)),
            (BODY, signed(stage, BODY, age=-360)),  # it grows older until it is sent
            (BODY.replace(b"C0SUPPORT", b"C0OTHERS"), good),
            (long, signed(stage, long)),
            *((body, signed(stage, body)) for body in garbage),
        ]
        before = contents(database)
        answers = [await post(stage, body, headers) for body, headers in refused]
        await settled(stage)
        assert contents(database) == before
        assert answers[:9] == [401] * 8 + [413]
        assert all(400 <= answer < 500 for answer in answers[9:]), answers[9:]


async def test_no_get_does_anything(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    async with staged(database, monkeypatch, NOTHING, work=False) as stage, aiohttp.ClientSession() as http:
        before = contents(database)
        for path in ("/slack/events", "/slack/events?payload=%7B%7D", "/approve", "/"):
            async with http.get(f"{stage.processes[0].url}{path}") as answer:
                assert answer.status in {404, 405}
        assert contents(database) == before


# --- clicks ---


def value(text: Any) -> Callable[[Payload], None]:
    """A click whose button carried something else."""

    def change(payload: Payload) -> None:
        payload["actions"][0]["value"] = text

    return change


def action_id(text: str) -> Callable[[Payload], None]:
    """A click on a button that is not there."""

    def change(payload: Payload) -> None:
        payload["actions"][0]["action_id"] = text

    return change


NOT_KNOWN = "This button is not one I know, so nothing was changed."
NOT_HERE = "This approval does not exist here; nothing was changed."


CLICKS = [
    value("garbage"),
    value("ap_x:0"),
    value("ap_x:99999999999999999999"),
    value("ap_x:1' OR true --"),
    value({"approval_id": "ap_x"}),
    value("\0:1"),
    action_id("approve_everything"),
]


async def test_a_click_on_what_was_never_shown_is_told_so(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await asked(stage)
        before = contents(database)
        for change in CLICKS:
            told = len(stage.marta.ephemerals)
            click = changed(stage, stage.marta.prepare_click(stage.cards[0], "Approve"), change)
            assert (await sent(stage, click)).status == 200
            new = [stage.marta.read(message) for message in stage.marta.ephemerals[told:]]
            assert new == [NOT_KNOWN], click.payload["actions"]
        assert contents(database) == before


@pytest.mark.parametrize(
    ("target", "said"), [("ap_made_up:1", NOT_HERE), ("{}:7", "look at the card as it is now")]
)
async def test_a_click_on_a_content_that_there_never_was_is_on_the_record_alone(
    database: Database, monkeypatch: pytest.MonkeyPatch, target: str, said: str
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await asked(stage)
        before = contents(database, but=RECORD)
        approval_id = (await stage.approval()).id
        click = stage.marta.prepare_click(stage.cards[0], "Approve")
        await sent(stage, changed(stage, click, value(target.format(approval_id))))
        assert said in stage.marta.read(stage.marta.ephemerals[-1])
        assert contents(database, but=RECORD) == before
        assert stage.provider.refunds == ()


# --- windows ---


def metadata(text: Any) -> Callable[[Payload], None]:
    """A window that carries something else."""

    def change(payload: Payload) -> None:
        payload["view"]["private_metadata"] = text

    return change


async def test_a_window_that_carries_something_else_changes_nothing_and_says_so(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [
        (metadata("ap_made_up:1"), "does not exist here"),
        (metadata("garbage"), "nothing was changed"),
        (metadata(""), "nothing was changed"),
        (metadata('{"approval": "x"}'), "nothing was changed"),
    ]
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await asked(stage)
        for button in ("Edit", "Reject"):
            await open_form(stage, button)
            await settled(stage)
            before = contents(database, but=RECORD)
            stage.marta.fill({"Reason": "because"})
            for change, said in cases:
                answer = await sent(stage, changed(stage, stage.marta.prepare_submit(), change))
                assert answer.status == 200
                assert json.loads(answer.body)["response_action"] == "update"
                assert said in answer.body
            assert contents(database, but=RECORD) == before
            await stage.marta.close(all=True)


async def test_a_draft_that_nobody_made_is_not_confirmed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await asked(stage)
        await open_form(stage, "Edit")
        approval_id = (await stage.approval()).id
        before = contents(database, but=RECORD)

        def confirm(payload: Payload) -> None:
            payload["view"] |= {"callback_id": Callback.CONFIRM, "private_metadata": f"{approval_id}:1:df_no"}

        answer = await sent(stage, changed(stage, stage.marta.prepare_submit(), confirm))
        assert "These changes are no longer there" in answer.body
        assert contents(database, but=RECORD) == before


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("Payments", "", "Give at least 1; there are 0"),
        ("Payments", "pay_0007\npay_0007", "give every payment once"),
        ("Reason", "x" * 201, "at most 200 characters"),
    ],
)
async def test_a_value_that_does_not_fit_is_said_at_its_field_and_not_stored(
    database: Database, monkeypatch: pytest.MonkeyPatch, field: str, typed: str, said: str
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await asked(stage)
        await open_form(stage, "Edit")
        await settled(stage)
        before = contents(database)
        await sent(stage, changed(stage, stage.marta.prepare_submit(), typing(field, typed)))
        assert said in " ".join(json.loads(stage.sandbox.deliveries[-1].body)["errors"].values())
        assert contents(database) == before


def typing(field: str, typed: Any) -> Callable[[Payload], None]:
    """A submission of what Slack's own client would not let anybody type."""

    def change(payload: Payload) -> None:
        name = {"Payments": "payment_ids", "Reason": "reason"}[field]
        for block_id, inputs in payload["view"]["state"]["values"].items():
            if block_id.endswith(f".{name}"):
                for element in inputs.values():
                    element["value"] = typed

    return change


# --- messages ---


async def test_a_message_that_is_far_too_long_is_refused_with_the_limit(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, NOTHING) as stage:
        await stage.leo.slash("/approvals")
        before = contents(database)
        event = json.loads(BODY)
        event["event"]["text"] = f"<@U0BOT> {'refund ' * 15_000}"
        assert await post(stage, body := json.dumps(event).encode(), signed(stage, body)) == 200
        await settled(stage)
        assert "keep it under 40,000 characters" in stage.leo.read(stage.leo.ephemerals[-1])
        assert contents(database) == before


async def test_a_character_that_no_database_takes_stops_no_message(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        event = json.loads(BODY)
        event["event"]["text"] = "<@U0BOT> please \0 refund \ud800 the failed payments"
        assert await post(stage, body := json.dumps(event).encode(), signed(stage, body)) == 200
        await stage.card()
        await stage.marta.slash("/approvals", "show \0")
        await open_form(stage, "Reject")
        await sent(stage, changed(stage, stage.marta.fill({"Reason": "x"}).prepare_submit(), nul))
        assert (await stage.approval()).reason == "no\ufffd way"


def nul(payload: Payload) -> None:
    """A reason that holds a zero byte."""
    for inputs in payload["view"]["state"]["values"].values():
        for element in inputs.values():
            element["value"] = "no\0 way"
