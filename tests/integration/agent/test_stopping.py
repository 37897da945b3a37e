"""A person stops a run, and what they are told of it is so."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent.cancel import NotStopped, Stopped, cancel_as
from agent.model import ModelError
from agent.scripted import call, say, script, step
from agent.start import cancel_run, retry_run
from store import approvals, calls, runs
from store.errors import DatabaseUnavailable, StoreError, Unconfirmed
from store.transitions import RunStatus
from tests.databases import Database
from tests.integration.agent.office import LEO, Office, office

PAY = script(step(call("pay", {"bills": ["b1"]})))
TIP = script(step(call("tip", {"bills": ["b1"]})), step(say("Done."), optional=True))


async def away(*args: Any) -> None:
    raise DatabaseUnavailable("The database could not be reached.")


def goes_away_after(patch: pytest.MonkeyPatch, name: str) -> None:
    """The database is away as soon as the run has been written to by that statement."""
    real = getattr(runs, name)

    async def written(*args: Any, **values: Any) -> Any:
        done = await real(*args, **values)
        for module, read in ((runs, "read"), (runs, "in_the_way"), (approvals, "of_run")):
            patch.setattr(module, read, away)
        return done

    patch.setattr(runs, name, written)


async def by_command(o: Office, run_id: str) -> object:
    return await cancel_run(o.house, run_id, LEO)


async def by_requester(o: Office, run_id: str) -> object:
    return await cancel_as(o.house, run_id, o.person("U0LEO"))


@pytest.mark.parametrize("stop", [by_command, by_requester])
async def test_who_stopped_a_run_never_hears_that_nothing_was_recorded(
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stop: Callable[[Office, str], Awaitable[object]],
) -> None:
    async with office(database, tmp_path, PAY) as o:
        asked = await o.propose()
        with monkeypatch.context() as patch:
            goes_away_after(patch, "cancel")
            with pytest.raises(Unconfirmed):
                await stop(o, asked.run_id)
        assert (await o.run(asked.run_id)).status is RunStatus.CANCELLED


async def test_nor_who_lets_it_go_on_or_begins_one(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with office(database, tmp_path, script(step(say("Done."), optional=True))) as o:
        run = await o.start()
        o.model.faults = [ModelError("It refuses.")]
        await o.work()
        for name, again in (
            ("retry", lambda: retry_run(o.house, run.id, LEO)),
            ("start", lambda: o.begin("x", key="2")),
        ):
            with monkeypatch.context() as patch:
                goes_away_after(patch, name)
                with pytest.raises(Unconfirmed):
                    await again()
        assert (await o.run(run.id)).status is RunStatus.QUEUED


async def test_a_database_that_is_away_before_has_recorded_nothing(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with office(database, tmp_path, PAY) as o:
        asked = await o.propose()
        with monkeypatch.context() as patch:
            patch.setattr(runs, "cancel", away)
            with pytest.raises(DatabaseUnavailable) as told:
                await cancel_as(o.house, asked.run_id, o.person("U0LEO"))
        assert not isinstance(told.value, Unconfirmed) and isinstance(told.value, StoreError)
        assert (await o.run(asked.run_id)).status is RunStatus.AWAITING_APPROVAL


async def test_a_call_that_asked_nobody_is_said_to_be_under_way(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with office(database, tmp_path, TIP) as o:
        run = await o.start()
        stopped: list[Any] = []
        finish = calls.finish_done

        async def stopped_first(*args: Any, **values: Any) -> Any:
            stopped.append(await cancel_as(o.house, run.id, o.person("U0LEO")))
            return await finish(*args, **values)

        monkeypatch.setattr(calls, "finish_done", stopped_first)
        await o.work()
        [told] = stopped
        assert isinstance(told, Stopped) and told.under_way and told.left == ()
        assert o.world.paid == ["b1"] and (await o.run(run.id)).status is RunStatus.CANCELLED


async def test_who_stops_what_was_rejected_is_told_by_whom(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, PAY) as o:
        asked = await o.propose()
        await o.reject(asked)
        late = await cancel_as(o.house, asked.id, o.person("U0LEO"))
        assert isinstance(late, NotStopped) and late.by is not None
        assert (late.ended, late.by.name, late.at is None) == ("rejected", "Marta", False)
