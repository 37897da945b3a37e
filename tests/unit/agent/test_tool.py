"""A tool says at construction what is wrong with it, and its policy is closed by default."""

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, field_validator

from agent.judge import judge
from agent.schema import InvalidInput, input_json, model_schema, schema_hash, split_input, validate
from agent.tool import (
    Facts,
    Money,
    Risk,
    Rule,
    Tool,
    ToolError,
    Verdict,
    always_ask,
    ask_when,
    forbid_when,
    never_ask,
)
from agent.toolbox import ToolsError, by_name, load_tools
from agent.why import said
from bot.fields import fields_of


class Refund(BaseModel):
    """Refund payments."""

    payment_ids: list[str] = Field(title="Payments", min_length=1)
    reason: str = Field(title="Reason", max_length=20)

    @field_validator("reason")
    @classmethod
    def not_shouted(cls, reason: str) -> str:
        if reason.isupper():
            raise ValueError("do not shout")
        return reason


def run(input, ctx) -> Mapping[str, Any]:
    return {}


def undo(input, result, ctx) -> None:
    return None


def yielding(input, ctx):
    yield input


async def async_yielding(input, ctx):
    yield input


def yielding_nothing():
    yield "it is there"


async def judged_later(input, facts) -> bool:
    return False


def yielding_verdict(input, facts):
    yield False


class JudgedLater:
    async def __call__(self, input, facts) -> bool:
        return False


class Yielding:
    def __call__(self, input, ctx):
        yield input


def tool(**parts: Any) -> Tool:
    return Tool(**{"name": "refund", "input": Refund, "risk": Risk.IRREVERSIBLE, "execute": run, **parts})


def test_a_tool_needs_only_four_things_and_has_defaults_for_the_rest() -> None:
    made = tool()
    assert (made.effect, made.timeout_seconds, made.repeatable, made.rules) == ("refund", 60.0, False, ())
    assert made.description == "Refund payments."


def test_a_rule_may_say_the_same_of_every_call_and_why() -> None:
    closed = Rule(Verdict.FORBID, words="the shop is closed")
    assert tool(policy=(always_ask, closed, never_ask)).rules == (always_ask, closed, never_ask)


def test_several_texts_are_whatever_holds_them() -> None:
    made = tool(personal=["Name", "Name"], reasons=iter(["Too many", "Not yet"]))
    assert (made.personal, made.reasons) == ({"Name"}, ("Too many", "Not yet"))


class NoDocstring(BaseModel):
    pass


class WithRationale(BaseModel):
    """Has a field of the house."""

    rationale: str


class Listed(RootModel[list[str]]):
    """Has no fields."""


class Choice(BaseModel):
    """Says at the top that it is one of several."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["a"]}, {"required": ["b"]}]})
    a: str = ""
    b: str = ""


class Odd(BaseModel):
    """Has a field that JSON has not."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    when: range


class Spoken(BaseModel):
    """Has a name that the provider does not take."""

    to: str = Field(alias="an wen")


def test_what_a_tool_did_is_a_list_of_texts_by_the_time_it_is_raised() -> None:
    assert ToolError("x", "b1").done == ("b1",)
    assert ToolError("x", [1, "b2"]).done == ("1", "b2")


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (ValueError("card 4242 was declined"), "card 4242 was declined"),
        (404, "404"),
        (None, "The tool failed and did not say why."),
        (" ", "The tool failed and did not say why."),
    ],
)
def test_an_error_is_raised_with_whatever_says_what_is_wrong(message: object, words: str) -> None:
    assert ToolError(message).message == words


