"""The world that the property test's tools change: bills, and a provider that counts what it is told."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, Field

from agent.tool import Context, Facts, Money, Preview, Risk, Tool, ToolError, ask_when, forbid_when
from tests.property.lines import Line

Fault = Literal["lost", "refused", "part"]


class Pay(BaseModel):
    """Pay these bills."""

    bills: list[str] = Field(title="Bills", min_length=1)


class PayLater(Pay):
    """Pay these bills, in the form of the next release."""

    when: str = Field(title="When", default="now")


@dataclass(frozen=True)
class Effect:
    """What the provider did: under which key, told by which tool, for what."""

    key: str
    tool: str
    bills: tuple[str, ...]


@dataclass
class World:
    """What is so at the provider. `line` is that of the process that is at work now."""

    effects: list[Effect] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    price: int = 10
    due: int = 38
    strict: bool = False
    line: Line | None = None
    is_claimed: Callable[[str | None], bool] = lambda token: True
    """Whether there is a call with this claim, whose lease is not over."""
    begun_without_claim: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def paid(self) -> Counter[str]:
        """How often each bill was paid."""
        return Counter(bill for effect in self.effects for bill in effect.bills)

    def of(self, key: str | None) -> list[Effect]:
        """What was done under a key."""
        return [effect for effect in self.effects if effect.key == key]

    def begins(self, line: Line, key: str) -> None:
        """A process is inside a tool, and must have its claim."""
        if not self.is_claimed(line.token):
            self.begun_without_claim.append(f"{line.name} began {key} without its claim")

    def charge(self, tool: str, key: str, bills: list[str], *, honours_keys: bool) -> None:
        """Pay, without looking whether it is paid already; a known key gets its first answer again."""
        with self.lock:
            known = self.of(key) if honours_keys else []
            if not known:
                self.effects.append(Effect(key, tool, tuple(bills)))
            elif known[0].bills != tuple(bills):
                raise ToolError("The provider stopped half way.", done=known[0].bills)


def tools_of(world: World, input: type[Pay]) -> tuple[Tool, ...]:
    """`pay` and `wire` ask, `tip` asks for more than one bill, `look` reads; only `wire` has no key."""

    def facts(input: Pay, ctx: Context) -> Facts:
        settled = [bill for bill in input.bills if bill in world.gone or world.paid[bill]]
        if settled:
            raise ToolError(f"{settled[0]} is not due.")
        bills = list(dict.fromkeys(input.bills))
        return Facts(len(bills), Money(world.price * len(bills), "EUR"), bills)

    def preview(input: Pay, facts: Facts, ctx: Context) -> Preview:
        rows = [(bill, Money(world.price, "EUR")) for bill in facts.items]
        return Preview(f"Pay {facts.count} bills", ["All of them are due."], ["Bill", "Amount"], rows)

    def paying(name: str, *, honours_keys: bool) -> Any:
        def execute(input: Pay, ctx: Context) -> dict[str, int]:
            line, key = world.line, ctx.idempotency_key
            assert line is not None and key is not None
            world.begins(line, key)
            fault = world.faults.pop(0) if world.faults else None
            line.pass_in_tool(key, after=False)
            if fault == "refused":
                raise ToolError("The provider refuses.")
            if fault == "part" and not world.of(key):
                world.charge(name, key, input.bills[:1], honours_keys=honours_keys)
                raise ToolError("The provider stopped half way.", done=input.bills[:1])
            world.charge(name, key, input.bills, honours_keys=honours_keys)
            line.pass_in_tool(key, after=True)
            if fault == "lost":
                raise RuntimeError("The provider's answer is lost.")
            return {"paid": len(input.bills)}

        return execute

    def tool(name: str, *rules: Any, repeatable: bool = True) -> Tool:
        return Tool(
            name=name,
            input=input,
            effect="payment",
            risk=Risk.IRREVERSIBLE,
            facts=facts,
            preview=preview,
            precondition=lambda input, ctx: {"bills due": world.due},
            policy=(*rules, forbid_when(lambda i, f: world.strict)),
            execute=paying(name, honours_keys=repeatable),
            repeatable=repeatable,
        )

    return (
        tool("pay"),
        tool("wire", repeatable=False),
        tool("tip", ask_when(lambda i, f: f.count > 1)),
        Tool(name="look", input=input, risk=Risk.READ_ONLY, execute=lambda input, ctx: {"due": world.due}),
    )
