"""What the model is told about each of its calls: every result text, in one place.

Every content says with "executed" whether anything happened: true, false, or null if nobody knows. Only
`failed` and `invalid` (with `unprepared` and `no_such_tool`, which are kinds of them) are flagged as errors.
Names of people are cleaned and carry their role; ids of Slack never get in.
"""

import json
from collections.abc import Iterable, Mapping, Sequence

from agent.canonical import Json
from agent.legible import line
from agent.preview import Moved
from agent.prompt import PROTOCOL, system_prompt
from agent.result_block import fitting, tool_result_block
from agent.result_form import (
    NAME_LIMIT,
    Result,
    as_error,
    denial,
    did_not_run,
    kept_output,
    named,
    names,
    ran,
    sentence,
    went_through,
)
from store.records import Actor, Edited, Veto

__all__ = [
    "PROTOCOL",
    "Result",
    "after_edit",
    "allowed",
    "approved_by_policy_after_wait",
    "broken_off",
    "cancelled",
    "deferred",
    "executed",
    "expired",
    "failed",
    "forbidden",
    "invalid",
    "no_such_tool",
    "not_started_in_time",
    "rejected",
    "settled_by_person",
    "settled_late",
    "superseded",
    "system_prompt",
    "tool_result_block",
    "unknown",
    "unprepared",
    "vetoed",
    "waited_in_vain",
    "withdrawn",
]

_HOLDS = (
    "The refusal is of the outcome, not of this one call: do not try to reach it by another route, with "
    "other parameters, in smaller batches or with another tool."
)
_END = "Tell the requester what you were going to do and why it was refused, then end your turn."


def allowed(
    tool: str, output: object, *, items: Sequence[str] = (), done: Sequence[str] | None = None
) -> Result:
    """The call ran without asking anybody; `done` are the items that went through, None: all of them."""
    return ran(tool, output, {"asked": False}, items, done)


def executed(
    tool: str,
    output: object,
    *,
    approved_by: Sequence[Actor],
    executed_input: Json,
    asked_input: Json = None,
    edited: bool = False,
    items: Sequence[str] = (),
    done: Sequence[str] | None = None,
) -> Result:
    """The call ran as it was approved; if `edited`, with `executed_input` instead of `asked_input`."""
    how: dict[str, Json] = {
        "approvedBy": names(approved_by),
        "edited": edited,
        "executedInput": executed_input,
    }
    if not edited:
        return ran(tool, output, how, items, done)
    instruction = (
        "A person changed your request before approving it: requestedInput is what you asked for, "
        "executedInput is what ran, and only that. The change is their decision: do not ask again for the "
        "original or for what they left out. Report what ran."
    )
    return ran(tool, output, how | {"requestedInput": asked_input}, items, done, instruction)


def approved_by_policy_after_wait(
    tool: str,
    output: object,
    *,
    waited_seconds: float,
    executed_input: Json,
    items: Sequence[str] = (),
    done: Sequence[str] | None = None,
) -> Result:
    """The call ran because nobody objected in the time that its policy gives."""
    how: dict[str, Json] = {
        "approvedBy": "the policy, after a wait in which nobody objected",
        "approvedByPerson": False,
        "waitedSeconds": waited_seconds,
        "edited": False,
        "executedInput": executed_input,
    }
    return ran(tool, output, how, items, done, "No person approved this: do not say that somebody did.")


def rejected(
    tool: str, denied_by: Actor, reason: str | None, *, may_retry: bool = False, followup: str | None = None
) -> Result:
    """A person refused the call; with `may_retry` the model may ask again in line with their words."""
    if may_retry:
        instruction = (
            "A person decided against this call as it is, and it did not run. They allow another try: follow "
            "their words exactly and ask again. If you cannot follow them, say so and end your turn."
        )
    else:
        instruction = f"A person decided that this must not happen, and it did not run. {_HOLDS} {_END}"
    return Result(denial(tool, named(denied_by), reason, f"{instruction}{_still(followup)}"))


def expired(tool: str, *, followup: str | None = None) -> Result:
    """Nobody decided in time, which is a refusal with nobody to name."""
    instruction = (
        f"Nobody decided in time, so it did not run, and it counts as refused. {_HOLDS} Tell the requester "
        "what you were going to do and that nobody decided in time, then end your turn."
    )
    return Result(denial(tool, None, None, f"{instruction}{_still(followup)}") | {"expired": True})