class Folder(BaseModel):
    """Delete a folder with all that is in it."""

    name: str
    folders: list["Folder"] = []


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"name": "Refund"}, "tool name 'Refund'"),
        ({"name": "r" * 65}, "1 to 64"),
        ({"input": dict}, "pydantic BaseModel"),
        ({"input": NoDocstring}, "docstring"),
        ({"input": WithRationale}, "'rationale' is reserved"),
        ({"input": Listed}, "Listed must have named fields"),
        ({"input": Choice}, "Choice must have named fields"),
        ({"input": Odd}, "Odd cannot be described to the model .*range"),
        ({"input": Spoken}, "the model cannot fill: choose a name"),
        ({"effect": "e" * 101}, "effect must be a name of at most 100"),
        ({"effect": "a\x00"}, "effect must be a name"),
        ({"risk": "high"}, "risk must be a Risk"),
        ({"execute": None}, "execute must be a function"),
        ({"execute": lambda input: None}, r"execute must take \(input, ctx\)"),
        ({"execute": yielding}, "execute must return what it made, not yield it"),
        ({"execute": partial(yielding, ctx=None)}, "not yield it"),
        ({"facts": async_yielding}, "facts must return what it made, not yield it"),
        ({"execute": Yielding()}, "not yield it"),
        ({"preview": run}, r"preview must take \(input, facts, ctx\)"),
        ({"facts": undo}, r"facts must take \(input, ctx\)"),
        ({"policy": lambda i, f: True}, "policy must be always_ask"),
        ({"policy": [always_ask]}, "policy must be always_ask"),
        ({"timeout": "1d"}, "timeout must be like"),
        ({"timeout": "0s"}, "timeout must be like"),
        ({"timeout": "61m"}, "at most an hour"),
        ({"timeout": 60}, "timeout must be like"),
        ({"undo": undo}, "with one it is REVERSIBLE"),
        ({"risk": Risk.REVERSIBLE}, "must have undo"),
        ({"risk": Risk.READ_ONLY, "facts": run, "policy": never_ask}, "remove facts, policy"),
        ({"reasons": "Duplicate"}, r"refund: reasons must be several texts, like \('Duplicate',\), not 'Dup"),
        ({"reasons": None}, "reasons must be several texts"),
        ({"reasons": (5,)}, "reasons must be several texts"),
        ({"reasons": 5}, "reasons must be several texts"),
        ({"personal": "email"}, r"personal must be several texts, like \('email',\), not 'email'"),
        ({"personal": [b"email"]}, "personal must be several texts"),
        ({"personal": [["email"]]}, "personal must be several texts"),
        ({"repeatable": "no"}, "refund: repeatable must be True or False, not 'no'"),
        ({"repeatable": None}, "repeatable must be True or False"),
        ({"doing": 5}, "doing must be a text, not 5"),
        ({"version": 2}, "version must be a text, not 2"),
        ({"followup": 5}, "followup must be the name of another tool, not 5"),
        ({"followup": "refund"}, "followup must be the name of another tool, not 'refund'"),
        ({"policy": ask_when("amount > 5")}, r"refund: ask_when must be given a function, not 'amount > 5'"),
        ({"policy": forbid_when(True)}, "forbid_when must be given a function, not True"),
        ({"policy": (always_ask, ask_when(None))}, "ask_when must be given a function, not None"),
        ({"policy": ask_when(judged_later)}, "ask_when must be given a function that answers at once"),
        ({"policy": ask_when(partial(judged_later, facts=None))}, "answers at once: write def, not async"),
        ({"policy": ask_when(JudgedLater())}, "answers at once"),
        ({"policy": ask_when(yielding_verdict)}, "answers at once"),
        ({"policy": ask_when(lambda facts: True)}, r"ask_when must be given a function of \(input, facts\)"),
        ({"policy": ask_when(lambda i, f: True, 5)}, "the words of ask_when must be a text, not 5"),
        ({"check": yielding_verdict}, "check must be a function that takes nothing"),
        ({"check": yielding_nothing}, "check must return what it says, not yield it"),
    ],
)
def test_a_wrong_tool_is_refused_with_what_is_wrong(parts: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        tool(**parts)


def test_an_input_that_contains_itself_has_its_fields_at_the_top_for_the_model_and_in_the_form() -> None:
    schema = model_schema(tool(input=Folder))["input_schema"]
    assert (schema["type"], list(schema["properties"])) == ("object", ["name", "folders", "rationale"])
    assert schema["properties"]["folders"]["items"] == {"$ref": "#/$defs/Folder"}
    assert "$ref" not in schema
    assert [field.title for field in fields_of(Folder)] == ["Name", "Folders"]


class Broke(ToolError):
    """Says what is wrong in a way of its own."""

    def __init__(self, code: int) -> None:
        self.code = code


class Declined(ToolError):
    """Has words of its own for when it is given none."""

    message = "The bank declined it."


def test_an_error_of_a_tool_s_own_has_words_and_did_nothing() -> None:
    assert Declined("").message == "The bank declined it."
    error = Broke(5)
    assert (error.message, error.done) == ("The tool failed and did not say why.", ())


@pytest.mark.parametrize(("timeout", "seconds"), [("500ms", 0.5), ("90s", 90.0), ("5m", 300.0)])
def test_a_timeout_is_read_in_seconds(timeout: str, seconds: float) -> None:
    assert tool(timeout=timeout).timeout_seconds == pytest.approx(seconds)


more_than_one = ask_when(lambda i, f: f.count > 1)
over_50 = ask_when(lambda i, f: f.amount > Money("50", "EUR"))
huge = forbid_when(lambda i, f: f.count > 100, "at most 100 at once")


@pytest.mark.parametrize(
    ("policy", "facts", "verdict"),
    [
        (None, Facts(1), Verdict.ASK),
        (always_ask, Facts(1), Verdict.ASK),
        (never_ask, Facts(1), Verdict.ALLOW),
        (more_than_one, Facts(1), Verdict.ALLOW),
        (more_than_one, Facts(2), Verdict.ASK),
        (huge, Facts(1), Verdict.ASK),
        (huge, Facts(101), Verdict.FORBID),
        ((huge, more_than_one), Facts(1), Verdict.ALLOW),
        ((more_than_one, huge), Facts(101), Verdict.FORBID),
        ((never_ask, more_than_one), Facts(2), Verdict.ASK),
        (over_50, Facts(1), Verdict.ASK),
        (over_50, Facts(1, Money("1", "USD")), Verdict.ASK),
        (over_50, Facts(1, Money("1", "EUR")), Verdict.ALLOW),
        (ask_when(lambda i, f: None), Facts(1), Verdict.ASK),
        (forbid_when(lambda i, f: 1 / 0 > 1), Facts(1), Verdict.ASK),
        (forbid_when(lambda i, f: sys.exit(1)), Facts(1), Verdict.ASK),
        ((forbid_when(lambda i, f: True), ask_when(lambda i, f: f.nothing)), Facts(1), Verdict.FORBID),
    ],
)
def test_the_strictest_rule_wins_and_whatever_goes_wrong_asks(policy, facts: Facts, verdict: Verdict) -> None:
    assert judge(tool(policy=policy), None, facts)[0] is verdict


def test_a_reversible_tool_does_not_ask_by_itself_but_its_rules_may() -> None:
    reversible = {"risk": Risk.REVERSIBLE, "undo": undo}
    assert judge(tool(**reversible), None, Facts(2))[0] is Verdict.ALLOW
    assert judge(tool(**reversible, policy=huge), None, Facts(2))[0] is Verdict.ALLOW
    assert judge(tool(**reversible, policy=more_than_one), None, Facts(2))[0] is Verdict.ASK


def test_the_verdict_says_why() -> None:
    assert judge(tool(policy=huge), None, Facts(101)) == (Verdict.FORBID, said("at most 100 at once"))
    _, why = judge(tool(policy=over_50), None, Facts(1, Money("1", "USD")))
    assert why is not None and "different currencies" in why.text


def test_the_model_may_give_a_rationale_that_the_tool_never_sees() -> None:
    schema = model_schema(tool())["input_schema"]
    assert "rationale" in schema["properties"]
    assert "rationale" not in schema["required"]
    raw = {"payment_ids": ["p1"], "reason": "late", "rationale": " They failed. "}
    rest, rationale = split_input(tool(), raw)
    assert rationale == "They failed."
    assert validate(tool(), rest) == Refund(payment_ids=["p1"], reason="late")
    assert "rationale" in raw


@pytest.mark.parametrize("rationale", [None, "", " ", 5, ["x"]])
def test_a_rationale_that_says_nothing_is_none(rationale: object) -> None:
    assert split_input(tool(), {"rationale": rationale}) == ({}, None)


def test_a_read_only_tool_has_no_rationale() -> None:
    read_only = tool(risk=Risk.READ_ONLY)
    assert "rationale" not in model_schema(read_only)["input_schema"]["properties"]
    assert split_input(read_only, {"rationale": "x"}) == ({"rationale": "x"}, None)


@pytest.mark.parametrize("raw", [None, "x", ["x"], 5])
def test_input_that_is_no_object_is_invalid(raw: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        split_input(tool(), raw)
    assert caught.value.fields[0][0] == ""


@pytest.mark.parametrize(
    ("raw", "path", "message"),
    [
        ({"reason": "late"}, "payment_ids", "This is needed"),
        ({"payment_ids": [], "reason": "late"}, "payment_ids", "Give at least 1; there are 0"),
        ({"payment_ids": ["p1", 5], "reason": "late"}, "payment_ids.1", "string"),
        ({"payment_ids": ["p1"], "reason": "late", "total": 5}, "total", "There is no such field"),
        ({"payment_ids": ["p1"], "reason": "LATE"}, "reason", "do not shout"),
        ({"payment_ids": ["p1"], "reason": "a\x00b"}, "reason", "cannot be stored"),
        ({"payment_ids": ["\ud800"], "reason": "late"}, "payment_ids.0", "cannot be stored"),
        ({"payment_ids": ["p1"], "reason": "late", "\x00": 1}, "", "cannot be stored"),
    ],
)
def test_invalid_input_names_the_field(raw: object, path: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        validate(tool(), raw)
    [(found, text)] = caught.value.fields
    assert found == path
    assert message in text
    assert not text.startswith("Value error")


def test_stored_input_is_valid_again_and_spelled_the_same() -> None:
    first = validate(tool(), {"payment_ids": ["p1"], "reason": "late"})
    assert input_json(validate(tool(), input_json(first))) == input_json(first)


class RefundMore(Refund):
    """Refund payments."""

    note: str = ""


def test_the_schema_hash_changes_with_name_version_and_schema_only() -> None:
    same = schema_hash(tool())
    assert schema_hash(tool(policy=always_ask, timeout="5s")) == same
    changed = [schema_hash(tool(**part)) for part in ({"name": "r"}, {"version": "2"}, {"input": RefundMore})]
    assert len({same, *changed}) == 4


OUTSIDE = '''
from pydantic import BaseModel, Field
from agent.tool import Facts, Money, Preview, Risk, Tool, ToolError, ask_when

PRICE = {"gold": Money("120.00", "EUR"), "silver": Money("40.00", "EUR")}


class GrantCredit(BaseModel):
    """Grant store credit to customers as an apology."""

    customer_ids: list[str] = Field(title="Customers", min_length=1, max_length=50)
    level: str = Field(title="Level", pattern="^(gold|silver)$")


def measure(input, ctx):
    total = Money("0", "EUR")
    for _ in input.customer_ids:
        total += PRICE[input.level]
    return Facts(count=len(input.customer_ids), amount=total, items=input.customer_ids)


def show(input, facts, ctx):
    rows = [(customer, PRICE[input.level]) for customer in input.customer_ids]
    return Preview(f"Credit {facts.count} customers", [facts.amount.text()], ["Customer", "Credit"], rows)


async def grant(input, ctx):
    if "closed" in input.customer_ids:
        raise ToolError("the customer has left", done=[])
    return {"granted": len(input.customer_ids), "key": ctx.idempotency_key}


TOOLS = [
    Tool(
        name="grant_credit", input=GrantCredit, risk=Risk.IRREVERSIBLE, effect="credit",
        facts=measure, policy=ask_when(lambda i, f: f.amount > Money("50", "EUR")),
        preview=show, execute=grant, repeatable=True,
    )
]
'''


async def test_a_whole_tool_file_needs_only_agent_tool_and_pydantic(tmp_path, monkeypatch) -> None:
    assert len([line for line in OUTSIDE.splitlines() if line.strip()]) <= 40
    (tmp_path / "credit_tools.py").write_text(OUTSIDE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["", *sys.path])
    grant_credit = load_tools("credit_tools:TOOLS")["grant_credit"]
    input = validate(grant_credit, {"customer_ids": ["c1", "c2"], "level": "silver"})
    facts = grant_credit.facts(input, None)
    assert facts == Facts(2, Money("80", "EUR"), ["c1", "c2"])
    assert judge(grant_credit, input, facts)[0] is Verdict.ASK
    assert grant_credit.preview(input, facts, None).impact == ("€80.00",)


@pytest.mark.parametrize(
    ("text", "spec", "message"),
    [
        ("TOOLS = []", "no_such_module_here:TOOLS", "could not be imported"),
        ("TOOLS = []", "tools_under_test", "must be package.module:NAME"),
        ("TOOLS = []", "tools_under_test:MORE", "has no MORE"),
        ("TOOLS = 5", "tools_under_test:TOOLS", "must be a list of tools"),
        ("TOOLS = [5]", "tools_under_test:TOOLS", "may hold only Tool"),
        ("raise SystemError('boom')", "tools_under_test:TOOLS", "SystemError: boom"),
        ("this is no python", "tools_under_test:TOOLS", "SyntaxError"),
    ],
)
def test_tools_that_cannot_be_loaded_are_explained_in_one_line(
    tmp_path, monkeypatch, text: str, spec: str, message: str
) -> None:
    (tmp_path / "tools_under_test.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tools_under_test", raising=False)
    with pytest.raises(ToolsError, match=message) as caught:
        load_tools(spec)
    assert str(caught.value).startswith("VISTOBUENO_TOOLS")
    assert "\n" not in str(caught.value)


def test_two_tools_of_one_name_and_unknown_followups_are_refused() -> None:
    with pytest.raises(ToolsError, match="2 tools named refund"):
        by_name([tool(), tool()])
    with pytest.raises(ToolsError, match="follow-up tell_customer"):
        by_name([tool(followup="tell_customer")])


def test_tools_are_found_by_name() -> None:
    assert list(by_name([tool(), tool(name="b", followup="refund")])) == ["refund", "b"]
