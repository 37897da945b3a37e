"""Another process's worker: it is idle, and stops when its standard input ends (with its parent, then)."""

import asyncio
import sys

from tests.bench.product import product


async def main(url: str, owner_url: str) -> None:
    """Work on the database of `url` until standard input ends."""
    stop = asyncio.Event()
    async with product(url, owner_url, notes_begin=True) as house:
        work = asyncio.create_task(house.worker.run(stop))
        await asyncio.to_thread(sys.stdin.read)
        stop.set()
        await work


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
