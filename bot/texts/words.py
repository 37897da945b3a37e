"""The shape of a language: every sentence people read, as templates whose placeholders are in braces.

A language that lacks a sentence cannot be built; a test compares the placeholders of all languages.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from babel import Locale


@dataclass(frozen=True)
class Plural:
    """A sentence with a number `{n}`, in the forms that the language has."""

    one: str
    other: str
    zero: str | None = None
    two: str | None = None
    few: str | None = None
    many: str | None = None

    def of(self, n: int, locale: str) -> str:
        """The form for `n` by the plural rules of `locale` (https://cldr.unicode.org), not yet filled in."""
        forms: Mapping[str, str | None] = vars(self)
        return forms[Locale.parse(locale).plural_form(n)] or self.other


@dataclass(frozen=True)
class CommonWords:
    """What several messages say; `moment` is a format of Slack's date tokens."""

    moment: str
    person: str
    operator: str
    policy: str
    system: str
    model: str
    somebody: str
    direct_message: str
    and_more: str
    moved: str
    named_value: str
    open_card: str
    open_thread: str
    separator: str
    yes: str
    no: str


@dataclass(frozen=True)
class CardWords:
    """What a card says before anybody has decided."""

    approve: str
    edit: str
    reject: str
    described: str
    measured: str
    count: Plural
    irreversible: str
    precondition: str
    precondition_then: str
    precondition_edited: str
    asked: str
    decides: str
    missing: Plural
    expires: str
    asks_you: str
    nobody: str
    nobody_else: str
    nobody_has: str
    nobody_else_has: str
    too_few: Plural
    not_themselves: str
    then_too: str
    unless: str
    nobody_settles: str
    unless_settled: str
    escalated: str
    so_far: str
    spent: str
    sample: str
    sample_picked: str
    sample_new: str
    sample_largest: Plural
    sample_spread: str
    rationale: str
    rationale_before_edit: str
    no_rationale: str
    replaces: str
    added: Plural
    left_out: Plural
    same_items: str
    in_place_of: str
    replaced_edit: str
    overlap: Plural
    refused_before: str
    refused_reason: str
    expired_before: str
    edited: str
    small_print: str
    notify: str
    new: str
    notify_unknown: str
    tried: Plural
    items_unknown: Plural
    settles: str
    retry_until: str
    no_retry: str
    ran: str
    ran_title: str
    ran_final: str
    did_not_run: str
    did_not_run_title: str
    did_not_run_final: str
    try_again: str
    try_again_title: str
    try_again_safe: str
    try_again_risky: str
    keep_waiting: str


@dataclass(frozen=True)
class OutcomeWords:
    """What a card says once it is decided."""

    approved: str
    approved_by_policy: str
    waits_to_run: str
    waits_until: str
    tried_before: str
    tried_again: str
    running: str
    executed: str
    failed: str
    rejected: str
    reason: str
    reason_approved: str
    expired: str
    expired_approved: str
    cancelled: str
    cancelled_by: str
    superseded: str
    superseded_unsaid: str
    unknown: str
    look_first: str
    settled_ran: str
    settled_did_not_run: str
    nothing_ran: str
    looking_again: str
    count: str
    amount: str
    items: str
    check: str
    as_shown: str
    nothing_done: str
    went_through: Plural
    returned: str
    replaced_by: str


@dataclass(frozen=True)
class ModalWords:
    """What modals say; titles and buttons have at most 24 characters."""

    edit: str
    reject: str
    close: str
    cancel: str
    opening: str
    submit_edit: str
    submit_confirm: str
    submit_reject: str
    waiting: str
    edit_intro: str
    edit_again: str
    nothing_to_edit: str
    confirm_intro: str
    difference: str
    instead_of: str
    no_difference: str
    note: str
    note_hint: str
    reject_intro: str
    reason: str
    reason_hint: str
    reason_missing: str


@dataclass(frozen=True)
class FormWords:
    """What the form of an edit says beside the tool's own titles and descriptions."""

    one_per_line: str
    at_least: str
    at_most: str
    more_than: str
    less_than: str
    longest: str
    entries_at_least: str
    entries_at_most: str
    iso_moment: str
    too_long: str
    too_complex: str
    entry: str
    about: str
    missing: str
    no_such_field: str
    too_few: str
    too_many: str
    least_characters: str
    most_characters: str
    multiple_of: str
    most_digits: str
    most_whole_digits: str
    most_decimals: str
    whole_number: str
    number: str
    text: str
    yes_or_no: str
    a_date: str
    a_moment: str
    with_offset: str
    without_offset: str
    in_the_past: str
    in_the_future: str
    a_choice: str
    pattern: str
    unstorable: str


@dataclass(frozen=True)
class ListWords:
    """The answer to the slash command, and App Home."""

    mine: Plural
    everyone: Plural
    none_mine: str
    none: str
    row: str
    row_unknown: str
    more: str
    help: tuple[str, ...]
    not_understood: str
    home: str


@dataclass(frozen=True)
class NoticeWords:
    """What the bot says in a thread or in a direct message."""

    received: str
    received_behind: str
    waits_for: str
    waits_to_know: str
    waits_in_vain: str
    reads_afterwards: str
    asked: str
    moved: str
    not_run: str
    deferred: Plural
    ran: str
    exhausted: str
    failed: str
    failed_retry: str
    cancelled: str
    cancelled_by: str
    no_words: str
    answer_cut: str
    expired: str
    expired_approved: str
    not_done: str
    superseded_thrice: str
    unknown: str
    please_settle: str
    still_unknown: str
    buttons: str
    buttons_retry: str
    settled_ran: str
    settled_did_not_run: str


@dataclass(frozen=True)
class LineWords:
    """What the first message of an answer says while the run goes on, and once it has ended."""

    thinking: str
    reading: str
    looking_again: str
    no_longer_valid: str
    refused: str
    measuring: str
    checking_again: str
    next: str
    tool: str
    running: str
    counted: str
    counted_of: str
    queued: str
    again: str
    again_soon: str
    waiting: str
    waiting_of: str
    about: str
    either: str
    edited: str
    edited_items: str
    added: Plural
    left_out: Plural
    approved: str
    unknown: str
    completed: str
    exhausted: str
    failed: str
    cancelled: str
    cancelled_by: str
    superseded: str
    executed: str
    call_failed: str
    rejected: str
    expired: str
    call_cancelled: str
    still_running: str


@dataclass(frozen=True)
class ReplyWords:
    """What the person who clicked is told, and nobody else."""

    approved: str
    rejected: str
    counted: Plural
    edited: str
    edit_counted: Plural
    unknown: str
    not_an_approver: str
    four_eyes: str
    stale: str
    stale_unnamed: str
    already_approved: str
    already_approved_by_you: str
    already_rejected: str
    already_rejected_by_you: str
    already_voted: str
    already_voted_missing: Plural
    expired: str
    cancelled: str
    cancelled_by: str
    superseded: str
    superseded_unsaid: str
    draft_outdated: str
    draft_unknown: str
    tool_changed: str
    current_card: str
    not_recorded: str
    not_confirmed: str
    not_migrated: str
    stranger: str
    not_for_you: str
    try_again: str
    unreadable: str
    trigger_dead: str
    cannot_preview: str
    task_too_long: str
    task_empty: str
    ran: str
    did_not_run: str
    try_again_counts: str
    said_ran: str
    said_ran_by_you: str
    said_did_not_run: str
    said_did_not_run_by_you: str
    tried_again: str
    tried_again_by_you: str
    nothing_to_settle: str
    attempted_again: str
    too_old: str
    run_stopped: str
    stopped: str
    stopped_but_executing: str
    stopped_but_unknown: str
    no_such_approval: str
    show_which: str
    stop_which: str
    stop_no_such: str
    stop_not_yours: str
    stop_ended: str
    stop_ended_by: str


@dataclass(frozen=True)
class WhyWords:
    """Why something did not go as it was asked: a sentence for each code of `agent.why`, with its parts.

    A sentence with a part `n` is a Plural. `said` is what a tool or its policy says in its own words.
    """

    said: str
    unsaid: str
    tool_gone: str
    tool_changed: str
    shown_altered: str
    read_differently: str
    input_invalid: str
    rule_stricter: str
    policy_stricter: str
    policy_forbids: str
    policy_forbids_now: str
    rule_forbids: str
    rule_failed: str
    timed_out: str
    not_begun: str
    tool_failed: str
    fields_not_kept: str
    wrong_type: str
    measured_not_kept: str
    nothing_happened: str
    broke_off: str
    lazy: str
    counted: str
    counted_of: str
    no_items: str
    changed_after_attempt: str
    still_inside: str
    too_old: str
    worker_gone: str
    worker_ends: str
    run_stopped: str
    no_answer: Plural
    no_usable_answer: Plural
    not_taken_up: Plural
    worn_out: Plural
    last_worker_gone: str
    database_fault: str
    fault: str
    saved_by_newer: str
    declined: str
    conversation_too_large: str
    model_timed_out: str
    model_unreachable: str
    model_busy: str
    model_refused: str
    model_not_asked: str
    model_cut: str
    model_out_of_form: str
    model_not_finite: str
    model_too_deep: str
    model_same_id: str
    model_nameless_call: str
    set_key: str
    settle_billing: str
    use_another_key: str
    name_another_model: str
    start_anew: str
    raise_limit: str
    report_it: str


@dataclass(frozen=True)
class EndedWords:
    """How a run or an approval ended, in a word or two."""

    completed: str
    exhausted: str
    failed: str
    cancelled: str
    rejected: str
    expired: str
    superseded: str
    executed: str


@dataclass(frozen=True)
class Texts:
    """All the words of one language, with the locale by which numbers, amounts and times are written."""

    locale: str
    common: CommonWords
    card: CardWords
    outcome: OutcomeWords
    modal: ModalWords
    form: FormWords
    list: ListWords
    notice: NoticeWords
    line: LineWords
    reply: ReplyWords
    why: WhyWords
    ended: EndedWords
