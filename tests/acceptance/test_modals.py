"""Edit and Reject: windows that open within the life of their trigger, and what becomes of them."""

from pathlib import Path

import pytest

from agent.scripted import call, expect_results, say, script, step
from bot.sandbox import Fault
from bot.texts import texts
from tests.acceptance.scripts import ONLY_ASK, ask_for_refunds
from tests.acceptance.stage import DEADLINE_SECONDS, ROOT, Stage, eventually, staged
from tests.acceptance.test_progress import line
from tests.databases import Database

EN = texts("en")
WAIT = {"timeout": DEADLINE_SECONDS}


async def test_an_edit_is_previewed_and_runs_as_it_was_confirmed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = expect_results(lambda results: results[0]["edited"] and results[0]["executed"])
    script = ask_for_refunds(step(say("I refunded the two you left in."), expect=told))
    async with staged(database, monkeypatch, script) as stage:
        asked = await stage.ask()
        await open_form(stage, "Edit")
        two = (await stage.approval()).shown.input["payment_ids"][:2]
        await fill_payments(stage, two)
        await stage.marta.submit()
        await stage.sandbox.until(lambda: "Refund 2 payments" in shown(stage), **WAIT)
        assert (await stage.approval()).revision == 1
        await stage.marta.submit()
        assert stage.marta.views == []
        await stage.said(asked, "I refunded the two you left in.")
        assert sorted(refund.payment_id for refund in stage.provider.refunds) == sorted(two)
        ended = await line(stage, asked, "Finished.")
        assert ended.startswith("Finished.\n✅ Done: Refund 2 payments · €")
        assert ended.endswith(", edited by Marta (support_lead): 36 left out")


