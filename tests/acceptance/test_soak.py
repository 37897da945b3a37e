"""A short soak: the long one is `make soak`."""

from pathlib import Path

from tests.soak.__main__ import Asked, soak


async def test_half_a_minute_of_kills_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    asked = Asked(minutes=1 / 3, runs=30, seed=5, webs=1, workers=2, lease=2.0, pause=(1.0, 3.0))
    soaked = await soak(asked, tmp_path)
    assert soaked.verdict.violations == []
    assert soaked.verdict.runs == {"completed": 30}
    assert sum(soaked.harm.values()) > 0
