"""The matrix for people, as a table, and for programs, as JSON."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.crash.kinds import AT_STRIPE, KINDS, Kind, lack_of
from tests.crash.matrix import Cell, Played, refunding
from tests.crash.points import Decision, Point

GREEN, RED, MISSING, IMPOSSIBLE = "ok", "RED", "missing", "-"


def mark(point: Point, decision: Decision, kind: Kind, played: Mapping[str, Played], wanted: set[str]) -> str:
    """What stands in the table for one cell; blank: nobody asked for it."""
    if decision in point.impossible:
        return IMPOSSIBLE
    name = Cell(point, decision, kind).name
    if name not in wanted:
        return ""
    return MISSING if name not in played else GREEN if played[name].problem is None else RED


def table(points: Sequence[Point], played: Iterable[Played], wanted: Iterable[str]) -> str:
    """Points down, decisions across, two marks in each: the repeatable tool's and the other's.

    Last come the two at Stripe: at the one that remembers keys, and at the one that forgets them.
    """
    by_name, names = {one.name: one for one in played}, set(wanted)
    wide = max(len(point.name) for point in points) + 2
    columns = [*(decision.value for decision in Decision), "at Stripe"]
    head = " " * wide + "".join(f"{column:<16}" for column in columns)
    rows = [head.rstrip(), " " * wide + "rep.    not     " * len(Decision) + "keys    none"]
    for point in points:
        pairs = [*((decision, KINDS) for decision in Decision), (refunding(point), AT_STRIPE)]
        marks = [mark(point, decision, kind, by_name, names) for decision, kinds in pairs for kind in kinds]
        rows.append((f"{point.name:<{wide}}" + "".join(f"{one:<8}" for one in marks)).rstrip())
    return "\n".join(rows)


def legend(points: Sequence[Point]) -> str:
    """What each point is, and why some cells cannot occur."""
    lines = ["Points:"]
    lines += [f"  {point.name}: {point.words} ({point.way.value})" for point in points]
    lines.append("Cells that cannot occur (-):")
    for point in points:
        reasons: dict[str, list[str]] = {}
        for decision, why in point.impossible.items():
            reasons.setdefault(why, []).append(decision.value)
        lines += [f"  {point.name} / {', '.join(whose)}: {why}" for why, whose in reasons.items()]
    others = [point for point in points if refunding(point) is not Decision.APPROVE]
    lines += [f"At Stripe {point.name} is played with {refunding(point)}, not approved" for point in others]
    return "\n".join(lines)


def problems(played: Iterable[Played]) -> str:
    """What is wrong with the red ones."""
    return "\n".join(f"RED {one.name}: {one.problem}" for one in played if one.problem is not None)


def left_out(cells: Iterable[Cell]) -> str:
    """Which cells are not played on this machine, and what it lacks."""
    return "\n".join(
        f"Not played ({why}): {cell.name}" for cell in cells if (why := lack_of(cell.kind)) is not None
    )


def as_json(
    points: Sequence[Point],
    cells: Sequence[Cell],
    played: Sequence[Played],
    moments: Sequence[Played],
    seconds: float,
) -> dict[str, Any]:
    """Everything: the cells with what became of them, those that cannot occur, the random kills."""
    by_name = {one.name: one for one in played}
    return {
        "points": {point.name: {"words": point.words, "way": point.way.value} for point in points},
        "cells": [
            {
                "point": cell.point.name,
                "decision": cell.decision.value,
                "tool": cell.kind.name,
                **_ended(by_name.get(cell.name), lack_of(cell.kind)),
            }
            for cell in cells
        ],
        "impossible": [
            {"point": point.name, "decision": decision.value, "why": why}
            for point in points
            for decision, why in point.impossible.items()
        ],
        "moments": [{"name": one.name, "hit": one.hit, **_ended(one)} for one in moments],
        "seconds": round(seconds, 1),
    }


def _ended(one: Played | None, lacks: str | None = None) -> dict[str, Any]:
    if one is None:
        return {"outcome": "missing", **({"why": lacks} if lacks else {})}
    outcome = "green" if one.problem is None else "red"
    said = {} if one.problem is None else {"problem": one.problem, "details": one.details}
    return {"outcome": outcome, "seconds": round(one.seconds, 1), **said}
