"""Rows as frozen dataclasses: what leaves the store. No row, cursor or SQL type passes this line."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NewType

from store.transitions import ApprovalStatus, CallStatus, RunStatus

RunId = NewType("RunId", str)
CallId = NewType("CallId", str)
ApprovalId = NewType("ApprovalId", str)
DraftId = NewType("DraftId", str)
CardId = NewType("CardId", str)
ConversationId = NewType("ConversationId", str)

Json = Any  # a value of JSON: what psycopg reads from a jsonb column
Verdict = Literal["approve", "edit", "reject"]


@dataclass(frozen=True)
class Actor:
    """Who did something: a person (team and user id), the model, the policy, or the system.

    `kind` is person | operator | model | policy | system; `name` and `role` are words for people.
    """

    kind: Literal["person", "operator", "model", "policy", "system"]
    team_id: str | None = None
    user_id: str | None = None
    name: str = ""
    role: str | None = None

    def to_json(self) -> dict[str, Json]:
        """The actor as it is stored in decisions, votes and audit events."""
        return {
            "kind": self.kind,
            "team": self.team_id,
            "user": self.user_id,
            "name": self.name,
            "role": self.role,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Json]) -> "Actor":
        """The reverse of `to_json`."""
        return cls(value["kind"], value["team"], value["user"], value["name"], value["role"])


SYSTEM = Actor("system", name="vistobueno")


@dataclass(frozen=True)
class Conversation:
    """A Slack thread with the agent; `thread_ts` is None until its first message is posted."""

    id: ConversationId
    team_id: str
    channel_id: str
    thread_ts: str | None


@dataclass(frozen=True)
class Run:
    """One stretch of the agent's work."""

    id: RunId
    conversation_id: ConversationId
    seq: int
    status: RunStatus
    agent: str
    task: str
    requester: Actor
    source_key: str
    state_version: int
    steps: int
    input_tokens: int
    output_tokens: int
    turn: int
    open_calls: int
    faults: int
    not_before: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    created_at: datetime
    error: str | None
    answer: str | None


@dataclass(frozen=True)
class Measured:
    """A call's input and everything code made from it, with hashes: what a revision or a draft shows.

    `facts` is {"count", "amount": {"amount", "currency"} | None, "items": [ids], "more": {…}}; `preview` is
    {"title", "impact": [lines], "columns", "sample": [rows], "change", "added", "hidden"};
    `precondition` maps names to values.
    """

    input: Json
    input_hash: str
    facts: Json
    items: tuple[str, ...]
    items_digest: str
    precondition: Json
    preview: Json
    preview_hash: str
    schema_hash: str


@dataclass(frozen=True)
class Call:
    """One use of a tool that the model asked for."""

    id: CallId
    run_id: RunId
    turn: int
    position: int
    provider_id: str
    tool: str
    effect: str | None
    input: Json
    rationale: str | None
    status: CallStatus
    result: Json
    measured: Json
    items: tuple[str, ...]
    not_before: datetime | None
    attempts: int
    first_attempt_at: datetime | None
    key: str | None
    repeatable: bool
    only_reads: bool
    output: Json
    done_items: tuple[str, ...] | None
    ended_at: datetime | None


@dataclass(frozen=True)
class Vote:
    """A standing approval of the current revision."""

    person: Actor
    at: str  # ISO 8601, UTC

    def to_json(self) -> dict[str, Json]:
        """The vote as it is stored in the approval's row."""
        return {"person": self.person.to_json(), "at": self.at}