def vetoed(tool: str, veto: Veto, *, followup: str | None = None) -> Result:
    """The effect was refused before in this conversation; nobody was asked again."""
    denied_by = named(veto.denied_by) if veto.denied_by and veto.kind == "rejected" else None
    if denied_by:
        why = "A person already decided in this conversation that this outcome must not happen"
    else:
        why = "This outcome was asked for before in this conversation, and nobody decided in time"
    instruction = f"{why}. Nothing ran, and nobody was asked again. {_HOLDS} {_END}{_still(followup)}"
    content = denial(tool, denied_by, veto.reason, instruction) | {"vetoed": True}
    return Result(content | ({"expired": True} if veto.kind == "expired" else {}))


def not_started_in_time(tool: str, approved_by: Sequence[Actor]) -> Result:
    """It was approved, but could not be started while the approval was good."""
    instruction = (
        "It was approved, but it could not be started while the approval was good, and it did not run. "
        "Nobody refused it: look again, and ask again if it is still needed."
    )
    return did_not_run(tool, "expired", instruction, approvedBy=names(approved_by))


def deferred(tool: str) -> Result:
    """The call came after one that asks in the same turn, and was left alone."""
    instruction = (
        "This call was not executed, because an earlier call of the same turn had to wait for a person. "
        "Nobody refused it: read the other results, then ask again if it is still needed."
    )
    return did_not_run(tool, "deferred", instruction)


def superseded(tool: str, moved: Iterable[Moved]) -> Result:
    """The world moved between the preview and the first attempt, so nothing ran."""
    instruction = (
        "Nothing ran: what the approver saw is no longer true, and moved says what changed. Nobody refused "
        "it. Look again, with fresh data, and propose what is right now as one call; a person is asked again."
    )
    return did_not_run(tool, "superseded", instruction, moved=[change.to_json() for change in moved])


def after_edit(result: Result, edited: Edited) -> Result:
    """What became of a call that a person had changed before; what is asked next keeps to the change."""
    keep = "keep to it in what you propose now, and " if result.content["executed"] is False else ""
    holds = f"The change is their decision: {keep}do not ask again for what they left out."
    if result.content.get("approvalDenied"):
        holds = "It is this that was refused."
    instruction = (
        "Before that a person had changed your request: requestedInput is what you asked for, editedInput is "
        f"what they made of it. {holds}"
    )
    edit: dict[str, Json] = {
        "edited": True,
        "editedBy": named(edited.by),
        "requestedInput": edited.asked_input,
        "editedInput": edited.edited_input,
        "instruction": f"{result.content['instruction']} {instruction}",
    }
    return Result(result.content | edit, result.is_error)


def withdrawn(tool: str, why: str) -> Result:
    """The approval no longer fits the house (tool gone or changed, policy stricter); `why` is a sentence."""
    instruction = (
        "Nothing ran, and nobody refused it: the tool or its policy changed while the call waited. Look at "
        "the tools you have now, and ask again if it is still needed and possible."
    )
    reason = sentence(why, "The tool or its policy changed.")
    return did_not_run(tool, "superseded", instruction, moved=[], reason=reason)


def forbidden(tool: str, rule: str | None) -> Result:
    """The policy forbids the call; `rule` says it in words."""
    instruction = (
        "The policy forbids this, nothing ran, and no person was asked. Do not try to reach the same outcome "
        "another way. Say what you could not do and which rule forbids it."
    )
    told = sentence(rule, "The policy forbids this call.")
    return did_not_run(tool, "forbidden", instruction, rule=told)


def cancelled(tool: str) -> Result:
    """The run was stopped before the call was started."""
    instruction = "A person stopped the work before this call was started, so it did not run."
    return did_not_run(tool, "cancelled", instruction)


def waited_in_vain(tool: str) -> Result:
    """An allowed call whose items another call held for too long, so that it was given up."""
    instruction = (
        "This call did not run, because what it would act on has been in the hands of another call for too "
        "long, perhaps one of which nobody knows yet whether it took effect. Nobody refused it: say so, and "
        "do not repeat it in this run."
    )
    return did_not_run(tool, "waitedInVain", instruction)


