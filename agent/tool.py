"""What a tool file imports: the description of something the agent may do.

Input models are pydantic's; everything else a tool needs is here.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, PydanticUserError, RootModel
from structlog.typing import FilteringBoundLogger

from agent.canonical import digest
from agent.facts import Facts
from agent.legible import is_storable
from agent.money import Money
from agent.progress import Count
from agent.sample import Preview, pick_rows
from agent.verdict import Rule, Verdict, always_ask, ask_when, forbid_when, never_ask
from agent.why import UNSAID

__all__ = [
    "Context",
    "Facts",
    "Money",
    "Preview",
    "Risk",
    "Rule",
    "Tool",
    "ToolError",
    "Verdict",
    "always_ask",
    "ask_when",
    "forbid_when",
    "never_ask",
    "pick_rows",
]

# fields that the model fills for the house and the tool never sees
RESERVED_FIELDS = frozenset({"rationale", "confidence"})
LONGEST_EFFECT = 100
MOST_COUNTED = 10**15
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_KEY = re.compile(
    r"[a-zA-Z0-9_.-]{1,64}"
)  # of a field: https://github.com/anthropics/claude-code/issues/79418
_CHOICES = {"oneOf", "allOf", "anyOf"}  # not at the top of a schema
_TIMEOUT = re.compile(r"([1-9][0-9]{0,6})(ms|s|m)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0}
LONGEST_TIMEOUT = 3600.0
_PARAMETERS = {
    "facts": "(input, ctx)",
    "precondition": "(input, ctx)",
    "preview": "(input, facts, ctx)",
    "execute": "(input, ctx)",
    "undo": "(input, result, ctx)",
}

Measure: TypeAlias = Callable[[Any, "Context"], Facts | Awaitable[Facts]]
Show: TypeAlias = Callable[[Any, Facts, "Context"], "Preview | Awaitable[Preview]"]
Check: TypeAlias = Callable[[Any, "Context"], Mapping[str, Any] | Awaitable[Mapping[str, Any]]]
Execute: TypeAlias = Callable[[Any, "Context"], Any]
Undo: TypeAlias = Callable[[Any, Any, "Context"], Any]
Needs: TypeAlias = Callable[[], "str | Awaitable[str | None] | None"]


class Risk(StrEnum):
    """What a call of the tool can do to the world."""

    READ_ONLY = "read_only"
    REVERSIBLE = "reversible"
    IRREVERSIBLE = "irreversible"


class ToolError(Exception):
    """The call failed and its tool knows what happened: nothing, or only the items in `done`."""

    message = UNSAID  # also of a subclass that does not call this one
    done: tuple[str, ...] = ()

    def __init__(self, message: object, done: Iterable[object] = ()) -> None:
        self.message = ("" if message is None else str(message)).strip() or self.message
        self.done = (done,) if isinstance(done, str) else tuple(map(str, done))
        super().__init__(self.message)


class Context:
    """What a tool's function may know about the call it works for.

    `requested_by` is the name of the person whose message began the run, `attempt` counts from 1 in
    `execute` and is 0 elsewhere, `log` is a structured logger bound to the call.
    """

    __slots__ = ("_count", "_key", "attempt", "log", "requested_by", "run_id")

    def __init__(
        self,
        *,
        run_id: str,
        requested_by: str,
        log: FilteringBoundLogger,
        idempotency_key: str | None = None,
        attempt: int = 0,
        count: Count | None = None,
    ) -> None:
        self.run_id = run_id
        self.requested_by = requested_by
        self.log = log
        self.attempt = attempt
        self._key = idempotency_key
        self._count = count

    @property
    def idempotency_key(self) -> str:
        """The same text for every attempt of this call; RuntimeError while the call is only measured."""
        if not self._key:
            raise RuntimeError(
                "ctx.idempotency_key exists only in execute and undo: nothing is done before them"
            )
        return self._key

    def progress(self, done: int, total: int | None = None) -> None:
        """Say how far `execute` is, so that people read "12 of 41" in the thread; elsewhere nobody looks.

        Say it after every item if you like: it costs next to nothing, may come from any thread, never waits
        and never raises. It is words only: nothing is kept, and people see about one count a second.
        """
        if self._count is not None and _is_count(done, total):
            self._count.said = (done, total)


def _is_count(done: object, total: object) -> bool:
    counted = [done] if total is None else [done, total]
    numbers = [
        n for n in counted if isinstance(n, int) and not isinstance(n, bool) and 0 <= n <= MOST_COUNTED
    ]
    return len(numbers) == len(counted) and numbers == sorted(numbers)


@dataclass(frozen=True, kw_only=True)
class Tool:
    """Something the agent may do; TypeError or ValueError at construction names what is wrong with it.

    `facts`, `precondition` and `execute` take (input, ctx), `preview` takes (input, facts, ctx) and `undo`
    takes (input, result, ctx), the result being what `execute` returned; each may be `def` or `async def`.
    `effect` names the kind of change (by default the tool's name), `personal` the columns and fields that
    hold personal data, `doing` what people read while it executes ("Refunding payments"), `followup` a tool
    that stays allowed after a refusal of this one, `reasons` usual reasons to reject, and `version` changes
    when the meaning of the input does but its schema does not. `check` takes nothing and tells `vistobueno
    doctor` in a clause that what the tool needs is there ("the mail server answers"); None: nothing is said;
    ToolError says what is missing and what to do.
    """

    name: str
    input: type[BaseModel]
    risk: Risk
    execute: Execute
    effect: str = ""
    facts: Measure | None = None
    policy: Rule | tuple[Rule, ...] | None = None
    preview: Show | None = None
    precondition: Check | None = None
    repeatable: bool = False
    timeout: str = "60s"
    undo: Undo | None = None
    version: str = "1"
    personal: frozenset[str] = frozenset()
    followup: str | None = None
    reasons: tuple[str, ...] = ()
    doing: str = ""
    check: Needs | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)
        object.__setattr__(self, "effect", self.effect or self.name)
        object.__setattr__(self, "personal", frozenset(_texts(self, "personal")))
        object.__setattr__(self, "reasons", tuple(_texts(self, "reasons")))
        _check_effect(self)
        _check_words(self)
        _check_input(self)
        _check_functions(self)
        _check_check(self)
        _check_risk(self)
        _check_policies(self)
        _seconds(self)

    @property
    def description(self) -> str:
        """The input's docstring: what the model reads about the tool."""
        return inspect.cleandoc(self.input.__doc__ or "")

    @cached_property
    def input_schema(self) -> Mapping[str, Any]:
        """The input's JSON schema; made once, because making it takes longer than a statement."""
        return object_schema(self.input)

    @cached_property
    def schema_hash(self) -> str:
        """The SHA-256 of the name, the version and the input's schema, as 64 hex digits."""
        return digest({"name": self.name, "version": self.version, "schema": self.input_schema})

    @property
    def timeout_seconds(self) -> float:
        """The time limit of each of the tool's functions, in seconds."""
        return _seconds(self)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The tool's own policy, none to many rules."""
        if self.policy is None:
            return ()
        return self.policy if isinstance(self.policy, tuple) else (self.policy,)

    @property
    def can_ask(self) -> bool:
        """Whether a person may have to approve a call: its own policy or the house's may want it."""
        return self.risk is not Risk.READ_ONLY


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f"the tool name {name!r} must be 1 to 64 lowercase letters, digits or _, starting with a letter"
        )


