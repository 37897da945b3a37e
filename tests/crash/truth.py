"""What must hold in the end: effects, the model's messages, cards, record, and that nothing is left over."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from agent.house import House
from agent.policy import load_policy
from agent.toolbox import load_tools
from agent.usercode import UserCode
from bot.blocks.bounded import Message as Rendered
from bot.publish import SlackPublisher
from bot.sandbox import Message
from bot.slack import Team
from bot.texts import texts
from bot.wake import Wake
from store import approvals, audit, calls, cards
from store.records import Approval, Call, Card
from store.transitions import ApprovalStatus, CallStatus, RunStatus
from tests.crash.scene import LAST_WORDS, Scene, until

GIVEN_UP = cards.GIVEN_UP


@dataclass(frozen=True)
class Expected:
    """The first approval's last status, the refunds at the provider, and the attempts; None: any number.

    Of what may be repeated there may be more attempts: on a machine that stands still for a second the next
    process loses its lease, too.
    `tried_again` is the end once somebody lets that be done; None: nobody does, and it is closed after a day.
    """

    status: ApprovalStatus
    refunds: int | None
    attempts: int | None
    tried_again: "Expected | None" = None


async def look(scene: Scene, wanted: Expected, *, ended: bool) -> None:
    """Wait until it is quiet, then look at everything; AssertionError says what is wrong.

    `ended`: the run is over; otherwise it waits for somebody who says what became of the call.
    """
    await until(lambda: is_quiet(scene, ended=ended), "the run did not come to rest")
    await press_what_is_left(scene)
    assert (await scene.approval()).status is wanted.status
    await look_at_effects(scene, wanted)
    if ended:
        await look_at_run(scene)
    await look_at_cards(scene)
    await look_at_record(scene)
    await look_at_leftovers(scene)


# --- rest ---

_BUSY = """SELECT
  (SELECT count(*) FROM runs WHERE status IN ('queued', 'running')) AS runs,
  (SELECT count(*) FROM calls WHERE status = 'executing') AS calls,
  (SELECT count(*) FROM approvals WHERE status IN ('approved', 'executing')) AS approvals,
  (SELECT count(*) FROM cards WHERE shown_version < wanted_version OR token IS NOT NULL) AS cards,
  (SELECT count(*) FROM notices WHERE posted_at IS NULL) AS notices"""


async def is_quiet(scene: Scene, *, ended: bool) -> bool:
    """Whether nothing is on its way, and the run is over or waits for people."""
    row = await scene.stage.db.one(_BUSY)
    run = await scene.stage.run()
    waits = RunStatus.COMPLETED if ended else RunStatus.AWAITING_APPROVAL
    assert run.status is not RunStatus.FAILED, f"the run failed: {run.error}"
    return run.status is waits and row is not None and not any(row.values())


async def press_what_is_left(scene: Scene) -> None:
    """A message that no row knows, because its poster died, is true as soon as somebody presses it."""
    marta = scene.stage.marta
    for message in [m for m in scene.stage.cards if "Approve" in marta.buttons(m)]:
        if await _row_of(scene, message) is None:
            await marta.click(message, "Approve")
            await until(lambda m=message: "Approve" not in marta.buttons(m.ts), "a lost card that heals")
    await until(lambda: is_quiet_again(scene), "cards that do not come to rest")


async def is_quiet_again(scene: Scene) -> bool:
    """Whether every card shows its row."""
    return await cards.count_behind(scene.stage.db) == 0


async def _row_of(scene: Scene, message: Message) -> str | None:
    row = await scene.stage.db.one("SELECT id FROM cards WHERE ts = %s", [message.ts])
    return None if row is None else str(row["id"])


# --- what happened ---


async def look_at_effects(scene: Scene, wanted: Expected) -> None:
    """Each payment was refunded once, all of what was approved or as many as one process had made."""
    refunds = await scene.provider.refunds()
    counted = Counter(refund.payment_id for refund in refunds)
    twice = [payment for payment, times in counted.items() if times > 1]
    assert not twice, f"refunded twice: {len(twice)} payments"
    if wanted.refunds is not None:
        assert len(refunds) == wanted.refunds, f"{len(refunds)} refunds, not {wanted.refunds}"
    acted = await acting(scene)
    if acted is None:
        assert not refunds, "refunds that nobody approved"
    else:
        strangers = set(counted) - set(acted.shown.items)
        missing = set(acted.shown.items) - set(counted)
        assert not strangers, f"refunded and never approved: {sorted(strangers)[:3]}"
        assert not missing or acted.status is ApprovalStatus.UNKNOWN, f"not refunded: {sorted(missing)[:3]}"
        keys = [refund.key for refund in refunds if not refund.key.startswith(f"{acted.id}:")]
        assert not keys, f"other keys: {keys[:3]}"
        call = await calls.read(scene.stage.db, acted.call_id)
        assert call is not None
        await look_at_attempts(scene, wanted, call)


async def look_at_attempts(scene: Scene, wanted: Expected, call: Call) -> None:
    """As many as must be, and each but the first only because the one before it was given back, or let."""
    attempts, least = call.attempts, 0 if wanted.attempts is None else wanted.attempts
    if not scene.kind.repeatable:
        assert wanted.attempts in (None, attempts), f"{attempts} attempts, not {wanted.attempts}"
        let = 1 + scene.tries
        assert attempts == let, f"{attempts} attempts of what may not be repeated"
        return
    assert attempts >= least, f"{attempts} attempts, not {least}"
    events = await audit.of(scene.stage.db, call.run_id)
    given_back = {
        event.data["attempts"]
        for event in events
        if (event.kind, event.call_id) == ("call.released", call.id) and isinstance(event.data, dict)
    }
    unasked = [attempt + 1 for attempt in range(1, attempts) if attempt not in given_back]
    assert not unasked, f"attempts {unasked} of {attempts}, though none before was given back"


async def acting(scene: Scene) -> Approval | None:
    """The approval that may act: the newest, if it was approved."""
    newest = await scene.stage.approval()
    return newest if newest.attempted else None


async def look_at_run(scene: Scene) -> None:
    """The run has ended with the model's words, and the model was told about each of its calls once."""
    run = await scene.stage.run()
    assert (run.status, run.answer) == (RunStatus.COMPLETED, LAST_WORDS), f"{run.status}: {run.answer}"
    assert scene.stage.model.violations == [], f"{scene.stage.model.violations[0]}"
    orphans = orphans_of(scene.stage.model.requests[-1].messages)
    assert not orphans, f"calls without one result each: {orphans}"
    thread = scene.stage.sandbox.channel("C0SUPPORT").messages
    said = [m for m in thread if LAST_WORDS in scene.stage.marta.read(m)]
    assert said, "the last words are not in the thread"