def broken_off(tool: str) -> Result:
    """The run failed before the call was started."""
    instruction = (
        "The work broke off before this call was started, so it did not run. Nobody refused it: ask again if "
        "it is still needed."
    )
    return did_not_run(tool, "cancelled", instruction)


def invalid(tool: str, fields: Iterable[tuple[str, str]]) -> Result:
    """The input does not fit the tool's schema; `fields` are (path, message), the path "" for the whole."""
    told: list[Json] = [
        {"field": path or "(the whole input)", "problem": problem} for path, problem in fields
    ]
    instruction = "Nothing ran and nobody was asked. Correct these fields and call again."
    return as_error(did_not_run(tool, "invalid", instruction, fields=told))


def no_such_tool(tool: str, known: Iterable[str]) -> Result:
    """The model named a tool that there is not."""
    instruction = "There is no tool of this name, so nothing ran. Use one of tools, or do without."
    named = line(tool, NAME_LIMIT)
    return as_error(did_not_run(named, "invalid", instruction, tools=list[Json](sorted(known))))


def unprepared(tool: str, error: str) -> Result:
    """The facts, the preview or the precondition could not be made, so nobody was asked."""
    instruction = (
        "The call could not be prepared, so nobody was asked and nothing ran. Correct it if the error is "
        "about your input; else say what you could not do."
    )
    told = sentence(error, "The call could not be measured, and no reason was given.")
    return as_error(did_not_run(tool, "failed", instruction, error=told))


def failed(
    tool: str,
    error: str,
    *,
    approved_by: Sequence[Actor] = (),
    items: Sequence[str] = (),
    done: Sequence[str] = (),
) -> Result:
    """The call failed and it is known how far it came: `done` are the items that went through before."""
    content: dict[str, Json] = {
        "ok": False,
        "toolName": tool,
        "failed": True,
        "executed": bool(done),
        "error": sentence(error, "The tool failed and did not say why."),
        "instruction": "It failed and nothing happened. Say so; ask again only if something is different.",
    }
    if approved_by:
        content["approvedBy"] = names(approved_by)
    if done:
        through = went_through(items, done)
        content |= through | {"instruction": _failed_after(through)}
    return Result(content, is_error=True)


def _failed_after(through: Mapping[str, Json]) -> str:
    """What to do about a call that failed after something had happened."""
    if not through.get("itemsNotDone"):
        part = "all of its items had gone through" if "partial" in through else "itemsDone had gone through"
        return (
            f"It failed after {part}: they must not be repeated. Nothing else happened. Report exactly that."
        )
    return (
        "It failed after a part of it had happened: itemsDone went through and must not be repeated, "
        "itemsNotDone did not happen. Report exactly that."
    )


def unknown(tool: str, *, approved_by: Sequence[Actor] = ()) -> Result:
    """The call was started, and nobody can say whether it took effect."""
    instruction = (
        "It was started and its answer was lost: it may or may not have happened, wholly or in part. Do not "
        "call it again, and do not do the same another way. Say plainly that nobody knows yet and that a "
        "person has to check, then end your turn."
    )
    content: dict[str, Json] = {"ok": False, "toolName": tool, "unknown": True, "executed": None}
    approved: dict[str, Json] = {"approvedBy": names(approved_by)} if approved_by else {}
    return Result({**content, **approved, "instruction": instruction})


def settled_by_person(
    tool: str, settled_by: Actor, *, ran: bool, executed_input: Json, output: object = None
) -> Result:
    """A person found out whether a call of unknown outcome took effect."""
    happened = "it did happen: do not repeat it" if ran else "it did not happen: ask again only if asked to"
    return Result(
        {
            "ok": ran,
            "toolName": tool,
            "executed": ran,
            "settledBy": named(settled_by),
            "executedInput": executed_input if ran else None,
            "data": kept_output(output),
            "instruction": f"The answer of this call was lost. A person looked and says that {happened}.",
        }
    )


def settled_late(provider_id: str, settled: Result) -> str:
    """What the next run reads of a call that a person settled after its own run had ended."""
    said = json.dumps(
        {"toolUseId": provider_id, **fitting(settled.content)}, ensure_ascii=False, sort_keys=True
    )
    return f"Meanwhile a person settled an earlier call whose outcome was unknown: {said}"


def _still(followup: str | None) -> str:
    return f" You may still use {followup} to tell the people concerned." if followup else ""
