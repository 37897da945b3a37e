"""Measures a call: its input validated, its facts, verdict, preview and precondition made by user code."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import structlog
from pydantic import BaseModel

from agent.canonical import Json, digest
from agent.facts import Facts
from agent.house import House
from agent.judge import judge
from agent.preview import freeze
from agent.progress import Count
from agent.sample import Preview
from agent.schema import InvalidInput, input_json, lost_fields, validate
from agent.tool import Context, Tool, ToolError
from agent.usercode import UserCodeFailed, UserCodeTimeout
from agent.verdict import Verdict
from agent.why import Code, Why, because, said
from store.records import Actor, Approval, Measured, Run

VALIDATION_SECONDS = 2.0  # it happens in the ack of a form, too


class CannotMeasure(Exception):
    """The facts, the preview or the precondition could not be made; `by_tool`: the tool said why."""

    def __init__(self, why: Why, *, by_tool: bool) -> None:
        self.why = why
        self.message = why.text
        self.by_tool = by_tool
        super().__init__(self.message)


@dataclass(frozen=True)
class Weighed:
    """A measured call and its verdict, with the words of the rule that gave it, and what it would replace."""

    verdict: Verdict
    why: Why | None
    measured: Measured
    input: BaseModel
    replaces: Approval | None = None


def context(
    tool: Tool, run: Run, *, key: str | None = None, attempt: int = 0, count: Count | None = None
) -> Context:
    """What a tool's functions are told of the call."""
    log = structlog.get_logger("tool").bind(tool=tool.name, run=run.id)
    return Context(
        run_id=run.id,
        requested_by=_name(run.requester),
        log=log,
        idempotency_key=key,
        attempt=attempt,
        count=count,
    )


async def validated(
    house: House, tool: Tool, raw: object, *, to_keep: bool = False
) -> tuple[BaseModel, dict[str, Json]]:
    """The input as the tool's schema reads it, and as it is kept; raises InvalidInput or CannotMeasure.

    `to_keep`: what does not come back from the database as it was raises CannotMeasure.
    """
    read: tuple[BaseModel, dict[str, Json]] = await _call(
        house,
        tool,
        *(_validated, tool, raw, to_keep),
        seconds=VALIDATION_SECONDS,
        passing=(InvalidInput, CannotMeasure),
    )
    return read


async def as_shown(house: House, tool: Tool, shown: Measured) -> BaseModel | None:
    """The input as the tool reads it now; None: that is not what was shown. Raises CannotMeasure."""
    try:
        input, kept = await validated(house, tool, shown.input)
    except InvalidInput:
        return None
    return input if digest(kept) == shown.input_hash else None


def _validated(tool: Tool, raw: object, to_keep: bool) -> tuple[BaseModel, dict[str, Json]]:
    input = validate(tool, raw)
    kept = input_json(input)
    lost = lost_fields(tool, input, kept) if to_keep else []
    if lost:
        why = because(Code.FIELDS_NOT_KEPT, tool=tool.name, fields=", ".join(lost))
        raise CannotMeasure(why, by_tool=False)
    return input, kept


def _nothing(items: Collection[str], input: Mapping[str, Json]) -> None:
    """What a call replaces that is no successor of another."""


async def weigh(
    house: House,
    tool: Tool,
    raw: object,
    run: Run,
    *,
    to_replace: Callable[[Collection[str], Mapping[str, Json]], Approval | None] = _nothing,
    again: bool = False,
) -> Weighed:
    """Measure a call and judge it by what was measured.

    `to_replace` finds the approval that one of these items and this input would replace. `again`: only what
    is compared with what was shown is measured, the tool's preview is not. Raises InvalidInput (the fields),
    or CannotMeasure (a sentence).
    """
    input, kept = await validated(house, tool, raw, to_keep=not again)
    ctx = context(tool, run)
    facts = await _facts(house, tool, input, ctx)
    verdict, why = await _call(house, tool, judge, tool, input, facts)
    preview: Preview | None = None
    precondition: Mapping[str, Any] = {}
    forbidden = verdict is Verdict.FORBID
    if tool.precondition is not None and (again or not forbidden):
        precondition = await _made(house, tool, tool.precondition, input, ctx, kind=Mapping)
    if tool.preview is not None and not (again or forbidden):
        preview = await _made(house, tool, tool.preview, input, facts, ctx, kind=Preview)
    replaces = to_replace(facts.items, kept)
    replaced = replaces.shown.items if replaces else None
    frozen = await _frozen(house, tool, input, kept, facts, preview, precondition, replaced)
    return Weighed(verdict, why, frozen, input, replaces)


async def _facts(house: House, tool: Tool, input: BaseModel, ctx: Context) -> Facts:
    if tool.facts is None:
        return Facts(count=1)
    facts: Facts = await _made(house, tool, tool.facts, input, ctx, kind=Facts)
    return facts


async def _made(house: House, tool: Tool, function: Callable[..., Any], *args: Any, kind: type) -> Any:
    made = await _call(house, tool, function, *args)
    if not isinstance(made, kind):
        part = {Facts: "facts", Preview: "preview"}.get(kind, "precondition")
        wanted, given = kind.__name__, type(made).__name__
        why = because(Code.WRONG_TYPE, tool=tool.name, part=part, wanted=wanted, given=given)
        raise CannotMeasure(why, by_tool=False)
    return made


async def _frozen(
    house: House,
    tool: Tool,
    input: BaseModel,
    kept: dict[str, Json],
    facts: Facts,
    preview: Preview | None,
    precondition: Mapping[str, Any],
    replaced: Iterable[str] | None,
) -> Measured:
    def frozen() -> Measured:
        try:
            return freeze(tool, input, facts, preview, precondition, replaced=replaced, kept_input=kept)
        except (TypeError, ValueError) as error:
            why = because(Code.MEASURED_NOT_KEPT, tool=tool.name, error=str(error))
            raise CannotMeasure(why, by_tool=False) from None

    # the JSON of what was measured is made by user code where it is no plain value
    measured: Measured = await _call(house, tool, frozen, passing=(CannotMeasure,))
    return measured


async def _call(
    house: House,
    tool: Tool,
    function: Callable[..., Any],
    *args: Any,
    seconds: float | None = None,
    passing: tuple[type[Exception], ...] = (),
) -> Any:
    try:
        return await house.user_code.run(
            tool.name, function, *args, timeout=seconds or tool.timeout_seconds, passing=passing
        )
    except ToolError as error:
        raise CannotMeasure(said(error.message), by_tool=True) from error
    except UserCodeTimeout as error:
        raise CannotMeasure(error.why, by_tool=False) from error
    except UserCodeFailed as error:  # nobody is asked, and the model reads why
        why = because(Code.TOOL_FAILED, tool=tool.name, error=error.text)
        raise CannotMeasure(why, by_tool=False) from error


def _name(actor: Actor) -> str:
    return actor.name or actor.user_id or "the operator"
