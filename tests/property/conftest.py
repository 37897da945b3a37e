"""How many examples the property tests try: few in `make test`, always the same; many in `make test-long`."""

from hypothesis import HealthCheck, Phase, settings

_EITHER = settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
    phases=[Phase.generate],
    print_blob=True,
)

settings.register_profile("short", _EITHER, max_examples=200, stateful_step_count=20, derandomize=True)
settings.register_profile("long", _EITHER, max_examples=5_000, stateful_step_count=40, derandomize=False)
settings.load_profile("short")
