"""The other tools of the shop against real tables."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from agent.judge import judge
from agent.schema import InvalidInput, validate
from agent.tool import Risk, Tool, ToolError, Verdict
from agent.toolbox import load_tools
from agent.tools import TOOLS
from agent.tools.shop.delete_customers import delete_customers
from agent.tools.shop.draft_refund_report import draft_refund_report
from agent.tools.shop.local_client import LocalClient
from agent.tools.shop.payment_client import Made, Wanted
from agent.tools.shop.provider import RefundProvider
from agent.tools.shop.refund_payments import refund_payments
from agent.tools.shop.search_payments import search_payments
from agent.tools.shop.send_email import send_email
from tests.databases import Database
from tests.integration.shop.conftest import Shop, called, context, executed, measured

TODAY = datetime.now(UTC).date().isoformat()


def test_the_shipped_tools_load_like_any_others() -> None:
    tools = load_tools("agent.tools:TOOLS")
    assert list(tools.values()) == TOOLS
    assert [tools[name].risk for name in ("search_payments", "draft_refund_report", "refund_payments")] == [
        Risk.READ_ONLY,
        Risk.REVERSIBLE,
        Risk.IRREVERSIBLE,
    ]


async def test_a_search_counts_all_and_lists_up_to_the_limit(shop: Shop) -> None:
    found = await executed(search_payments, {"status": "failed"})
    assert (found["count"], found["total"]) == (38, {"amount": "4120.00", "currency": "EUR"})
    assert sorted(found["ids"]) == shop.failed_ids()
    few = await executed(search_payments, {"status": "failed", "limit": 2})
    assert (few["count"], len(few["payments"])) == (38, 2)


async def test_a_search_without_a_match_says_so(shop: Shop) -> None:
    shop.run("DELETE FROM shop.payments")
    found = await executed(search_payments, {"status": "failed"})
    assert (found["count"], found["total"]["amount"], found["ids"]) == (0, "0.00", [])


REPORT = {"title": "Failed payments", "summary": "Two failed.", "payment_ids": ["pay_0007", "pay_0017"]}


async def test_a_report_is_drafted_once_per_key_and_can_be_discarded(shop: Shop) -> None:
    _, facts, preview = await measured(draft_refund_report, REPORT)
    assert facts.amount is not None
    assert preview.title == f"Draft a report on 2 payments · {facts.amount.text()}"
    result = await executed(draft_refund_report, REPORT)
    assert await executed(draft_refund_report, REPORT, attempt=2) == result
    assert len(shop.rows("SELECT 1 FROM shop.reports")) == 1
    input = validate(draft_refund_report, REPORT)
    for _ in range(2):
        await called(draft_refund_report.undo, input, result, context())
    assert shop.rows("SELECT 1 FROM shop.reports") == []


async def test_two_attempts_with_one_key_at_the_same_time_do_one_thing(shop: Shop) -> None:
    results = await asyncio.gather(*(executed(draft_refund_report, REPORT) for _ in range(4)))
    assert all(result == results[0] for result in results)
    assert len(shop.rows("SELECT 1 FROM shop.reports")) == 1


async def test_a_report_on_unknown_payments_fails_by_name(shop: Shop) -> None:
    with pytest.raises(ToolError, match="pay_9999"):
        await measured(draft_refund_report, REPORT | {"payment_ids": ["pay_9999"]})


def email_to(*to: str) -> dict[str, object]:
    return {"to": list(to), "subject": "Your refund", "body": "It is on its way."}


async def test_an_email_to_one_person_is_allowed_and_to_two_asks(shop: Shop) -> None:
    for to, verdict in (
        (["a@example.com"], Verdict.ALLOW),
        (["a@example.com", "b@example.com"], Verdict.ASK),
    ):
        input, facts, _ = await measured(send_email, email_to(*to))
        assert judge(send_email, input, facts)[0] is verdict


async def test_the_preview_of_an_email_shows_its_text_and_who_is_no_customer(shop: Shop) -> None:
    [customer] = shop.rows("SELECT name, email FROM shop.customers WHERE id = 'cus_0001'")
    _, _, preview = await measured(send_email, email_to(customer["email"], "who@example.org"))
    assert preview.title == "Send an email to 2 people"
    assert preview.impact == ("Subject: Your refund", "It is on its way.", "1 address of no customer")
    assert preview.sample == ((customer["email"], customer["name"]), ("who@example.org", "(no customer)"))


async def test_of_an_email_to_customers_alone_no_strangers_are_counted(shop: Shop) -> None:
    [customer] = shop.rows("SELECT name, email FROM shop.customers WHERE id = 'cus_0001'")
    _, _, preview = await measured(send_email, email_to(customer["email"]))
    assert preview.impact == ("Subject: Your refund", "It is on its way.")


def test_a_recipient_who_is_there_twice_is_named() -> None:
    with pytest.raises(InvalidInput) as refused:
        validate(send_email, email_to("a@example.com", "b@example.com", "A@example.com"))
    [(_, problem)] = refused.value.fields
    assert problem == "give every recipient once; repeated: a@example.com"


async def test_an_email_is_put_out_once_per_key_and_recipient(shop: Shop) -> None:
    for attempt in (1, 2):
        sent = await executed(send_email, email_to("a@example.com", "b@example.com"), attempt=attempt)
        assert sent == {"sent": 2}
    assert len(shop.rows("SELECT 1 FROM shop.outbox")) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        email_to("a@example.com", "A@example.com"),
        email_to("a@example.com,b@example.com"),
        email_to("no address"),
        email_to(),
        email_to("a@example.com") | {"subject": "x\nBcc: all@example.com"},
    ],
)
def test_an_email_that_could_reach_others_than_shown_is_invalid(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        validate(send_email, wrong)


async def test_deleting_everybody_says_how_many_were_billed_this_quarter(shop: Shop) -> None:
    input, facts, preview = await measured(delete_customers, {"opened_before": TODAY})
    assert (facts.count, facts.billed_this_quarter, len(facts.items)) == (1204, 6, 1204)
    assert preview.title == "Delete 1,204 customers"
    assert preview.impact[:2] == ("1,204 customers", "6 of them with invoices this quarter")
    assert [row[4] for row in preview.sample[:7]] == ["yes"] * 6 + ["no"]
    assert judge(delete_customers, input, facts)[0] is Verdict.ASK
    assert await called(delete_customers.precondition, input, context()) == {
        "customers": 1204,
        "with invoices this quarter": 6,
    }


async def test_deleting_one_customer_asks_too(shop: Shop) -> None:
    input, facts, _ = await measured(delete_customers, {"customer_ids": ["cus_0002"]})
    assert (facts.count, judge(delete_customers, input, facts)[0]) == (1, Verdict.ASK)


async def test_a_new_invoice_moves_the_precondition(shop: Shop) -> None:
    input = validate(delete_customers, {"customer_ids": ["cus_0002"]})
    shop.run("INSERT INTO shop.invoices VALUES ('inv_new', 'cus_0002', 5, now()::date)")
    assert (await called(delete_customers.precondition, input, context()))["with invoices this quarter"] == 1


async def test_the_chosen_customers_go_and_nobody_else(shop: Shop) -> None:
    for attempt in (1, 2):
        gone = await executed(delete_customers, {"customer_ids": ["cus_0001", "cus_0017"]}, attempt=attempt)
        assert gone == {"deleted": 2}
    assert shop.rows("SELECT count(*) AS n FROM shop.customers") == [{"n": 1202}]
    assert shop.rows("SELECT 1 FROM shop.invoices WHERE customer_id = 'cus_0017'") == []
    assert shop.rows("SELECT count(*) AS n FROM shop.payments") == [{"n": 400}]


async def test_customers_that_do_not_exist_fail_the_call_by_name(shop: Shop) -> None:
    with pytest.raises(ToolError, match="cus_9999"):
        await measured(delete_customers, {"customer_ids": ["cus_9999"]})
    with pytest.raises(ToolError, match="no customer fits"):
        await measured(delete_customers, {"opened_before": "1990-01-01"})


@pytest.mark.parametrize("wrong", [{}, {"customer_ids": ["cus_0001"], "opened_before": TODAY}])
def test_customers_are_chosen_in_exactly_one_way(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="either customer_ids or opened_before"):
        validate(delete_customers, wrong)


INPUTS: dict[str, dict[str, Any]] = {
    "search_payments": {"status": "failed"},
    "draft_refund_report": REPORT,
    "refund_payments": {"payment_ids": ["pay_0007"], "reason": "the order failed"},
    "send_email": email_to("a@example.com"),
    "delete_customers": {"customer_ids": ["cus_0001"]},
}


@pytest.fixture
def no_shop(empty_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", empty_database.url)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
async def test_where_there_is_no_shop_every_tool_says_so_and_what_to_do(
    no_shop: None, provider: RefundProvider, tool: Tool
) -> None:
    input = validate(tool, INPUTS[tool.name])
    with pytest.raises(ToolError, match=r"^the example shop is not in .*docs/stripe\.md"):
        await called(tool.execute, input, context())
    assert tool.check is not None
    with pytest.raises(ToolError, match="the example shop is not in this database"):
        await called(tool.check)
    assert provider.requests == 0


async def test_a_shop_that_goes_while_a_batch_is_refunded_is_no_tool_error(
    shop: Shop, provider: RefundProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    refunded = LocalClient.refund

    async def refund_and_lose_the_shop(self: LocalClient, wanted: Wanted, *, again: bool) -> Made:
        made = await refunded(self, wanted, again=again)
        shop.run("DROP SCHEMA shop CASCADE")
        return made

    monkeypatch.setattr(LocalClient, "refund", refund_and_lose_the_shop)
    with pytest.raises(psycopg.errors.UndefinedTable):
        await executed(refund_payments, {"payment_ids": shop.failed_ids()[:2], "reason": "x"})
    assert len(provider.refunds) == 1, "which nobody may call nothing"


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
async def test_where_the_shop_is_or_nobody_can_look_a_check_says_nothing(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, tool: Tool
) -> None:
    monkeypatch.delenv("STRIPE_API_KEY", raising=False)
    assert tool.check is not None
    assert await called(tool.check) is None
    for elsewhere in ("postgresql://vistobueno@127.0.0.1:1/none", ""):
        monkeypatch.setenv("DATABASE_URL", elsewhere)
        assert await called(tool.check) is None


async def test_without_a_database_the_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    with pytest.raises(ToolError, match="DATABASE_URL is not set"):
        await executed(search_payments, {"status": "failed"})
