"""What was measured, for people."""

from tests.bench.cost import LATER, LIMIT, Cost
from tests.bench.counters import Counts
from tests.bench.delay import GOAL_MS, Delay
from tests.bench.opening import LIMIT_SECONDS, Opening

COST = """\
One approval, with the database durable, on this machine and under its load of today.
The floor is 4 statements by hand, through psycopg's pool: INSERT the paused conversation (10 texts of 1 kB),
UPDATE ... RETURNING it, INSERT the effect, UPDATE to completed.
The steps, which have the limit, are what the product does for the same, through its store, each committed:
save the turn, propose, approve, claim, begin the attempt, the effect, record it and keep the run with its
conversation, complete. Before it approves it also reads the approval; the floor decides without a look.
The whole way is the product's own code from the model's answer that asks to the last words: the steps, the
tool measured twice where user code runs, everything frozen, hashed and compared, the model asked again. The
whole run begins with the person's message, queued and claimed. There is no Slack, publisher or real model.
"""
DELAY = """\
From the time in the decision's row (its statement's start, so its commit is in it) to the call of the tool,
in another process's idle worker: notification, claim, new measurements, and the attempt's own commit.
"""
OPENING = """\
From `make demo`, everything set up before, to the first answer of the URL that it prints: the database's
server and an empty database of its own, the shop, the local Slack, and the app as another process.
"""

SLOW_FLOOR_MS = 4.0
SLOW = f"""\
    CAUTION: the floor takes more than {SLOW_FLOOR_MS:g} ms: the disk is slow or busy. Against a floor that
    mostly waits for the disk, what the product itself costs is hidden: the ratio is flattering."""

BUSY_FACTOR = 3.0
BUSY = f"""\
    CAUTION: the floor's slowest round took more than {BUSY_FACTOR:g} times its quickest: something else is
    using this machine. Run it again when it is idle."""


def _cautions(cost: Cost) -> list[str]:
    least, most = cost.floor_range_ms
    slow, busy = cost.floor_ms > SLOW_FLOOR_MS, most > BUSY_FACTOR * least
    return [*([SLOW] if slow else []), *([BUSY] if busy else [])]


def report(cost: Cost, delay: Delay, opening: Opening) -> str:
    """The whole report."""
    parts, counts = cost.parts_ms, (cost.floor_counts, cost.steps_counts, cost.run_counts)
    steps, reads, ratio, run = cost.steps, cost.steps_and_reads, cost.approval, cost.run
    least, most = cost.floor_range_ms
    return "\n".join(
        [
            COST,
            f"{cost.approvals} approvals each; times are medians.",
            f"  floor             {cost.floor_ms:7.2f} ms   (rounds: {least:.2f} to {most:.2f})",
            f"  steps             {cost.steps_ms:7.2f} ms   {_times(steps.median)} the floor"
            f" (rounds: {steps.least:.2f} to {steps.most:.2f})   limit {LIMIT:g}, later {LATER:g}"
            f"   {_verdict(within_limit(cost))}",
            f"  with that look    {cost.steps_ms + cost.read_ms:7.2f} ms   {_times(reads.median)} the floor"
            f" (rounds: {reads.least:.2f} to {reads.most:.2f})",
            f"  the whole way     {cost.approval_ms:7.2f} ms   {_times(ratio.median)} the floor"
            f" (rounds: {ratio.least:.2f} to {ratio.most:.2f})",
            f"    ask {parts['ask']:.2f}, decide {parts['decide']:.2f}, act {parts['act']:.2f}",
            f"  the whole run     {cost.run_ms:7.2f} ms   {_times(run.median)} the floor"
            f" (rounds: {run.least:.2f} to {run.most:.2f})",
            f"    start {parts['start']:.2f}; CPU of this process {cost.client_cpu_ms:.2f} ms",
            *_cautions(cost),
            "",
            "  per approval                floor     steps  whole run",
            *(_line(label, name, *counts) for name, label in LABELS.items()),
            "",
            DELAY,
            f"  {delay.decisions} decisions: p50 {delay.p50_ms:.1f} ms, p95 {delay.p95_ms:.1f} ms,"
            f" max {delay.max_ms:.1f} ms   goal {GOAL_MS:g} ms for the p50   {_verdict(within_goal(delay))}",
            "",
            OPENING,
            *_opening(opening),
        ]
    )


def _opening(opening: Opening) -> list[str]:
    least, most = opening.again_range_s
    lines = [f"  median            {opening.again_s:7.2f} s    ({least:.2f} to {most:.2f})"]
    if opening.first_s is not None and opening.first_range_s is not None:
        least, most = opening.first_range_s
        lines += [f"  the very first    {opening.first_s:7.2f} s    ({least:.2f} to {most:.2f})"]
    return [*lines, f"    limit {LIMIT_SECONDS:g} s   {_verdict(opens_soon(opening))}"]


LABELS = {
    "statements": "statements",
    "round_trips": "round trips",
    "commits": "commits that wrote",
    "wal_fsyncs": "WAL fsyncs",
    "wal_kb": "WAL, kB",
}


def within_limit(cost: Cost) -> bool:
    """Whether an approval costs no more than it may."""
    return cost.steps.median <= LIMIT


def within_goal(delay: Delay) -> bool:
    """Whether work begins as soon as it should."""
    return delay.p50_ms <= GOAL_MS


def opens_soon(opening: Opening) -> bool:
    """Whether the demo opens as soon as it should, the first time too."""
    return max(opening.again_s, opening.first_s or 0.0) <= LIMIT_SECONDS


def _times(ratio: float) -> str:
    return f"{ratio:.2f} times"


def _verdict(good: bool) -> str:
    return "ok" if good else "TOO MUCH"


def _line(label: str, name: str, *counts: Counts) -> str:
    return f"    {label:<20}" + "".join(f"{getattr(each, name):>10.1f}" for each in counts)