@dataclass(frozen=True)
class Rule:
    """Who may decide an approval and how long it waits, frozen when it was proposed.

    Durations are seconds. `approvers` and `escalate_to` are names of roles.
    """

    approvers: tuple[str, ...]
    escalate_to: tuple[str, ...]
    quorum: int
    four_eyes: bool
    expires_after: float
    escalate_after: float
    claim_within: float
    channel: str  # where the card goes

    def to_json(self) -> dict[str, Json]:
        """The rule as it is stored in the approval's row."""
        return {
            "approvers": list(self.approvers),
            "escalate_to": list(self.escalate_to),
            "quorum": self.quorum,
            "four_eyes": self.four_eyes,
            "expires_after": self.expires_after,
            "escalate_after": self.escalate_after,
            "claim_within": self.claim_within,
            "channel": self.channel,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Json]) -> "Rule":
        """The reverse of `to_json`."""
        return cls(
            **{**value, "approvers": tuple(value["approvers"]), "escalate_to": tuple(value["escalate_to"])}
        )


@dataclass(frozen=True)
class Approval:
    """One call waiting for, or having had, people's say, with the content of its current revision.

    `original_input` is the model's; `shown` is what the current revision shows; `author` made it (None: the
    model). `now` is the database's clock at the reading. `outcome` is None or
    {"kind": "executed"|"failed"|"superseded"|"unknown"|…, "text", "output", "done": [items] | None,
    "moved": [{"name", "was", "is"}] | None}.
    """

    id: ApprovalId
    call_id: CallId
    run_id: RunId
    conversation_id: ConversationId
    status: ApprovalStatus
    revision: int
    version: int
    tool: str
    effect: str
    agent: str
    requester: Actor
    rule: Rule
    votes: tuple[Vote, ...]
    attempted: bool
    replaces: ApprovalId | None
    replaced_by: ApprovalId | None
    supersessions: int
    expires_at: datetime
    escalate_at: datetime | None
    escalated_at: datetime | None
    claim_by: datetime | None
    decided_at: datetime | None
    decided_by: Actor | None
    reason: str | None
    outcome: Json
    ended_at: datetime | None
    created_at: datetime
    now: datetime
    shown: Measured
    author: Actor | None
    original_input: Json
    rationale: str | None
    provider_id: str
    call_status: CallStatus
    conversation: Conversation


@dataclass(frozen=True)
class NobodyKnows:
    """What is known of a call whose outcome nobody knows: how often it was attempted, under which key.

    `why` says how the answer was lost; from `retry_until` on the key may be forgotten; `since` nobody knows.
    """

    why: str
    attempts: int
    key: str
    first_attempt_at: datetime
    retry_until: datetime
    since: datetime

    @classmethod
    def of(cls, approval: Approval) -> "NobodyKnows | None":
        """What an approval's outcome says of it; None: it is not unknown."""
        known = approval.outcome or {}
        if approval.status is not ApprovalStatus.UNKNOWN or "since" not in known:
            return None
        moments = (datetime.fromisoformat(known[n]) for n in ("first_attempt_at", "retry_until", "since"))
        return cls(known["text"] or "", known["attempts"], known["key"], *moments)


@dataclass(frozen=True)
class Draft:
    """A previewed edit: it decides nothing until it is confirmed."""

    id: DraftId
    approval_id: ApprovalId
    base_revision: int
    author: Actor
    content: Measured
    confirmed_as: int | None


@dataclass(frozen=True)
class Card:
    """A copy of an approval in Slack: the version it shows and the version it should show.

    `told_revision` is what the cards of others that share items know of it; 0: nothing, or that it is over.
    """

    id: CardId
    approval_id: ApprovalId
    team_id: str
    channel_id: str | None
    user_id: str | None
    ts: str | None
    shown_version: int
    wanted_version: int
    told_revision: int
    failures: int
    token: str | None = None


DMS, UPDATES = "", "updates"
"""Places to send to, beside the ids of channels: DMs that are to be opened; all that is in Slack already."""


@dataclass(frozen=True)
class Notice:
    """A message of the bot that is not a card: in a conversation's thread, or to a person's DM.

    `kind` names the text (bot/texts); `data` is what the text needs. With a `ts` it is posted already and
    is to be brought up to date.
    """

    id: int
    kind: str
    data: Json
    conversation: Conversation | None
    team_id: str | None
    user_id: str | None
    failures: int
    token: str
    ts: str | None = None
    version: int = 0
    shown: str | None = None
    """A digest of what it was brought up to the last time, if that is certain."""


