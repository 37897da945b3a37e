"""Runs are followed at a pace that Slack bears, and what goes wrong with it stays there."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from slack_sdk.errors import SlackApiError

from agent.progress import Count
from bot.following import BURST, EVERY_SECONDS, MOST_FAILURES, PER_SECOND, Allowance, Busy, Following, Said
from store.errors import DatabaseUnavailable
from store.records import RunId

RUN, OTHER = RunId("r1"), RunId("r2")


@dataclass
class Clock:
    """A clock that stands still until somebody sleeps; at most so many sleeps, so that a test ends."""

    now: float = 0.0
    left: int = 500
    ticked: asyncio.Event = field(default_factory=asyncio.Event)

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.left -= 1
        assert self.left > 0, "it never comes to rest"
        self.now += seconds
        self.ticked.set()
        await asyncio.sleep(0)

    async def reaches(self, moment: float) -> None:
        """Wait until others have slept so long."""
        while self.now < moment:
            self.ticked.clear()
            await self.ticked.wait()


@dataclass
class Shown:
    """What was shown and when; `faults` are raised first, `during` is called while something is shown."""

    clock: Clock = field(default_factory=Clock)
    calls: list[tuple[float, RunId, Said | None]] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)
    during: Callable[[], None] = lambda: None
    posted: bool = True

    async def show(self, run_id: RunId, counted: Said | None) -> bool:
        self.calls.append((self.clock.now, run_id, counted))
        self.during()
        await asyncio.sleep(0)
        if self.faults:
            raise self.faults.pop(0)
        return self.posted

    def following(self) -> Following:
        return Following(self.show, clock=self.clock, sleep=self.clock.sleep)


async def at_rest(following: Following) -> None:
    """Wait until nothing is followed any more."""
    while tasks := [followed.task for followed in following._followed.values() if followed.task]:
        await asyncio.wait(tasks, timeout=10)


def refused(code: str, status: int = 200, retry_after: str = "") -> SlackApiError:
    class Response(dict[str, str]):
        status_code = status
        data = {"ok": False, "error": code}  # noqa: RUF012
        headers = {"Retry-After": retry_after}  # noqa: RUF012

    return SlackApiError("refused", Response())


async def test_many_steps_at_once_are_shown_once() -> None:
    shown = Shown()
    following = shown.following()
    for _ in range(50):
        following.moved(RUN)
    await at_rest(following)
    assert [run for _, run, _ in shown.calls] == [RUN]


async def test_what_another_is_about_is_shown_a_second_later_however_often() -> None:
    shown = Shown(faults=[Busy()] * (MOST_FAILURES + 1))
    following = shown.following()
    following.moved(RUN)
    await at_rest(following)
    assert [at for at, *_ in shown.calls] == [n * EVERY_SECONDS for n in range(MOST_FAILURES + 2)]


async def test_a_run_sleeps_as_long_as_slack_wants_no_updates() -> None:
    shown = Shown(faults=[Busy(60)])
    following = shown.following()
    following.moved(RUN)
    await at_rest(following)
    first, second = (at for at, *_ in shown.calls)
    assert first == 0 and 60 <= second <= 60 + EVERY_SECONDS + 1 / PER_SECOND


async def test_a_step_while_it_is_shown_is_shown_a_second_later() -> None:
    shown = Shown()
    following = shown.following()
    steps = [1, 2, 3]
    shown.during = lambda: following.moved(RUN) if steps and steps.pop() else None
    following.moved(RUN)
    await at_rest(following)
    assert [at for at, *_ in shown.calls] == [0, EVERY_SECONDS, 2 * EVERY_SECONDS, 3 * EVERY_SECONDS]


async def test_one_run_does_not_wait_for_another() -> None:
    shown = Shown()
    following = shown.following()
    following.moved(RUN)
    following.moved(OTHER)
    await at_rest(following)
    assert [(at, run) for at, run, _ in shown.calls] == [(0, RUN), (0, OTHER)]


async def test_a_count_is_shown_as_it_is_each_second_and_not_while_it_stands_still() -> None:
    shown = Shown()
    following, count = shown.following(), Count()
    with following.counting(RUN, count):
        for done in (5, 12, 12, 12, 30):
            count.said = (done, 41)
            await shown.clock.reaches(shown.clock.now + EVERY_SECONDS)
    await at_rest(following)
    counts = [counted for _, _, counted in shown.calls]
    assert counts == [(5, 41), (12, 41), (30, 41), None]


async def test_a_tool_that_begins_is_shown_at_once() -> None:
    shown, pauses = Shown(), asyncio.Event()

    async def sleep(seconds: float) -> None:
        if seconds:
            pauses.set()
            await asyncio.Event().wait()

    following = Following(shown.show, clock=shown.clock, sleep=sleep)
    following.moved(RUN)
    await pauses.wait()
    again = asyncio.Event()
    shown.during = again.set
    with following.counting(RUN, Count()):
        async with asyncio.timeout(10):
            await again.wait()
    await following.close()
    assert len(shown.calls) == 2


async def test_a_tool_that_says_nothing_is_shown_as_it_begins_and_as_it_ends() -> None:
    shown = Shown()
    following = shown.following()
    with following.counting(RUN, Count()):
        await shown.clock.reaches(30)
    await at_rest(following)
    assert [counted for _, _, counted in shown.calls] == [None, None]


async def test_all_runs_together_stay_below_slacks_limit() -> None:
    shown = Shown(Clock(left=5_000))
    following = shown.following()
    shown.during = lambda: following.moved(RUN) if shown.clock.now < 120 else None
    for number in range(20):
        following.moved(RunId(f"r{number}"))
    following.moved(RUN)
    await at_rest(following)
    a_minute = [at for at, *_ in shown.calls if at < 60]
    assert len(a_minute) <= BURST + 60 * PER_SECOND + 1


def test_an_allowance_is_used_up_and_comes_back() -> None:
    clock = Clock()
    allowance = Allowance(2, 0.5, clock)
    assert [allowance.take() for _ in range(4)] == [0, 0, 2, 4]
    clock.now = 100.0
    assert [allowance.take() for _ in range(3)] == [0, 0, 2]
    allowance.pause(30)
    assert allowance.take() == 32


async def test_what_slack_refuses_is_tried_again_a_few_times_and_then_left() -> None:
    shown = Shown(faults=[refused("internal_error") for _ in range(10)])
    following = shown.following()
    following.moved(RUN)
    await at_rest(following)
    assert len(shown.calls) == MOST_FAILURES


@pytest.mark.parametrize(
    "fault", [refused("internal_error"), TimeoutError(), DatabaseUnavailable("It is away.")]
)
async def test_one_fault_costs_one_try(fault: Exception) -> None:
    shown = Shown(faults=[fault])
    following = shown.following()
    following.moved(RUN)
    await at_rest(following)
    assert len(shown.calls) == 2


async def test_a_message_that_is_gone_is_left() -> None:
    shown = Shown(faults=[refused("message_not_found")])
    following = shown.following()
    following.moved(RUN)
    await at_rest(following)
    assert len(shown.calls) == 1


async def test_slack_is_left_alone_for_as_long_as_it_asks() -> None:
    shown = Shown(faults=[refused("ratelimited", 429, "30")])
    following = shown.following()
    following.moved(RUN)
    await at_rest(following)
    assert shown.calls[1][0] >= 30


async def test_what_slack_asks_to_wait_for_is_shown_in_the_end() -> None:
    shown = Shown(faults=[refused("ratelimited", 429, "1")] * 16)
    following = shown.following()
    following.moved(RUN)
    await at_rest(following)
    assert len(shown.calls) == 17


async def test_what_is_not_posted_yet_is_looked_for_a_few_times() -> None:
    shown = Shown(posted=False)
    following = shown.following()
    following.moved(RUN)
    await at_rest(following)
    assert len(shown.calls) == MOST_FAILURES


async def test_a_fault_of_ours_is_nobody_elses() -> None:
    shown = Shown(faults=[ValueError("nobody foresaw this")])
    following = shown.following()
    with following.counting(RUN, Count()):
        await at_rest(following)
    await at_rest(following)
    assert len(shown.calls) == 2  # and it is followed again


async def test_nothing_is_left_behind_when_it_is_closed() -> None:
    shown = Shown()
    following = Following(shown.show)
    with following.counting(RUN, Count()):
        await asyncio.sleep(0)
        await following.close()
        assert following._followed == {}
    await following.close()
