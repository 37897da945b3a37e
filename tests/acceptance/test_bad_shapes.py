"""What Slack signed but never sends: no part of a payload that is missing or of another kind is a crash."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.sandbox.delivery import SignedRequest
from tests.acceptance.scripts import ONLY_ASK
from tests.acceptance.stage import Stage, staged
from tests.acceptance.test_bad_requests import Payload, asked, settled
from tests.acceptance.test_http import EVENT
from tests.acceptance.test_modals import open_form
from tests.databases import Database

MISSING = object()
OTHER_KINDS: tuple[Any, ...] = (
    *(MISSING, None, True, 5, 10**40, "", "\0", "\ud800", "x" * 5_000),
    *([], [5], [None], {}, {"id": {}}, {"id": "\0"}),
)
OTHER_EVENTS = {
    "message": {
        "type": "message",
        "channel": "D0LEO",
        "channel_type": "im",
        "user": "U0NOBODY",
        "text": "hi",
        "ts": "1.2",
    },
    "home": {
        "type": "app_home_opened",
        "user": "U0LEO",
        "channel": "D0LEO",
        "tab": "home",
        "event_ts": "1.1",
    },
    "user": {
        "type": "user_change",
        "user": {
            "id": "U0LEO",
            "team_id": "T0SHOP",
            "name": "leo",
            "profile": {"display_name": "Leo", "team": "T0SHOP"},
        },
        "event_ts": "1.1",
    },
}
NOT_READ = {"blocks"}  # what the bot has drawn itself


def misshapen(payload: Payload) -> Iterator[tuple[str, Payload]]:
    """The payload with one part missing or of another kind, for each part, and where that is."""
    for path in paths(payload):
        for value in OTHER_KINDS:
            changed = copy.deepcopy(payload)
            parent = changed
            for key in path[:-1]:
                parent = parent[key]
            if value is MISSING:
                del parent[path[-1]]
            else:
                parent[path[-1]] = value
            yield f"{'.'.join(map(str, path))} = {'missing' if value is MISSING else value!r}", changed


def paths(value: Any, so_far: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a payload."""
    if so_far and so_far[-1] in NOT_READ:
        return
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inside:
        yield (*so_far, key)
        yield from paths(part, (*so_far, key))


async def crashes(stage: Stage, requests: list[tuple[str, SignedRequest]]) -> list[str]:
    """What the app could not answer, or answered and then fell over."""
    found = []
    with capture_logs() as logs:
        for where, request in requests:
            [answer] = await stage.sandbox.send_identical(request, times=1)
            if answer.status is None or answer.status >= 500:
                found.append(f"{where}: {answer.status}")
        await settled(stage)
    return found + [f"{entry}" for entry in logs if entry.get("exc_info")]


async def example(stage: Stage, kind: str) -> tuple[Payload, Callable[[Payload], SignedRequest]]:
    """A payload as it should be, which approves nothing, and how Slack signs one of its kind."""
    deliverer = stage.sandbox.slack.deliverer
    if kind == "click":
        return stage.marta.prepare_click(stage.cards[0], "Reject").payload, deliverer.sign_interaction
    if kind == "submission":
        await open_form(stage, "Reject")
        return stage.marta.fill({"Reason": " "}).prepare_submit().payload, deliverer.sign_interaction
    if kind == "event":
        event = EVENT | {"event": EVENT["event"] | {"user": "U0NOBODY"}}
        return event, lambda payload: deliverer.sign_json("event_callback", payload)
    if kind in OTHER_EVENTS:
        event = EVENT | {"event": OTHER_EVENTS[kind]}
        return event, lambda payload: deliverer.sign_json("event_callback", payload)
    await stage.marta.slash("/approvals")
    return stage.sandbox.deliveries[-1].payload, deliverer.sign_command


@pytest.mark.parametrize("kind", ["click", "submission", "event", "command", *OTHER_EVENTS])
async def test_a_part_that_is_missing_or_of_another_kind_is_no_crash(
    database: Database, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await asked(stage)
        good, sign = await example(stage, kind)
        # a form holds bytes, and so never half of a pair
        requests = [
            (where, sign(bad)) for where, bad in misshapen(good) if kind != "command" or "ud800" not in where
        ]
        assert len(requests) > 50
        found = await crashes(stage, requests)
        assert not found, "\n".join(found)
        assert stage.provider.refunds == ()
        assert (await stage.approval()).status in {"pending", "rejected"}  # "5" is a reason
