"""The tools of the tests' house, and the small world that they change."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, Field

from agent.tool import Context, Facts, Money, Preview, Risk, Tool, ask_when


class Pay(BaseModel):
    """Pay these bills."""

    bills: list[str] = Field(title="Bills", min_length=1)


@dataclass
class World:
    """What the tools change and look at.

    `fail` is raised after the effect, `refuse` before it, `unmeasurable` by the facts: the first of each
    list, once. `watch` is called as an attempt begins.
    """

    paid: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    attempts: list[int] = field(default_factory=list)
    due: int = 38
    price: int = 10
    gone: set[str] = field(default_factory=set)
    looks: int = 0
    fail: list[BaseException] = field(default_factory=list)
    refuse: list[BaseException] = field(default_factory=list)
    unmeasurable: list[BaseException] = field(default_factory=list)
    watch: Callable[[Context], Any] = lambda ctx: None


def tools_of(world: World, *, repeatable: bool = True) -> tuple[Tool, ...]:
    """`pay` asks, `tip` (the same effect) asks for more than one bill, `look` reads, `note` can be undone."""

    def facts(input: Pay, ctx: Context) -> Facts:
        if world.unmeasurable:
            raise world.unmeasurable.pop(0)
        bills = [bill for bill in input.bills if bill not in world.gone]
        return Facts(len(bills), Money(world.price * len(bills), "EUR"), bills, shop="ours")

    def preview(input: Pay, facts: Facts, ctx: Context) -> Preview:
        rows = [(bill, Money(world.price, "EUR")) for bill in facts.items]
        return Preview(f"Pay {facts.count} bills", ["All of them are due."], ["Bill", "Amount"], rows)

    def execute(input: Pay, ctx: Context) -> dict[str, Any]:
        world.watch(ctx)
        world.attempts.append(ctx.attempt)
        if world.refuse:
            raise world.refuse.pop(0)
        if ctx.idempotency_key not in world.keys:
            world.paid += input.bills
        world.keys.append(ctx.idempotency_key)
        if world.fail:
            raise world.fail.pop(0)
        return {"paid": len(input.bills)}

    def look(input: Pay, ctx: Context) -> dict[str, int]:
        world.looks += 1
        if world.refuse:
            raise world.refuse.pop(0)
        return {"due": world.due}

    shared: dict[str, Any] = {
        "input": Pay,
        "effect": "payment",
        "risk": Risk.IRREVERSIBLE,
        "facts": facts,
        "preview": preview,
        "execute": execute,
        "repeatable": repeatable,
    }
    return (
        Tool(name="pay", precondition=lambda input, ctx: {"bills due": world.due}, **shared),
        Tool(name="tip", policy=ask_when(lambda i, f: f.count > 1), **shared),
        Tool(name="look", input=Pay, risk=Risk.READ_ONLY, execute=look),
        Tool(
            name="note",
            input=Pay,
            risk=Risk.REVERSIBLE,
            execute=lambda input, ctx: "noted",
            undo=lambda input, result, ctx: None,
        ),
    )