def _check_effect(tool: Tool) -> None:
    effect = tool.effect
    if not (isinstance(effect, str) and is_storable(effect) and len(effect) <= LONGEST_EFFECT):
        raise ValueError(f"{tool.name}: effect must be a name of at most {LONGEST_EFFECT} characters")


def _texts(tool: Tool, part: str) -> list[str]:
    """What a part that holds several texts holds; one text alone would be taken as its letters."""
    given = getattr(tool, part)
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        texts = list(given)
        if all(isinstance(text, str) for text in texts):
            return texts
    like = (given if isinstance(given, str) else "…",)
    raise TypeError(f"{tool.name}: {part} must be several texts, like {like!r}, not {given!r}")


def _check_words(tool: Tool) -> None:
    for part in ("doing", "version"):
        if not isinstance(getattr(tool, part), str):
            raise TypeError(f"{tool.name}: {part} must be a text, not {getattr(tool, part)!r}")
    if not isinstance(tool.repeatable, bool):
        raise TypeError(f"{tool.name}: repeatable must be True or False, not {tool.repeatable!r}")
    followup = tool.followup
    # its own name would let it go on after a refusal
    if followup is not None and (not isinstance(followup, str) or followup == tool.name):
        raise ValueError(f"{tool.name}: followup must be the name of another tool, not {followup!r}")


def _check_input(tool: Tool) -> None:
    if not (isinstance(tool.input, type) and issubclass(tool.input, BaseModel)):
        raise TypeError(f"{tool.name}: input must be a pydantic BaseModel class, not {tool.input!r}")
    if not (tool.input.__doc__ or "").strip():
        raise ValueError(f"{tool.name}: give {tool.input.__name__} a docstring; the model reads it")
    for name, field in tool.input.model_fields.items():
        if {name, field.alias} & RESERVED_FIELDS:
            raise ValueError(
                f"{tool.name}: the field {name!r} is reserved for the house; choose another name"
            )
    _check_schema(tool)


def _check_schema(tool: Tool) -> None:
    """Whether the model's provider takes it: what it refuses of one tool spoils every request of all."""
    named = f"{tool.name}: {tool.input.__name__}"
    try:
        taken, _ = tool.input_schema, object_schema(tool.input, mode="serialization")
    except PydanticUserError as error:  # a type without a JSON schema, or one that is not defined
        why = error.message.partition("\n")[0].rstrip(".")
        raise TypeError(f"{named} cannot be described to the model ({why}); use types of JSON") from error
    if issubclass(tool.input, RootModel) or taken.get("type") != "object" or _CHOICES & taken.keys():
        raise TypeError(f"{named} must have named fields; put its value into a field of its own")
    for key in taken.get("properties", {}):
        if not _KEY.fullmatch(key):
            raise ValueError(
                f"{named} has a field {key!r}, which the model cannot fill: choose a name of 1 to 64 letters "
                "from a to z, digits, _, . or -"
            )