@dataclass(frozen=True)
class Line:
    """The first message of the answer to a run, at `ts`, with the rows that it tells of.

    `calls` are those of the run's last turn, `approvals` all of the run's; read at `now`. `stopped_by` is who
    stopped the run, if that is known.
    """

    run: Run
    conversation: Conversation
    ts: str
    calls: tuple[Call, ...]
    approvals: tuple[Approval, ...]
    now: datetime
    stopped_by: Actor | None = None


@dataclass(frozen=True)
class Veto:
    """A refusal of an effect class that lasts until a person speaks again."""

    effect: str
    approval_id: ApprovalId
    kind: Literal["rejected", "expired"]
    denied_by: Actor | None
    reason: str | None


@dataclass(frozen=True)
class DirectoryUser:
    """A Slack user as the directory table knows them.

    `age` is seconds since Slack was asked, or told by itself; that is `unconfirmed` until it is asked.
    """

    team_id: str
    user_id: str
    name: str
    is_bot: bool
    deleted: bool
    restricted: bool
    stranger: bool
    age: float
    unconfirmed: bool = False


@dataclass(frozen=True)
class AuditEvent:
    """Append-only fact: who, what, when, on what. `actor` and `data` are None when redacted."""

    run_id: str
    seq: int
    at: datetime
    kind: str
    approval_id: str | None
    call_id: str | None
    actor: Actor | None
    data: Json
    hash: str


@dataclass(frozen=True)
class Turn:
    """One turn as it is stored: the message that led to the model's answer, and the answer."""

    run_id: RunId
    seq: int
    body: tuple[Json, ...]
    state_version: int


@dataclass(frozen=True)
class Edited:
    """What a person made of a call that the model had asked for."""

    asked_input: Json
    edited_input: Json
    by: Actor


@dataclass(frozen=True)
class Settlement:
    """What a person said of a call of unknown outcome after its run had ended; the call is done or failed.

    `input` is what the call was attempted with.
    """

    call: Call
    input: Json
    by: Actor


@dataclass(frozen=True)
class ClaimedRun:
    """A run that this worker holds, with all it needs to go on: `token` guards every write.

    `runs` are the conversation's up to this one, in order; `turns` theirs, in order; `calls` those of each
    run's last turn, whose results no stored message has yet; `vetoes` stand; `settled` are the settlements
    of earlier runs' calls, told or not. `edited` are the calls that people changed, by their ids.
    """

    run: Run
    conversation: Conversation
    token: str
    runs: tuple[Run, ...]
    turns: tuple[Turn, ...]
    calls: tuple[Call, ...]
    vetoes: tuple[Veto, ...]
    settled: tuple[Settlement, ...] = ()
    edited: Mapping[str, Edited] = field(default_factory=dict)


@dataclass(frozen=True)
class ClaimedCall:
    """A call that this worker holds, with what was shown for it; `approval` is None for an allowed call."""

    call: Call
    run: Run
    token: str
    approval: Approval | None


@dataclass(frozen=True)
class Ended:
    """A call's result is recorded; `kept`: it was the turn's last open one, and this worker holds the run.

    `run` is then what it goes on from, if that was asked for and could be read; if not, load it.
    """

    run_id: RunId
    kept: bool
    run: ClaimedRun | None


@dataclass(frozen=True)
class Overlap:
    """Another open approval of the same effect that has some of the same items."""

    approval_id: ApprovalId
    status: ApprovalStatus
    items: tuple[str, ...]


@dataclass(frozen=True)
class Verified:
    """The record, checked: how many events in how many chains, and a sentence for each fault."""

    events: int
    chains: int
    broken: tuple[str, ...]
