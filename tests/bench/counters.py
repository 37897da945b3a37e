"""What the server counts (WAL, its flushes, transactions that wrote) and the statements on the wire."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import IO, Any, TypeAlias

import psycopg
from psycopg.pq import Trace

Connection: TypeAlias = "psycopg.Connection[Any] | psycopg.AsyncConnection[Any]"

# Of the whole server, which nothing else uses. Only a transaction that writes takes an id.
READ = """SELECT pg_snapshot_xmax(pg_current_snapshot())::text::float,
  (SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal')::float,
  (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float / 1024"""
FLUSH = "SELECT pg_stat_force_next_flush()"
WAL_WRITER_SECONDS = 0.3  # its own flushes belong to what came before


@dataclass(frozen=True)
class Counts:
    """For one approval; `commits` are the transactions that wrote."""

    statements: float
    round_trips: float
    commits: float
    wal_fsyncs: float
    wal_kb: float


async def count(
    admin: psycopg.Connection[Any],
    one: Callable[[], Awaitable[object]],
    connections: Sequence[Connection],
    n: int,
) -> Counts:
    """Count `n` times `one`, which works on these connections only."""
    statements, round_trips = await _wire(one, connections)
    before = await _read(admin, connections)
    for _ in range(n):
        await one()
    await asyncio.sleep(WAL_WRITER_SECONDS)
    after = await _read(admin, connections)
    commits, fsyncs, kb = ((b - a) / n for a, b in zip(before, after, strict=True))
    return Counts(statements, round_trips, round(commits, 1), round(fsyncs, 1), round(kb, 1))


async def _read(admin: psycopg.Connection[Any], connections: Sequence[Connection]) -> tuple[float, ...]:
    """Read the counters, after every connection's server process has handed in its own."""
    for connection in connections:
        if isinstance(connection, psycopg.AsyncConnection):
            await connection.execute(FLUSH)
        else:
            connection.execute(FLUSH)
    found = admin.execute(READ).fetchone()
    assert found is not None
    return tuple(found)


async def _wire(one: Callable[[], Awaitable[object]], connections: Sequence[Connection]) -> tuple[int, int]:
    """How many statements one approval sends, and in how many round trips, by libpq's own trace."""
    with ExitStack() as traces:
        files = [traces.enter_context(_trace(connection)) for connection in connections]
        await one()
    sent = [_sent(file) for file in files]
    return sum(statements for statements, _ in sent), sum(trips for _, trips in sent)


@contextmanager
def _trace(connection: Connection) -> Iterator[IO[str]]:
    # closed by the interpreter: it is read after the trace has ended
    file = tempfile.TemporaryFile("w+")  # noqa: SIM115
    connection.pgconn.trace(file.fileno())
    connection.pgconn.set_trace_flags(Trace.SUPPRESS_TIMESTAMPS)
    try:
        yield file
    finally:
        connection.pgconn.untrace()


def _sent(trace: IO[str]) -> tuple[int, int]:
    """Statements and round trips; a line is who sent it (F or B), its length, its kind and its content."""
    with trace:
        trace.seek(0)
        lines = [line.split("\t") for line in trace if line[:2] in ("F\t", "B\t")]
    statements = sum(line[0] == "F" and line[2].strip() in ("Query", "Execute") for line in lines)
    trips = sum(this[0] == "F" and after[0] == "B" for this, after in pairwise(lines))
    return statements, trips