def object_schema(
    model: type[BaseModel], mode: Literal["validation", "serialization"] = "validation"
) -> dict[str, Any]:
    """The JSON schema of a model with its own fields at the top, also where the model contains itself.

    Raises PydanticUserError for a field that has none.
    """
    schema = model.model_json_schema(mode=mode)
    itself = schema.pop("$ref", None)
    return schema if itself is None else {**schema, **schema["$defs"][itself.rpartition("/")[2]]}


def _check_functions(tool: Tool) -> None:
    for part, wanted in _PARAMETERS.items():
        function = getattr(tool, part)
        if function is None and part != "execute":
            continue
        if not callable(function):
            raise TypeError(f"{tool.name}: {part} must be a function, not {function!r}")
        if _is_generator(function):
            raise TypeError(f"{tool.name}: {part} must return what it made, not yield it")
        if not _takes(function, wanted.count(",") + 1):
            raise TypeError(f"{tool.name}: {part} must take {wanted}")


def _is_generator(function: Callable[..., object]) -> bool:
    return _is_any(function, inspect.isgeneratorfunction, inspect.isasyncgenfunction)


def _is_any(function: Callable[..., object], *kinds: Callable[[object], bool]) -> bool:
    called = (function, getattr(function, "__call__", None))  # noqa: B004  an object may have it
    return any(is_one(part) for is_one in kinds for part in called)


def _check_check(tool: Tool) -> None:
    if tool.check is None:
        return
    if not (callable(tool.check) and _takes(tool.check, 0)):
        raise TypeError(f"{tool.name}: check must be a function that takes nothing, not {tool.check!r}")
    if _is_generator(tool.check):
        raise TypeError(f"{tool.name}: check must return what it says, not yield it")


def _takes(function: Callable[..., object], size: int) -> bool:
    try:
        inspect.signature(function).bind(*range(size))
    except TypeError:
        return False
    except ValueError:  # a builtin without a signature: found out when it is called
        return True
    return True


def _check_risk(tool: Tool) -> None:
    if not isinstance(tool.risk, Risk):
        raise TypeError(f"{tool.name}: risk must be a Risk, not {tool.risk!r}")
    if tool.risk is Risk.READ_ONLY:
        extra = [
            p for p in ("facts", "policy", "preview", "precondition", "undo") if getattr(tool, p) is not None
        ]
        if extra:
            raise ValueError(f"{tool.name}: a READ_ONLY tool has only execute; remove {', '.join(extra)}")
    if tool.risk is Risk.REVERSIBLE and tool.undo is None:
        raise ValueError(f"{tool.name}: a REVERSIBLE tool must have undo; without one it is IRREVERSIBLE")
    if tool.risk is Risk.IRREVERSIBLE and tool.undo is not None:
        raise ValueError(f"{tool.name}: an IRREVERSIBLE tool has no undo; with one it is REVERSIBLE")


def _check_policies(tool: Tool) -> None:
    for rule in tool.rules:
        if not isinstance(rule, Rule):
            raise TypeError(
                f"{tool.name}: policy must be always_ask, never_ask, ask_when(…), forbid_when(…) "
                f"or a tuple of them, not {rule!r}"
            )
        _check_rule(tool.name, rule)


def _check_rule(tool: str, rule: Rule) -> None:
    named = "forbid_when" if rule.hit is Verdict.FORBID else "ask_when"
    if not isinstance(rule.words, str | None):
        raise TypeError(f"{tool}: the words of {named} must be a text, not {rule.words!r}")
    if rule.when is None and rule.miss is None:  # it says the same of every call
        return
    if not callable(rule.when):
        raise TypeError(f"{tool}: {named} must be given a function, not {rule.when!r}")
    if _is_generator(rule.when) or _is_any(rule.when, inspect.iscoroutinefunction):
        # what it gives is neither True nor False, and would ask for ever
        raise TypeError(
            f"{tool}: {named} must be given a function that answers at once: write def, not async def, and "
            "return True or False"
        )
    if not _takes(rule.when, 2):
        raise TypeError(f"{tool}: {named} must be given a function of (input, facts)")


def _seconds(tool: Tool) -> float:
    found = _TIMEOUT.fullmatch(tool.timeout) if isinstance(tool.timeout, str) else None
    seconds = int(found[1]) * _SECONDS[found[2]] if found else 0.0
    if not 0 < seconds <= LONGEST_TIMEOUT:
        raise ValueError(f"{tool.name}: timeout must be like '60s', '5m' or '500ms', at most an hour")
    return seconds
