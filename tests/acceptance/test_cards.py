"""Cards match their rows: lost posts, refused blocks and deleted messages heal by themselves."""

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, LiteralString, TypeAlias

import psycopg
import pytest

from bot.blocks.card import CardContext
from bot.publish import SlackPublisher
from bot.sandbox import Fault
from store import approvals, cards, notices
from store.errors import DatabaseUnavailable, StatementRefused, StoreError, Unconfirmed
from store.records import Approval, Card, Notice
from tests.acceptance.scripts import ONLY_ASK, ask_for_refunds
from tests.acceptance.stage import APPROVALS, SUPPORT, Stage, eventually, staged
from tests.acceptance.test_messages import HELLO
from tests.databases import Database

PlaceOf: TypeAlias = Callable[[SlackPublisher, Notice], Awaitable[tuple[str, str | None]]]


async def test_a_card_that_is_deleted_is_posted_again_when_it_changes(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        asked = await stage.ask()
        card = await stage.card()
        click = stage.marta.prepare_click(card, "Approve")
        stage.sandbox.admin.delete_message(APPROVALS, card.ts)
        await stage.sandbox.send_identical(click, times=1)
        await stage.said(asked, "That is all.")
        await stage.sandbox.until(lambda: len(stage.cards) == 1 and stage.marta.buttons(stage.cards[0]) == [])
        assert stage.cards[0].ts != card.ts


@pytest.mark.parametrize("code", ["invalid_blocks", "invalid_attachments"])
@pytest.mark.parametrize("times", [1, 2])
async def test_refused_blocks_become_a_plainer_card_that_can_be_decided(
    database: Database, monkeypatch: pytest.MonkeyPatch, code: str, times: int
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        asked = await stage.ask()
        await stage.said(asked, "Approval asked for")
        card = await stage.card()
        stage.sandbox.admin.delete_message(APPROVALS, card.ts)
        stage.sandbox.faults.add("chat.postMessage", Fault.error(code), times=times)
        await lose_card(stage)
        again = await stage.card("38 payments")
        assert again.ts != card.ts
        assert ("table" in {block["type"] for block in again.blocks}) is False


async def test_a_channel_without_the_bot_gets_its_card_once_the_bot_is_invited(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.sandbox.admin.kick(APPROVALS)
        await stage.ask()
        await eventually(lambda: _failed(stage))
        stage.sandbox.admin.invite(APPROVALS)
        await stage.card("38 payments")


async def test_what_nobody_may_decide_is_said_on_the_card_and_in_the_thread_and_nobody_is_asked(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = "Nobody may decide this: only Marta has the role, and asked for it (four eyes)."
    until = "unless the operator gives somebody else the role support_lead."
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        asked = await stage.marta.mention(SUPPORT, "please refund the failed payments")
        card = await stage.card("38 payments")
        for words in (stage.marta.read(card), card.text):
            assert "please decide" not in words and "support_lead may decide" not in words
            assert (
                "Nobody may decide this: only Marta has the role, and asked for it (four eyes)."
                in words.replace("*", "")
            )
            assert until in words
        await stage.said(asked, why)
        await stage.said(asked, until)
        await stage.marta.mention(SUPPORT, "and now?", thread_ts=asked.ts)
        await stage.said(asked, f"It waits with “Refund 38 payments · €4,120.00”. {why}")


async def test_an_answer_that_was_lost_leaves_a_card_that_works(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        stage.sandbox.faults.add("chat.postMessage", Fault.drop_after(), times=2)
        asked = await stage.ask()
        await stage.marta.click(await stage.card("38 payments"), "Approve")
        await stage.said(asked, "That is all.")
        assert len(stage.provider.refunds) == 38


@pytest.mark.parametrize("part", ["bot.publish.card", "bot.blocks.card.details.sample"])
async def test_a_card_that_cannot_be_made_becomes_a_plain_one_that_can_be_decided(
    database: Database, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    monkeypatch.setattr(part, fail)
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        asked = await stage.ask()
        await stage.marta.click(await stage.card("38 payments"), "Approve")
        await stage.said(asked, "That is all.")
        assert len(stage.provider.refunds) == 38


async def test_a_card_that_cannot_be_made_is_shown_plain_to_who_asks_for_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.publish.card", fail)
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        await stage.card()
        await stage.marta.slash("/approvals", f"show {(await stage.approval()).id}")
        assert "38 payments" in (await stage.told(stage.marta))[0]


async def test_a_card_that_cannot_be_published_holds_up_no_other_and_is_tried_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        seen: list[str] = []
        whole = SlackPublisher._context

        async def context(self: SlackPublisher, approval: Approval) -> CardContext:
            seen.append(approval.id)
            return fail() if approval.id == seen[0] else await whole(self, approval)

        with monkeypatch.context() as patch:
            patch.setattr(SlackPublisher, "_context", context)
            await stage.ask()
            await eventually(lambda: _failed(stage))
            await stage.ask()
            other = await stage.card("38 payments")
        await try_again(stage, "cards")
        await stage.card("38 payments", besides=other)


async def test_a_notice_that_cannot_be_posted_holds_up_no_other_and_is_tried_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, HELLO) as stage:
        with monkeypatch.context() as patch:
            patch.setattr(SlackPublisher, "_place_of", place_of_the_second(SlackPublisher._place_of))
            first = await stage.ask("hello")
            await eventually(lambda: _notice_failed(stage))
            await stage.said(await stage.ask("hello again"), "Hello yourself.")
        await try_again(stage, "notices")
        await stage.said(first, "Hello yourself.")


async def test_the_card_of_what_only_another_version_reads_is_tried_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        card = await stage.card()
        await eventually(lambda: _all_kept(stage))
        with psycopg.connect(database.owner_url, autocommit=True) as owner:
            owner.execute("UPDATE approvals SET rule = rule || '{\"weight\": 1}', version = 2")
            owner.execute("UPDATE cards SET wanted_version = 2")
            await stage.processes[0].app.bot.publisher.publish_cards()
            behind = "SELECT FROM cards WHERE last_error = 'a row of another version of the app'"
            await eventually(lambda: stage.db.query(behind))
            owner.execute("UPDATE approvals SET rule = rule - 'weight'")
        version = card.version
        await try_again(stage, "cards")
        await eventually(lambda: _all_kept(stage))
        assert card.version == version + 1


ERRORS = [
    StatementRefused("The database refused a statement (40P01): deadlock detected", "40P01"),
    DatabaseUnavailable("All of this process's connections to PostgreSQL are busy."),
    Unconfirmed("The database did not answer: the connection was closed."),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_what_is_in_slack_is_not_posted_again_because_the_database_fails_to_keep_it_at_first(
    database: Database, monkeypatch: pytest.MonkeyPatch, error: StoreError
) -> None:
    for module in (cards, notices):
        monkeypatch.setattr(module, "posted", at_second(module.posted, error))
    monkeypatch.setattr(cards, "tell_others", at_second(cards.tell_others, error))
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        asked = await stage.ask()
        await stage.marta.click(await stage.card(), "Approve")
        await stage.said(asked, "That is all.")
        await eventually(lambda: _all_kept(stage))
        assert len(stage.cards) == 1
        said = [stage.marta.read(m) for m in stage.sandbox.channel(SUPPORT).thread(asked.ts)[1:]]
        assert len(said) == len(set(said))


def at_second(whole: Callable[..., Awaitable[Any]], error: StoreError) -> Callable[..., Awaitable[Any]]:
    """A statement that fails the first time; one that got no answer was carried out nevertheless."""
    calls = count()

    async def step(*args: Any, **values: Any) -> Any:
        first = next(calls) == 0
        if not first or isinstance(error, Unconfirmed):
            done = await whole(*args, **values)
            if not first:
                return done
        raise error

    return step


async def _all_kept(stage: Stage) -> bool:
    """Whether all that is to be said is in Slack, as far as the database knows."""
    left = "SELECT FROM notices WHERE posted_at IS NULL UNION ALL SELECT FROM cards WHERE token IS NOT NULL"
    return not await stage.db.query(left) and await cards.count_behind(stage.db) == 0


def fail(*args: Any, **values: Any) -> Any:
    """A fault of ours."""
    raise ValueError("nobody foresaw this")


def place_of_the_second(whole: PlaceOf) -> PlaceOf:
    """The place of every notice but those of the first conversation, which cannot be found."""
    seen: list[object] = []

    async def place(self: SlackPublisher, claimed: Notice) -> tuple[str, str | None]:
        seen.append(claimed.conversation)
        return fail() if claimed.conversation == seen[0] else await whole(self, claimed)

    return place


async def try_again(stage: Stage, table: LiteralString) -> None:
    """Let the time come at which what failed is tried again."""
    await stage.db.query(f"UPDATE {table} SET not_before = NULL")
    stage.processes[0].app.bot.publishing.call()


async def lose_card(stage: Stage) -> None:
    """Let the publisher find that the card is gone."""
    card = await eventually(lambda: _recorded(stage))
    await stage.db.query(
        "UPDATE cards SET ts = NULL, shown_version = 0 WHERE id = %s", [card.id if card else None]
    )
    stage.processes[0].app.bot.publishing.call()


async def _recorded(stage: Stage) -> Card | None:
    """The card, once the database knows where it is."""
    found = await cards.of_approvals(stage.db, [(await stage.approval()).id])
    return next((card for card in found if card.ts is not None), None)


async def _failed(stage: Stage) -> bool:
    waiting = await cards.of_approvals(stage.db, [(await stage.approval()).id]) if await _asked(stage) else []
    return any(card.failures > 0 for card in waiting)


async def _notice_failed(stage: Stage) -> bool:
    return bool(await stage.db.query("SELECT id FROM notices WHERE failures > 0 AND posted_at IS NULL"))


async def _asked(stage: Stage) -> bool:
    return bool(await approvals.listed(stage.db, open_only=True, limit=1))
