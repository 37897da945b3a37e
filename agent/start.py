"""Begins a run from a person's message or the command line, stops one, or lets a failed one go on."""

from dataclasses import dataclass

from agent import results
from agent.house import House
from agent.why import Code, because
from store import runs
from store.errors import after_commit
from store.records import Actor, Run

LONGEST_TASK = 40_000  # characters: Slack cuts a message there


class TaskEmpty(ValueError):
    """There is nothing to do in the message."""

    def __init__(self) -> None:
        super().__init__("the task is empty: say what the agent should do")


class TaskTooLong(ValueError):
    """The message is longer than `limit` characters."""

    def __init__(self, length: int) -> None:
        self.length, self.limit = length, LONGEST_TASK
        super().__init__(f"the task has {length:,} characters and may have {LONGEST_TASK:,}: shorten it")


class WrongStatus(Exception):
    """The run is in a status in which this cannot be done; `stopped_by` is who stopped it, if it was."""

    def __init__(self, run: Run, stopped_by: Actor | None = None) -> None:
        self.run, self.stopped_by = run, stopped_by
        super().__init__(f"run {run.id} is {run.status}")


@dataclass(frozen=True)
class Started:
    """A queued run; `created` is False when its key was known, `waits` when another run comes first."""

    run: Run
    created: bool
    waits: bool


async def start_run(
    house: House,
    *,
    team_id: str,
    channel_id: str,
    thread_ts: str | None,
    requester: Actor,
    text: str,
    source_key: str,
) -> Started:
    """Queue a run, once for each `source_key`, with the notice that it was received; committed on return.

    Raises TaskEmpty or TaskTooLong.
    """
    task = text.strip()
    if not task:
        raise TaskEmpty
    if len(task) > LONGEST_TASK:
        raise TaskTooLong(len(task))
    run, created = await runs.start(
        house.db,
        team_id=team_id,
        channel_id=channel_id,
        thread_ts=thread_ts,
        agent=house.policy.agent.name,
        task=task,
        requester=requester,
        source_key=source_key,
    )
    with after_commit():
        return Started(run, created, await runs.in_the_way(house.db, run.id) is not None)


async def cancel_run(house: House, run_id: str, actor: Actor) -> Run | None:
    """Stop a run: what waits is cancelled, what executes is let finish. None: there is no such run.

    Raises WrongStatus when it had ended.
    """
    told, why = results.cancelled("").to_json(), because(Code.RUN_STOPPED)
    cancelled = await runs.cancel(house.db, run_id, actor, told, why.to_json())
    return await _after(house, run_id, cancelled)


async def retry_run(house: House, run_id: str, actor: Actor) -> Run | None:
    """Let a failed run go on from its last turn. None: there is no such run.

    Raises WrongStatus when it is not failed, or its conversation has another run under way.
    """
    return await _after(house, run_id, await runs.retry(house.db, run_id, actor))


async def _after(house: House, run_id: str, done: bool) -> Run | None:
    if done:
        with after_commit():
            return await runs.read(house.db, run_id)
    run = await runs.read(house.db, run_id)
    if run is not None:
        raise WrongStatus(run, await runs.stopped_by(house.db, run_id))
    return None