async def test_what_does_not_fit_the_schema_is_said_at_its_field(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        await open_form(stage, "Edit")
        await fill_payments(stage, ["pay_0007", "pay_0007"])
        await stage.marta.submit()
        assert "give every payment once" in " ".join(stage.marta.view.errors.values())


async def test_what_cannot_be_previewed_is_said_above_what_was_typed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        await open_form(stage, "Edit")
        await fill_payments(stage, ["pay_9999"])
        await stage.marta.submit()
        await stage.sandbox.until(lambda: "there are no payments pay_9999" in shown(stage), **WAIT)
        assert (await stage.approval()).status.value == "pending"
        assert typed(stage) == ["pay_9999"]
        await fill_payments(stage, ["pay_0007"])
        await stage.marta.submit()
        await stage.sandbox.until(lambda: "Refund 1 payment" in shown(stage), **WAIT)


async def test_payments_typed_with_commas_on_one_line_are_those_payments(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        await open_form(stage, "Edit")
        await fill_payments(stage, ["pay_0007, pay_0017"])
        await stage.marta.submit()
        await stage.sandbox.until(lambda: "Refund 2 payments" in shown(stage), **WAIT)


async def test_what_was_wrong_with_an_earlier_try_goes_with_the_next_one(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        await open_form(stage, "Edit")
        await fill_payments(stage, ["pay_9999"])
        await stage.marta.submit()
        await stage.sandbox.until(lambda: "there are no payments pay_9999" in shown(stage), **WAIT)
        for twice in (["pay_0007", "pay_0007"], ["pay_0017", "pay_0017"]):
            await fill_payments(stage, twice)
            await stage.marta.submit()
            assert "pay_9999" not in shown(stage)
            assert "Payments: give every payment once" in shown(stage)
            assert (typed(stage), stage.marta.view.errors) == (twice, {})
        await fill_payments(stage, ["pay_8888"])
        await stage.marta.submit()
        await stage.sandbox.until(lambda: "there are no payments pay_8888" in shown(stage), **WAIT)
        assert "give every payment once" not in shown(stage)
        await fill_payments(stage, ["pay_0007"])
        await stage.marta.submit()
        await stage.sandbox.until(lambda: "Refund 1 payment" in shown(stage), **WAIT)


async def test_a_number_typed_for_a_moment_is_refused_beside_its_input(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tools, plan = "tests.acceptance.timed_tools:TOOLS", script(step(call("plan", {})))
    policy = tmp_path / "policy.toml"
    without_tools = (ROOT / "policy.toml").read_text().partition("[tools")[0]
    policy.write_text(without_tools.replace("instructions.md", str(ROOT / "instructions.md")))
    async with staged(database, monkeypatch, plan, tools=tools, policy=policy) as stage:
        await stage.ask()
        await stage.marta.click(await stage.card(), "Edit")
        await stage.sandbox.until(lambda: stage.marta.views and "Begins" in shown(stage), **WAIT)
        for number in ("20261201", "20261201120000"):
            await stage.marta.fill({"Begins": number}).submit()
            assert list(stage.marta.view.errors.values()) == [EN.form.a_moment]
        await stage.marta.fill({"Begins": "2026-12-01T08:00"}).submit()
        await stage.sandbox.until(lambda: "2026-12-01T08:00" in shown(stage), **WAIT)


@pytest.mark.parametrize("gone", ["closed", "lost"])
async def test_an_edit_that_was_not_confirmed_is_filled_in_again_for_its_author(
    database: Database, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        await open_form(stage, "Edit")
        two = (await stage.approval()).shown.input["payment_ids"][:2]
        await fill_payments(stage, two)
        if gone == "lost":  # the preview never reaches the window
            stage.sandbox.faults.add("views.update", Fault.error("internal_error"), times=20)
        await stage.marta.submit()
        await eventually(lambda: _is_still(stage))
        assert ("Refund 2 payments" in shown(stage)) is (gone == "closed")
        stage.sandbox.faults.clear()
        await stage.marta.close(all=True)
        await open_form(stage, "Edit")
        assert "Your earlier changes are filled in; nothing of them is approved yet." in shown(stage)
        assert typed(stage) == two
        await stage.marta.submit()
        await stage.sandbox.until(lambda: "Refund 2 payments" in shown(stage), **WAIT)


async def test_somebody_without_a_role_gets_the_reason_in_the_window(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        await stage.leo.click(await stage.card(), "Edit")
        await stage.sandbox.until(
            lambda: stage.leo.views and "Only" in stage.leo.read(stage.leo.view), **WAIT
        )


async def test_a_dead_trigger_is_a_private_sentence(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        card = await stage.card()
        stage.sandbox.faults.add("views.open", Fault.error("expired_trigger_id"), times=1)
        click = await stage.marta.click(card, "Edit")
        assert click.status == 200
        assert "again" in (await stage.told(stage.marta))[0]


async def test_a_click_that_is_delivered_again_opens_one_window_and_says_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        click = stage.marta.prepare_click(await stage.card(), "Edit")
        for delivery in await stage.sandbox.send_identical(click, times=3):
            assert delivery.status == 200
        await eventually(lambda: _is_still(stage))
        assert len(stage.marta.views) == 1
        assert "Payments" in shown(stage)
        assert stage.marta.ephemerals == []


async def test_a_rejection_with_a_reason_reaches_the_model_and_nothing_runs(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = expect_results(lambda r: r[0]["reason"] == "Not this month" and not r[0]["executed"])
    script = ask_for_refunds(step(say("I leave it."), expect=heard))
    async with staged(database, monkeypatch, script) as stage:
        asked = await stage.ask()
        await open_form(stage, "Reject")
        await stage.marta.fill({"Reason": " \n "}).submit()
        assert list(stage.marta.view.errors.values()) == ["Say why, in a few words."]
        await stage.marta.fill({"Reason": "Not this month"}).submit()
        assert stage.marta.views == []
        await stage.said(asked, "I leave it.")
        assert stage.provider.refunds == ()
        assert (await stage.approval()).status.value == "rejected"


async def test_a_second_window_learns_that_it_was_decided(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        asked = await stage.ask()
        await open_form(stage, "Reject")
        await stage.marta.click(stage.cards[0].snapshot(), "Approve")
        await stage.said(asked, "That is all.")
        await stage.marta.fill({"Reason": "too late"}).submit()
        assert "already approved" in shown(stage)
        assert len(stage.provider.refunds) == 38


async def open_form(stage: Stage, button: str) -> None:
    """Marta opens a window and waits until it is filled."""
    await stage.marta.click(await stage.card(), button)
    await stage.sandbox.until(
        lambda: (
            stage.marta.views and "submit" in stage.marta.view.body and stage.marta.view.callback_id != ""
        ),
        **WAIT,
    )
    await eventually(lambda: _is_still(stage))


async def _is_still(stage: Stage) -> bool:
    """Whether no work is on its way that would change the window."""
    return len(stage.processes[0].app.bot.tasks) == 0


async def fill_payments(stage: Stage, payment_ids: list[str]) -> None:
    """Type other payments into the form, one a line."""
    stage.marta.fill({"Payments": "\n".join(payment_ids)})


def typed(stage: Stage) -> list[str]:
    """The payments that stand in the form."""
    [payments] = [b["element"] for b in stage.marta.view.blocks if "payment_ids" in b["block_id"]]
    return str(payments["initial_value"]).split()


def shown(stage: Stage) -> str:
    """The text of the window on top, or nothing."""
    return stage.marta.read(stage.marta.view) if stage.marta.views else ""
