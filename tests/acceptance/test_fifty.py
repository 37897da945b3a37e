"""Fifty clicks at once on two processes: one decision, one effect, and everybody is told exactly once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent.scripted import Script
from bot.sandbox import Delivery
from store import audit
from tests.acceptance.children import child
from tests.acceptance.crowds import crowd, crowd_policy
from tests.acceptance.scripts import ask_for_refunds
from tests.acceptance.stage import DEADLINE_SECONDS, ROOT, Stage, staged
from tests.databases import Database

DECIDED = {"approval.voted", "approval.approved", "approval.rejected", "approval.edited"}


@asynccontextmanager
async def two_web_processes(
    database: Database, monkeypatch: pytest.MonkeyPatch, script: Script, policy: Path
) -> AsyncIterator[Stage]:
    """A worker in this process, and two others that Slack delivers to; ended well, nothing is left undone."""
    async with (
        staged(database, monkeypatch, script, policy=policy) as stage,
        child(stage, "web") as one,
        child(stage, "web") as other,
    ):
        stage.sandbox.connect(one.url, other.url)
        yield stage
        await asyncio.gather(one.stop(), other.stop())


async def test_the_same_click_fifty_times_at_once_is_one_decision_one_effect_and_one_sentence(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = ROOT / "policy.toml"
    async with two_web_processes(database, monkeypatch, ask_for_refunds(), policy) as stage:
        asked = await stage.ask()
        click = stage.marta.prepare_click(await stage.card("38 payments"), "Approve")
        assert_acked(await stage.sandbox.send_identical(click, times=50, to=[0, 1]), 50)
        await stage.said(asked, "That is all.")
        assert await decisions(stage) == ["approval.approved"]
        assert_one_refund_each(stage)
    assert len(stage.marta.ephemerals) == 1


async def test_fifty_clicks_of_one_person_are_one_decision_and_a_sentence_each(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds(), processes=2) as stage:
        asked = await stage.ask()
        card = await stage.card("38 payments")
        assert_acked(await stage.marta.clicks(card.snapshot(), "Approve", times=50, to=[0, 1]), 50)
        await stage.said(asked, "That is all.")
        assert await decisions(stage) == ["approval.approved"]
        assert_one_refund_each(stage)
        told = await stage.told(stage.marta, 50)
        assert len([words for words in told if "already approved" in words]) == 49


async def test_fifty_people_at_once_are_one_decision_and_forty_nine_read_who_was_first(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    policy = crowd_policy(tmp_path, 50)
    async with two_web_processes(database, monkeypatch, ask_for_refunds(), policy) as stage:
        people = await crowd(stage, 50)
        asked = await stage.ask()
        card = (await stage.card("38 payments")).snapshot()
        clicks = [person.click(card, "Approve", to=n % 2) for n, person in enumerate(people)]
        assert_acked(await asyncio.gather(*clicks), 50)
        await stage.said(asked, "That is all.")
        assert await decisions(stage) == ["approval.approved"]
        assert_one_refund_each(stage)
        [first] = (await stage.approval()).votes
    told = {person.id: [person.read(note) for note in person.ephemerals] for person in people}
    assert [len(notes) for notes in told.values()] == [1] * 50
    assert "already" not in told.pop(first.person.user_id or "")[0]
    late = [notes[0] for notes in told.values()]
    assert all(f"Already approved by {first.person.name}" in words for words in late), late


@pytest.mark.parametrize("quorum", [2, 3, 4, 5])
async def test_of_eight_voters_at_once_exactly_the_quorum_counts(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, quorum: int
) -> None:
    policy = crowd_policy(tmp_path, 8, quorum)
    async with staged(database, monkeypatch, ask_for_refunds(), processes=2, policy=policy) as stage:
        people = await crowd(stage, 8)
        asked = await stage.ask()
        card = (await stage.card("38 payments")).snapshot()
        clicks = [person.click(card, "Approve", to=n % 2) for n, person in enumerate(people)]
        assert_acked(await asyncio.gather(*clicks), 8)
        await stage.said(asked, "That is all.")
        assert await decisions(stage) == ["approval.voted"] * (quorum - 1) + ["approval.approved"]
        assert len((await stage.approval()).votes) == quorum
        assert_one_refund_each(stage)
        await stage.sandbox.until(
            lambda: all(len(person.ephemerals) == 1 for person in people), timeout=DEADLINE_SECONDS
        )


def assert_acked(deliveries: list[Delivery], times: int) -> None:
    """Every one of them was answered 200 within Slack's three seconds."""
    assert [(each.status, each.failure) for each in deliveries] == [(200, None)] * times


def assert_one_refund_each(stage: Stage) -> None:
    """The 38 payments of the card, once each."""
    refunded = [refund.payment_id for refund in stage.provider.refunds]
    assert (len(refunded), len(set(refunded))) == (38, 38)


async def decisions(stage: Stage) -> list[str]:
    """The kinds of recorded decisions of the newest run."""
    return [e.kind for e in await audit.of(stage.db, (await stage.run()).id) if e.kind in DECIDED]
