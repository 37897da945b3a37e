"""views.*: triggers, stacks, hashes, what stays typed, and the limits of a whole view."""

import json

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox import Sandbox
from tests.sandbox.drive import answer, error_of
from tests.sandbox.parts import field, home, modal, section, text_input


def trigger(sandbox: Sandbox, view_id: str | None = None) -> str:
    return sandbox.slack.triggers.issue("U0MARTA", view_id)


async def opened(client: AsyncWebClient, sandbox: Sandbox, view: object | None = None) -> dict[str, str]:
    view = view or modal(section())
    answered = await answer(client, "views.open", trigger_id=trigger(sandbox), view=view)
    return dict(answered["view"])


async def test_a_trigger_lives_three_seconds(client: AsyncWebClient, sandbox: Sandbox) -> None:
    sandbox.clock.freeze()
    first, second = trigger(sandbox), trigger(sandbox)
    sandbox.clock.advance(3.0)
    assert await error_of(client, "views.open", trigger_id=first, view=modal()) is None
    sandbox.clock.advance(0.01)
    assert await error_of(client, "views.open", trigger_id=second, view=modal()) == "expired_trigger_id"


async def test_a_trigger_works_once(client: AsyncWebClient, sandbox: Sandbox) -> None:
    once = trigger(sandbox)
    assert await error_of(client, "views.open", trigger_id=once, view=modal()) is None
    for method in ("views.open", "views.push"):
        assert await error_of(client, method, trigger_id=once, view=modal()) == "exchanged_trigger_id"


async def test_a_made_up_trigger_is_invalid(client: AsyncWebClient) -> None:
    for method in ("views.open", "views.push"):
        assert await error_of(client, method, trigger_id="1.2.abc", view=modal()) == "invalid_trigger_id"


async def test_a_stack_holds_three_views(client: AsyncWebClient, sandbox: Sandbox) -> None:
    root = (await opened(client, sandbox))["id"]
    for error in (None, None, "push_limit_reached"):
        pushed = await error_of(client, "views.push", trigger_id=trigger(sandbox, root), view=modal())
        assert pushed == error
    views = sandbox.person("U0MARTA").views
    assert [v.root_id for v in views] == [root] * 3
    assert [v.previous_id for v in views] == [None, views[0].id, views[1].id]


async def test_a_push_needs_a_trigger_from_a_modal(client: AsyncWebClient, sandbox: Sandbox) -> None:
    assert await error_of(client, "views.push", trigger_id=trigger(sandbox), view=modal()) == "not_found"


async def test_an_update_with_an_old_hash_conflicts(client: AsyncWebClient, sandbox: Sandbox) -> None:
    view = await opened(client, sandbox)
    target = {"view_id": view["id"], "view": modal(section())}
    assert await error_of(client, "views.update", **target, hash=view["hash"]) is None
    assert await error_of(client, "views.update", **target, hash=view["hash"]) == "hash_conflict"
    assert await error_of(client, "views.update", **target) is None


async def test_a_publish_with_an_old_hash_conflicts(client: AsyncWebClient) -> None:
    shown = (await answer(client, "views.publish", user_id="U0MARTA", view=home()))["view"]
    target = {"user_id": "U0MARTA", "view": home(section())}
    assert await error_of(client, "views.publish", **target, hash=shown["hash"]) is None
    assert await error_of(client, "views.publish", **target, hash=shown["hash"]) == "hash_conflict"


async def test_a_closed_view_is_not_found(client: AsyncWebClient, sandbox: Sandbox) -> None:
    view = await opened(client, sandbox)
    await sandbox.person("U0MARTA").close()
    assert await error_of(client, "views.update", view_id=view["id"], view=modal()) == "not_found"


async def test_home_needs_its_tab(client: AsyncWebClient, sandbox: Sandbox) -> None:
    assert await error_of(client, "views.publish", user_id="U0MARTA", view=home()) is None
    sandbox.workspace.app.home_tab_enabled = False
    assert await error_of(client, "views.publish", user_id="U0MARTA", view=home()) == "not_enabled"


async def test_an_external_id_is_unique_in_the_team(client: AsyncWebClient, sandbox: Sandbox) -> None:
    view = modal(external_id="card-1")
    assert await error_of(client, "views.open", trigger_id=trigger(sandbox), view=view) is None
    leos = sandbox.slack.triggers.issue("U0LEO")
    assert await error_of(client, "views.open", trigger_id=leos, view=view) == "duplicate_external_id"
    assert await error_of(client, "views.update", external_id="card-1", view=view) is None


def view_of_bytes(size: int, kind: str) -> dict[str, object]:
    """A view whose JSON has exactly `size` bytes, within every other limit."""
    view = (home if kind == "home" else modal)(*[section("x" * 3_000) for _ in range(81)])
    view["private_metadata"] = ""
    view["blocks"].append(section("x"))
    missing = size - len(json.dumps(view, separators=(",", ":")))
    view["blocks"][-1]["text"]["text"] += "x" * min(missing, 2_000)
    return {**view, "private_metadata": "x" * max(0, missing - 2_000)}


@pytest.mark.parametrize(("size", "error"), [(250_000, None), (250_001, "view_too_large")])
@pytest.mark.parametrize("method", ["views.open", "views.push", "views.update", "views.publish"])
async def test_a_view_has_at_most_250_kb(
    client: AsyncWebClient, sandbox: Sandbox, method: str, size: int, error: str | None
) -> None:
    root = (await opened(client, sandbox))["id"]
    targets = {
        "views.open": {"trigger_id": trigger(sandbox)},
        "views.push": {"trigger_id": trigger(sandbox, root)},
        "views.update": {"view_id": root},
        "views.publish": {"user_id": "U0MARTA"},
    }
    view = view_of_bytes(size, "home" if method == "views.publish" else "modal")
    assert len(json.dumps(view, separators=(",", ":"))) == size
    assert await error_of(client, method, **targets[method], view=view) == error


async def test_typed_values_stay_while_block_id_and_action_id_stay(
    client: AsyncWebClient, sandbox: Sandbox
) -> None:
    marta = sandbox.person("U0MARTA")
    first = modal(field(text_input(initial_value="old"), block_id="b1"))
    view = await opened(client, sandbox, first)
    marta.fill({"Field": "typed"})
    again = modal(field(text_input(initial_value="new"), block_id="b1"))
    kept = await answer(client, "views.update", view_id=view["id"], view=again)
    assert kept["view"]["state"]["values"]["b1"]["typed"]["value"] == "typed"
    rotated = modal(field(text_input(initial_value="new"), block_id="b2"))
    reset = await answer(client, "views.update", view_id=view["id"], view=rotated)
    assert reset["view"]["state"]["values"] == {"b2": {"typed": {"type": "plain_text_input", "value": "new"}}}


async def test_a_new_initial_value_is_ignored_while_the_ids_stay(
    client: AsyncWebClient, sandbox: Sandbox
) -> None:
    view = await opened(client, sandbox, modal(field(block_id="b1")))
    again = modal(field(text_input(initial_value="late"), block_id="b1"))
    shown = await answer(client, "views.update", view_id=view["id"], view=again)
    assert shown["view"]["state"]["values"]["b1"]["typed"]["value"] is None
