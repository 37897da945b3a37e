"""Why something did not go as it was asked: a code with its parts, and the sentence that is kept of it.

The model, the log, the record and the command line read `text`. People in Slack read the words that their
language has for the code; the words of a tool, of its policy or of a provider pass through as they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from string import Formatter
from types import MappingProxyType
from typing import TypeAlias

from agent.canonical import Json
from agent.legible import cut

Part: TypeAlias = "str | int | float | Why"


class Code(StrEnum):
    """What can be said. The values are stored: none is ever used for something else."""

    SAID = "said"  # by a tool or its policy, in their own words
    UNSAID = "unsaid"

    # what was shown is no longer so in this house
    TOOL_GONE = "tool_gone"
    TOOL_CHANGED = "tool_changed"
    SHOWN_ALTERED = "shown_altered"
    READ_DIFFERENTLY = "read_differently"
    INPUT_INVALID = "input_invalid"
    RULE_STRICTER = "rule_stricter"
    POLICY_STRICTER = "policy_stricter"
    POLICY_FORBIDS = "policy_forbids"
    POLICY_FORBIDS_NOW = "policy_forbids_now"
    RULE_FORBIDS = "rule_forbids"
    RULE_FAILED = "rule_failed"

    # it could not be measured
    TIMED_OUT = "timed_out"
    NOT_BEGUN = "not_begun"
    TOOL_FAILED = "tool_failed"
    FIELDS_NOT_KEPT = "fields_not_kept"
    WRONG_TYPE = "wrong_type"
    MEASURED_NOT_KEPT = "measured_not_kept"

    # it was attempted
    NOTHING_HAPPENED = "nothing_happened"
    BROKE_OFF = "broke_off"
    LAZY = "lazy"
    COUNTED = "counted"
    COUNTED_OF = "counted_of"
    NO_ITEMS = "no_items"
    CHANGED_AFTER_ATTEMPT = "changed_after_attempt"
    STILL_INSIDE = "still_inside"
    TOO_OLD = "too_old"
    WORKER_GONE = "worker_gone"
    WORKER_ENDS = "worker_ends"
    RUN_STOPPED = "run_stopped"

    # the run cannot go on
    NO_ANSWER = "no_answer"
    NO_USABLE_ANSWER = "no_usable_answer"
    NOT_TAKEN_UP = "not_taken_up"
    WORN_OUT = "worn_out"
    LAST_WORKER_GONE = "last_worker_gone"
    DATABASE_FAULT = "database_fault"
    FAULT = "fault"
    SAVED_BY_NEWER = "saved_by_newer"
    DECLINED = "declined"
    CONVERSATION_TOO_LARGE = "conversation_too_large"

    # the model gave no answer, or one that cannot be kept
    MODEL_TIMED_OUT = "model_timed_out"
    MODEL_UNREACHABLE = "model_unreachable"
    MODEL_BUSY = "model_busy"
    MODEL_REFUSED = "model_refused"
    MODEL_NOT_ASKED = "model_not_asked"
    MODEL_CUT = "model_cut"
    MODEL_OUT_OF_FORM = "model_out_of_form"
    MODEL_NOT_FINITE = "model_not_finite"
    MODEL_TOO_DEEP = "model_too_deep"
    MODEL_SAME_ID = "model_same_id"
    MODEL_NAMELESS_CALL = "model_nameless_call"

    # what to do about a model that refuses
    SET_KEY = "set_key"
    SETTLE_BILLING = "settle_billing"
    USE_ANOTHER_KEY = "use_another_key"
    NAME_ANOTHER_MODEL = "name_another_model"
    START_ANEW = "start_anew"
    RAISE_LIMIT = "raise_limit"
    REPORT_IT = "report_it"


LARGEST_NUMBER = 10**15  # that people are shown as a number
LONGEST_PART = 4000  # characters: the words of a tool or a provider, which may be endless
UNSAID = "The tool failed and did not say why."

_SENTENCES: Mapping[Code, str] = {
    Code.SAID: "{text}",
    Code.UNSAID: UNSAID,
    Code.TOOL_GONE: "There is no tool {tool} any more.",
    Code.TOOL_CHANGED: "{tool} has changed since this was asked.",
    Code.SHOWN_ALTERED: "The stored request does not match what was shown.",
    Code.READ_DIFFERENTLY: "The stored request is read differently now.",
    Code.INPUT_INVALID: "The input of {tool} is no longer valid.",
    Code.RULE_STRICTER: "The policy for {tool} is stricter now than when this was asked.",
    Code.POLICY_STRICTER: "The policy is stricter now.",
    Code.POLICY_FORBIDS: "The policy forbids this.",
    Code.POLICY_FORBIDS_NOW: "The policy forbids it now.",
    Code.RULE_FORBIDS: "a rule of {tool} forbids this call",
    Code.RULE_FAILED: "a rule of {tool} could not be applied ({error})",
    Code.TIMED_OUT: "{tool} did not answer within {seconds:g} s.",
    Code.NOT_BEGUN: "{tool} could not begin within {seconds:g} s.",
    Code.TOOL_FAILED: "{tool} failed: {error}",
    Code.FIELDS_NOT_KEPT: (
        "{tool}: {fields} would come back from the database as something else: a field must read what it "
        "writes, so no secrets, computed or excluded fields."
    ),
    Code.WRONG_TYPE: "{tool}: {part} must return {wanted}, not {given}.",
    Code.MEASURED_NOT_KEPT: "{tool}: what it measured cannot be kept: {error}",
    Code.NOTHING_HAPPENED: "{tool} could not begin within {seconds:g} s, so nothing happened.",
    Code.BROKE_OFF: "{tool} broke off: {error}",
    Code.LAZY: "{tool} returned a {given}, whose work is done only when it is read.",
    Code.COUNTED: "It had counted {done} by then.",
    Code.COUNTED_OF: "It had counted {done} of {total} by then.",
    Code.NO_ITEMS: "The tool also named what is no item of this call: {items}.",
    Code.CHANGED_AFTER_ATTEMPT: "It was attempted, and {tool} has changed since.",
    Code.STILL_INSIDE: "An older attempt is still inside {tool}.",
    Code.TOO_OLD: "Its first attempt is more than 24 hours ago, and the key may be forgotten.",
    Code.WORKER_GONE: "The worker that executed it is gone.",
    Code.WORKER_ENDS: "Its worker was asked to end before it began.",
    Code.RUN_STOPPED: "The run was stopped before it could be tried again.",
    Code.NO_ANSWER: "The model did not answer after {n} tries: {why}",
    Code.NO_USABLE_ANSWER: "The model gave no answer that can be used after {n} tries: {why}",
    Code.NOT_TAKEN_UP: "The run could not be taken up after {n} tries: {why}",
    Code.WORN_OUT: "The work broke off {n} times in a row ({why}): the worker's log says more.",
    Code.LAST_WORKER_GONE: "the last time its worker was gone",
    Code.DATABASE_FAULT: "{error}",
    Code.FAULT: "{error} in vistobueno",
    Code.SAVED_BY_NEWER: (
        "The conversation was saved by a newer release (form {form}, this one knows up to {known}): run that "
        "release again."
    ),
    Code.DECLINED: "The model refused to answer this request.",
    Code.CONVERSATION_TOO_LARGE: "The conversation has become too large for the model: start a new one.",
    Code.MODEL_TIMED_OUT: "The model did not answer in time.",
    Code.MODEL_UNREACHABLE: "The model could not be reached, or the connection broke.",
    Code.MODEL_BUSY: "The model is busy ({status}): {said}.",
    Code.MODEL_REFUSED: "The model refused ({status}): {said}.",
    Code.MODEL_NOT_ASKED: "The request could not be made ({error}).",
    Code.MODEL_CUT: "The model's answer was cut or is no Messages response.",
    Code.MODEL_OUT_OF_FORM: "The model gave a {kind} that is not in its form.",
    Code.MODEL_NOT_FINITE: "The model gave a number that is not finite.",
    Code.MODEL_TOO_DEEP: "The model's answer is nested too deeply.",
    Code.MODEL_SAME_ID: "The model gave two calls the same id.",
    Code.MODEL_NAMELESS_CALL: "The model gave a call without a tool's name.",
    Code.SET_KEY: "Set ANTHROPIC_API_KEY to a key that works.",
    Code.SETTLE_BILLING: "Settle the billing of the model's account.",
    Code.USE_ANOTHER_KEY: "Use a key that may use this model, or name another in VISTOBUENO_MODEL.",
    Code.NAME_ANOTHER_MODEL: "Name a model that exists in VISTOBUENO_MODEL, and check ANTHROPIC_BASE_URL.",
    Code.START_ANEW: "The conversation is too large: start a new one.",
    Code.RAISE_LIMIT: "Raise the spend limit of the model's account.",
    Code.REPORT_IT: "The request has to be changed: report it with this message.",
}

PARTS: Mapping[Code, frozenset[str]] = MappingProxyType(
    {
        code: frozenset(name for _, name, _, _ in Formatter().parse(sentence) if name)
        for code, sentence in _SENTENCES.items()
    }
)
"""The names of the parts that each code has."""
_NUMBERS = frozenset(
    name for sentence in _SENTENCES.values() for _, name, form, _ in Formatter().parse(sentence) if form
)


@dataclass(frozen=True)
class Why:
    """A reason; `more` are further sentences after it."""

    code: Code
    parts: Mapping[str, Part] = field(default_factory=dict)
    more: tuple["Why", ...] = ()

    @property
    def text(self) -> str:
        """The sentence, and those after it."""
        parts = {name: part.text if isinstance(part, Why) else part for name, part in self.parts.items()}
        return followed(_SENTENCES[self.code].format(**parts), [why.text for why in self.more])

    def and_also(self, *more: "Why") -> "Why":
        """The same, with further sentences after it."""
        return Why(self.code, self.parts, (*self.more, *more))

    def to_json(self) -> dict[str, Json]:
        """Give {"code", "parts", "more"}, as it is stored beside its text."""
        parts: dict[str, Json] = {
            name: part.to_json() if isinstance(part, Why) else part for name, part in self.parts.items()
        }
        return {"code": self.code.value, "parts": parts, "more": [why.to_json() for why in self.more]}

    @classmethod
    def from_json(cls, stored: object) -> "Why | None":
        """What was stored; None where there is nothing, or what only another release can say."""
        match stored:
            case {"code": str(code), "parts": dict(parts), "more": list(more)} if code in _KNOWN:
                read = {name: cls._part(name, part) for name, part in parts.items()}
                kept = {name: part for name, part in read.items() if part is not None}
                further = [why for one in more if (why := cls.from_json(one)) is not None]
                if len(kept) == len(parts) and kept.keys() == PARTS[Code(code)] and len(further) == len(more):
                    return cls(Code(code), kept, tuple(further))
        return None

    @classmethod
    def _part(cls, name: str, stored: object) -> "Part | None":
        match stored:
            case bool():
                return None
            case int() | float():
                return stored if abs(stored) <= LARGEST_NUMBER else None
            case _ if name in _NUMBERS:
                return None
            case str():
                return stored
        return cls.from_json(stored)


_KNOWN = frozenset(Code)


def because(code: Code, **parts: Part) -> Why:
    """A reason with its parts, each text of at most 4,000 characters."""
    return Why(code, {name: cut(p, LONGEST_PART) if isinstance(p, str) else p for name, p in parts.items()})


def said(text: str) -> Why:
    """The words of somebody outside, as they are; the house's own where a tool said nothing."""
    return because(Code.UNSAID) if text == UNSAID else because(Code.SAID, text=text)


def followed(sentence: str, more: list[str]) -> str:
    """A sentence with further ones after it; one that something follows ends in a full stop."""
    *before, last = [sentence, *more]
    return " ".join([*(one if one.endswith((".", "!", "?", "…")) else f"{one}." for one in before), last])
