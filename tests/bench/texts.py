"""A conversation that weighs the same for everybody: ten texts of 1 kB that compress like prose."""

import random

TEXTS = 10
TEXT_BYTES = 1000
_WORDS = """
amount approve batch card charge check customer decide evening failed invoice item ledger letter month order
payment people preview provider queue reason record refund repeat retry shop support sum thread
"""


def texts() -> list[str]:
    """The ten texts, always the same."""
    chance = random.Random(20)
    return [_text(chance) for _ in range(TEXTS)]


def _text(chance: random.Random) -> str:
    made = ""
    while len(made) < TEXT_BYTES:
        made += chance.choice([*_WORDS.split(), f"{chance.randrange(10**6)}"]) + " "
    return made[:TEXT_BYTES]
