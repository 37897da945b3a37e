"""Kills at moments that nobody chose: the same run, the same people, and a process that dies anywhere."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress

from agent.scripted import Asked, Expectation
from store import approvals
from store.transitions import ApprovalStatus, RunStatus
from tests.crash.kinds import Kind
from tests.crash.points import Decision
from tests.crash.scene import DAY, FOUND, LATER, LEFT, TRUTHS, Scene, until
from tests.crash.truth import Expected, is_quiet, look

KILLS = 2
"""In one run; each is an attempt more, of which there are five."""
SPAN_SECONDS = 1.5
"""How long after one of the three stages of a run a kill comes at most."""
A_BREATH = 0.05

_ENDS = {
    Decision.REJECT: ApprovalStatus.REJECTED,
    Decision.EXPIRE: ApprovalStatus.EXPIRED,
    Decision.MOVED: ApprovalStatus.SUPERSEDED,
}


def truth_of(decision: Decision, kind: Kind) -> Expectation:
    """What the model may have been told before it speaks its last words."""
    status = _ENDS.get(decision, ApprovalStatus.EXECUTED)
    allowed = [TRUTHS[ApprovalStatus.EXECUTED if decision is Decision.MOVED else status]]
    if not kind.repeatable and status in (ApprovalStatus.EXECUTED, ApprovalStatus.SUPERSEDED):
        allowed.append(TRUTHS[ApprovalStatus.UNKNOWN])

    def told(asked: Asked) -> str | None:
        results = asked.results
        return None if len(results) == 1 and any(met(results[0]) for met in allowed) else "another result"

    return told


async def play(scene: Scene, chance: random.Random) -> list[str]:
    """A run during which the process is killed; what each kill hit, AssertionError says what is wrong."""
    await scene.begin()
    await scene.ask()
    stages = [asyncio.Event() for _ in range(3)]
    killing = asyncio.create_task(_kill_now_and_then(scene, chance, stages))
    living = asyncio.create_task(_live(scene, stages))
    done, _ = await asyncio.wait({killing, living}, return_when=asyncio.FIRST_EXCEPTION)
    for task in {killing, living} - done:
        task.cancel()
    for task in done:
        task.result()
    await _end(scene)
    return killing.result()


async def _kill_now_and_then(
    scene: Scene, chance: random.Random, stages: Sequence[asyncio.Event]
) -> list[str]:
    hit = list[str]()
    for stage in sorted(chance.choices(range(len(stages)), k=KILLS)):
        await stages[stage].wait()
        await asyncio.sleep(chance.uniform(0.0, SPAN_SECONDS))
        if (await scene.stage.run()).status is RunStatus.COMPLETED:
            break
        gone = chance.choice([child for child in scene.began if child.code is None])
        await gone.kill()
        hit.append(f"{gone.command}: {await _state(scene)}")
        await scene.take_over(gone)
    return hit


async def _state(scene: Scene) -> str:
    """Where the run was when the process died."""
    run = (await scene.stage.run()).status
    newest = await approvals.listed(scene.stage.db, open_only=False, limit=1)
    return f"run {run}" + "".join(
        f", approval {one.status}{' (attempted)' if one.attempted else ''}" for one in newest
    )


async def _live(scene: Scene, stages: Sequence[asyncio.Event]) -> None:
    """See the card, decide, whoever has to do it twice; and tell when it is asked, shown and decided."""
    asked, shown, decided = stages
    asked.set()
    await scene.card(FOUND)
    shown.set()
    scene.first = await scene.stage.approval()
    if scene.decision is Decision.MOVED:
        await scene.move_the_world()
    while not await scene.is_decided():
        await _try(scene)
    decided.set()
    if scene.decision is Decision.MOVED:
        await scene.card(LATER)
        while (await scene.stage.approval()).status is ApprovalStatus.PENDING:
            await scene.stage.marta.click(await scene.card(LATER), "Approve")
            await asyncio.sleep(A_BREATH)


async def _try(scene: Scene) -> None:
    """Decide once; whoever sits before a dead process begins again with the next."""
    deciding = asyncio.create_task(scene.decide())
    replaced = asyncio.create_task(scene.replaced.wait())
    await asyncio.wait({deciding, replaced}, return_when=asyncio.FIRST_COMPLETED)
    for task in (deciding, replaced):
        task.cancel()
        with suppress(asyncio.CancelledError, LookupError):  # the card or the form is gone meanwhile
            await task
    await asyncio.sleep(A_BREATH)
    await scene.leave()
    if scene.decision is Decision.EXPIRE:
        await until(scene.is_decided, "the expiry")


async def _end(scene: Scene) -> None:
    await scene.heal()
    await until(lambda: _rests(scene), "the run did not come to rest")
    newest = await scene.stage.approval()
    unknown = newest.status is ApprovalStatus.UNKNOWN
    assert not (unknown and scene.kind.repeatable), "unknown, though it may be repeated"
    status = (await scene.approval()).status
    first = _ENDS.get(scene.decision, ApprovalStatus.UNKNOWN if unknown else ApprovalStatus.EXECUTED)
    assert status is first, f"{status}, not {first}"
    items = {Decision.EDIT: LEFT, Decision.APPROVE: FOUND, Decision.MOVED: LATER}.get(scene.decision, 0)
    wanted = Expected(status, None if unknown else items, None)
    if unknown:
        await look(scene, wanted, ended=False)
        scene.shift(DAY)
    await look(scene, wanted, ended=True)


async def _rests(scene: Scene) -> bool:
    """Whether the run is over, or waits for somebody who says what became of a call."""
    if await is_quiet(scene, ended=True):
        return True
    newest = await scene.stage.approval()
    return newest.status is ApprovalStatus.UNKNOWN and await is_quiet(scene, ended=False)
