"""How many examples the property tests try, and from which seed.

`short`, for `make test`: the same ones each time, so that a failure comes again by itself. `long`, for
`make test-long`: others each time; a failure prints its seed, and VISTOBUENO_TEST_SEED tries that one again.
With VISTOBUENO_TEST_UNSHRUNK a failure is told as it was found: a mutant needs no shortest example.
"""

import os
import random
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings

_PHASES = (Phase.generate,) if os.environ.get("VISTOBUENO_TEST_UNSHRUNK") else tuple(Phase)
_EITHER = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None, phases=_PHASES)

settings.register_profile("short", _EITHER, max_examples=200, stateful_step_count=20)
settings.register_profile("long", _EITHER, max_examples=5_000, stateful_step_count=30)

PARTS = {"short": 2, "long": 20}  # so that several processes can share the work
# After ten examples Hypothesis goes on with five variations of each, which differ in a step or two: they find
# nothing more in a machine as large as ours, and cost as much as new ones.
NEW_ONES = 10


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with a `part` is tried in as many parts as its profile has."""
    if "part" in metafunc.fixturenames:
        metafunc.parametrize("part", range(PARTS[_profile()]))


@pytest.fixture
def examples(part: int) -> Iterator[tuple[settings, int]]:
    """For each run of the machine that the part is made of: the settings, and the seed."""
    profile = _profile()
    given = os.environ.get("VISTOBUENO_TEST_SEED")
    seed = int(given) if given else random.SystemRandom().randrange(2**32) if profile == "long" else 0
    print(f"VISTOBUENO_TEST_SEED={seed}, part {part} of {profile}")  # told if it fails
    whole = settings.get_profile(profile)
    runs = whole.max_examples // PARTS[profile] // NEW_ONES
    return ((settings(whole, max_examples=NEW_ONES), seed + part * runs + run) for run in range(runs))


def _profile() -> str:
    return "long" if settings.get_current_profile_name() == "long" else "short"