def orphans_of(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """The ids of calls that do not have exactly one result, in the message that follows."""
    wrong = []
    for at, message in enumerate(messages):
        following = messages[at + 1]["content"] if at + 1 < len(messages) else []
        told = Counter(block["tool_use_id"] for block in following if block["type"] == "tool_result")
        asked = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        wrong += [call for call in asked if told[call] != 1]
        if message["role"] == "assistant":
            wrong += [call for call in told if call not in asked]
    return wrong


async def look_at_cards(scene: Scene) -> None:
    """Every copy in Slack is what is rendered from its row now, and nothing else there has buttons."""
    found = await approvals.of_run(scene.stage.db, (await scene.stage.run()).id)
    copies = await cards.of_approvals(scene.stage.db, [one.id for one in found])
    known = {copy.ts for copy in copies}
    marta = scene.stage.marta
    strangers = [m for m in scene.stage.cards if m.ts not in known and marta.buttons(m)]
    assert not strangers, f"{len(strangers)} messages with buttons that belong to no card"
    async with UserCode() as user_code:
        publisher = await _publisher(scene, user_code)
        for copy in copies:
            [row] = [one for one in found if one.id == copy.approval_id]
            _compare(scene, copy, row, await publisher.card_of(row))


async def _publisher(scene: Scene, user_code: UserCode) -> SlackPublisher:
    settings = scene.stage.settings
    tools = load_tools(settings.tools)
    workspace = scene.stage.sandbox.workspace
    team = Team(workspace.team_id, f"https://{workspace.domain}.slack.com/", workspace.app.bot_user, None)
    policy = load_policy(settings.policy, tools, home_team=team.team_id)
    house = House(db=scene.stage.db, tools=tools, policy=policy, user_code=user_code, model=None)
    return SlackPublisher(house, None, team, texts("en"), name="the judge", wake=Wake())  # type: ignore[arg-type]


def _compare(scene: Scene, copy: Card, row: Approval, true: Rendered) -> None:
    if copy.shown_version >= GIVEN_UP:
        return
    assert copy.ts is not None and copy.channel_id is not None, "a card was never posted"
    assert copy.shown_version == row.version, f"a card shows version {copy.shown_version} of {row.version}"
    channel = scene.stage.sandbox.workspace.channels[copy.channel_id]
    [message] = [m for m in channel.messages if m.ts == copy.ts]
    shown, wanted = _plain(message.blocks), _plain(true.arguments()["blocks"])
    assert shown == wanted, f"a card that is {row.status} shows something else: {_first(shown, wanted)}"
    if row.status is not ApprovalStatus.PENDING:
        left = {"Approve", "Edit", "Reject"} & set(scene.stage.marta.buttons(message))
        assert not left, f"a card of an approval that is {row.status} still has {sorted(left)}"


def _first(shown: Any, wanted: Any) -> str:
    """Where the first block that differs begins to."""
    pairs = ((str(one), str(other)) for one, other in zip_longest(shown, wanted))
    one, other = next((one, other) for one, other in pairs if one != other)
    same = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    return f"{one[:40]} … {one[same : same + 200]}, not {other[same : same + 200]}"


def _plain(blocks: Any) -> Any:
    """Blocks without what Slack adds, and without links that become known only later."""
    if isinstance(blocks, Mapping):
        return {
            name: _plain(value) for name, value in blocks.items() if name not in {"block_id", "action_id"}
        }
    if isinstance(blocks, list | tuple):
        return [_plain(block) for block in blocks]
    return blocks


async def look_at_record(scene: Scene) -> None:
    """Every chain holds, without gaps, and says of each attempt when it started and how it ended."""
    db = scene.stage.db
    broken = (await audit.verify(db)).broken
    assert broken == (), f"the record does not hold: {broken[0]}"
    events = await audit.of(db, (await scene.stage.run()).id)
    assert [event.seq for event in events] == list(range(1, len(events) + 1)), "a gap in the record"
    kinds = Counter(event.kind for event in events)
    attempts = sum(call.attempts for call in await calls.of_run(db, (await scene.stage.run()).id))
    assert kinds["attempt.started"] == attempts, f"{kinds['attempt.started']} of {attempts} attempts recorded"
    ends = {"approval.approved", "approval.rejected", "approval.expired"}
    decided = Counter(event.approval_id for event in events if event.kind in ends)
    assert max(decided.values(), default=0) <= 1, f"decided more than once: {decided}"


_LEFT = """SELECT
  (SELECT count(*) FROM runs WHERE token IS NOT NULL)
  + (SELECT count(*) FROM calls WHERE token IS NOT NULL) AS leases,
  (SELECT count(*) FROM held_items h JOIN calls c ON c.id = h.call_id WHERE c.status <> 'unknown') AS items"""


async def look_at_leftovers(scene: Scene) -> None:
    """No lease, no item and no open call is left but those of what nobody knows."""
    db = scene.stage.db
    [left] = await db.query(_LEFT)
    assert (left["leases"], left["items"]) == (0, 0), f"left over: {left}"
    open_calls = [c for c in await calls.of_run(db, (await scene.stage.run()).id) if c.result is None]
    assert all(call.status is CallStatus.UNKNOWN for call in open_calls), "a call has no result"
