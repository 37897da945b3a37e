"""The HTTP side: what is not signed by Slack changes nothing, and health tells the truth."""

import asyncio
import io
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import psycopg
import pytest
from structlog.testing import capture_logs

from bot.sandbox.delivery import sign
from store import runs
from tests.acceptance.scripts import NOTHING
from tests.acceptance.stage import Stage, eventually, staged
from tests.databases import Database

EVENT: dict[str, Any] = {
    "type": "event_callback",
    "team_id": "T0SHOP",
    "event_id": "Ev1",
    "event": {"type": "app_mention", "channel": "C0SUPPORT", "user": "U0LEO", "text": "hi", "ts": "1.1"},
}
BODY = json.dumps(EVENT).encode()


def signed(stage: Stage, body: bytes, *, secret: str | None = None, age: int = 0) -> dict[str, str]:
    """The headers of a request as Slack, or somebody else, signs it."""
    timestamp = str(int(time.time()) - age)
    known = stage.sandbox.workspace.app.signing_secret
    return {
        "Content-Type": "application/json",
        "X-Slack-Request-Timestamp": timestamp,
        "X-Slack-Signature": sign(secret or known, timestamp, body),
    }


async def post(stage: Stage, body: bytes, headers: Mapping[str, str]) -> int:
    """The status of a POST to the first process."""
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{stage.processes[0].url}/slack/events", data=io.BytesIO(body), headers=headers) as answer,
    ):
        return answer.status


async def get(stage: Stage, path: str) -> tuple[int, str]:
    """Status and body of a GET from the first process."""
    async with aiohttp.ClientSession() as http, http.get(f"{stage.processes[0].url}{path}") as answer:
        return answer.status, await answer.text()


async def test_what_is_forged_or_old_is_refused_and_changes_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, NOTHING, work=False) as stage:
        garbled = signed(stage, BODY) | {"X-Slack-Request-Timestamp": "soon"}
        attempts = [
            (BODY, signed(stage, BODY, secret="another")),
            (BODY, signed(stage, BODY, age=301)),
            (BODY + b" ", signed(stage, BODY)),
            (BODY, garbled),
            (BODY, garbled | {"X-Slack-Request-Timestamp": "9" * 400}),
            (BODY, {}),
            (b"\xff\xfe", signed(stage, BODY)),
            (b"ssl_check=1&command=%2Fapprovals&team_id=T0SHOP", {}),
        ]
        assert [await post(stage, body, headers) for body, headers in attempts] == [401] * len(attempts)
        assert await runs.listed(stage.db, unfinished_only=False, limit=1) == []


async def test_the_same_event_with_slack_s_signature_is_taken(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, NOTHING, work=False) as stage:
        assert await post(stage, BODY, signed(stage, BODY)) == 200
        assert len(await runs.listed(stage.db, unfinished_only=False, limit=2)) == 1


async def test_what_slack_sends_to_check_the_address_is_answered(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, NOTHING, work=False) as stage:
        challenge = json.dumps({"type": "url_verification", "challenge": "abc"}).encode()
        assert await post(stage, challenge, signed(stage, challenge)) == 200
        assert await post(stage, b"token=abc&ssl_check=1", {}) == 200


async def test_a_body_that_is_too_long_or_no_json_is_refused(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, NOTHING, work=False) as stage:
        long = b"x" * (2 * 1024 * 1024 + 1)
        assert await post(stage, long, signed(stage, long)) == 413
        assert await post(stage, b"{no json", signed(stage, b"{no json")) == 400


async def test_whoever_hangs_up_in_the_middle_of_a_body_leaves_no_error(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with staged(database, monkeypatch, NOTHING, work=False) as stage:
        with capture_logs() as logs:
            _, writer = await begun(stage)
            writer.close()
            await eventually(lambda: said(logs, "a request was not sent to its end"))
            assert await post(stage, BODY, {}) == 401
        assert not [record for record in caplog.records if record.levelname in {"ERROR", "CRITICAL"}]


async def test_a_body_that_does_not_come_does_not_hold_its_connection(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.web.BODY_SECONDS", 0.2)
    async with staged(database, monkeypatch, NOTHING, work=False) as stage:
        reader, writer = await begun(stage)
        answer = await asyncio.wait_for(reader.read(), 5)  # until the app closes it
        assert answer.startswith(b"HTTP/1.1 408 ")
        writer.close()


async def begun(stage: Stage) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection on which a request's body has begun, and no more."""
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(stage.processes[0].url).port)
    writer.write(b"POST /slack/events HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc")
    await writer.drain()
    return reader, writer


async def said(logs: Sequence[Mapping[str, Any]], event: str) -> bool:
    """Whether something was logged."""
    return any(entry["event"] == event for entry in logs)


async def test_ready_only_while_every_part_is(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    async with staged(database, monkeypatch, NOTHING, work=False) as stage:
        assert (await get(stage, "/healthz"))[0] == 200
        status, body = await get(stage, "/readyz")
        assert status == 200
        assert set(json.loads(body)["checks"]) == {"database", "migrations", "slack", "user_code"}


async def test_not_ready_when_slack_has_taken_the_token_back(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, NOTHING, work=False) as stage:
        await stage.sandbox.admin.revoke_token()
        status, body = await get(stage, "/readyz")
        assert status == 503
        assert not json.loads(body)["checks"]["slack"]["ok"]


async def test_the_numbers_count_acks_and_the_backlog(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, NOTHING, work=False) as stage:
        await post(stage, BODY, signed(stage, BODY))
        _, text = await get(stage, "/metrics")
        assert 'vistobueno_ack_seconds_count{kind="event_callback",status="200"} 1.0' in text
        assert "vistobueno_cards_behind 0.0" in text


async def test_while_the_database_is_away_the_numbers_are_those_of_the_process(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, NOTHING, work=False) as stage:
        await post(stage, BODY, signed(stage, BODY))
        with away(database):
            status, text = await get(stage, "/metrics")
        assert status == 200
        assert "vistobueno_ack_seconds_count" in text
        assert "vistobueno_cards_behind" not in text
        assert "vistobueno_cards_behind" in (await get(stage, "/metrics"))[1]


@contextmanager
def away(database: Database) -> Iterator[None]:
    """The database takes no connection meanwhile, and those that there were are gone."""
    elsewhere = urlsplit(database.admin_url)._replace(path="/postgres").geturl()
    with psycopg.connect(elsewhere, autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {database.name} ALLOW_CONNECTIONS false")
        admin.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", [database.name]
        )
        try:
            yield
        finally:
            admin.execute(f"ALTER DATABASE {database.name} ALLOW_CONNECTIONS true")
