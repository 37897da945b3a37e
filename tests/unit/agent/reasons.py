"""A reason of each kind."""

from agent.why import PARTS, Code, Part, Why, because


def one_of(code: Code) -> Why:
    """A reason with this code and something for each of its parts."""
    parts: dict[str, Part] = {name: name.upper() for name in PARTS[code]}
    parts |= {name: 8 for name in {"n", "done", "total", "form", "known"} & parts.keys()}
    parts |= {name: 0.2 for name in {"seconds"} & parts.keys()}
    parts |= {name: because(Code.TOO_OLD) for name in {"why"} & parts.keys()}
    return Why(code, parts)
