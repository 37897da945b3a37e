"""Points on which sources differ: each switch of `Unsettled`, with both of its answers."""

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bot.sandbox import RateLimits, Sandbox, Unsettled, UserGroup
from tests.sandbox import parts as p
from tests.sandbox.drive import Recorder, answer, answering, client_of, error_of

Json = dict[str, Any]
Probe = Callable[[Sandbox], Awaitable[Any]]


def posting(*blocks: Json, **more: Any) -> Probe:
    """The error code of posting these blocks."""

    async def probe(sandbox: Sandbox) -> str | None:
        args = {"channel": "C0SUPPORT", "text": "x", **({"blocks": list(blocks)} if blocks else {}), **more}
        return await error_of(client_of(sandbox), "chat.postMessage", **args)

    return probe


def attached(*blocks: Json) -> Probe:
    return posting(attachments=[{"blocks": list(blocks)}])


def publishing(*blocks: Json) -> Probe:
    async def probe(sandbox: Sandbox) -> str | None:
        view = p.home(*blocks)
        return await error_of(client_of(sandbox), "views.publish", user_id="U0MARTA", view=view)

    return probe


def opening(*blocks: Json) -> Probe:
    async def probe(sandbox: Sandbox) -> str | None:
        trigger_id = sandbox.slack.triggers.issue("U0MARTA")
        return await error_of(client_of(sandbox), "views.open", trigger_id=trigger_id, view=p.modal(*blocks))

    return probe


def shown(*blocks: Json) -> Probe:
    """What a person reads of these blocks."""

    async def probe(sandbox: Sandbox) -> str:
        await posting(*blocks)(sandbox)
        return sandbox.person("U0MARTA").read(sandbox.channel("C0SUPPORT").last)

    return probe


async def header_of_table(sandbox: Sandbox) -> tuple[str, ...] | None:
    await posting(p.table(2))(sandbox)
    return sandbox.person("U0MARTA").tables(sandbox.channel("C0SUPPORT").last)[0].header


async def pings_of_verbatim(sandbox: Sandbox) -> frozenset[str]:
    await posting(p.context(p.mrkdwn("<!here>", verbatim=True)))(sandbox)
    return sandbox.channel("C0SUPPORT").last.pings


async def buttons_of_leo(sandbox: Sandbox) -> list[str]:
    await posting(p.actions(p.button("Go", visible_to_user_ids=["U0MARTA"])))(sandbox)
    return sandbox.person("U0LEO").buttons(sandbox.channel("C0SUPPORT").last)


async def update_with_old_hash(sandbox: Sandbox) -> str | None:
    client = client_of(sandbox)
    posted = await answer(client, "chat.postMessage", channel="C0SUPPORT", text="x")
    target = {"channel": "C0SUPPORT", "ts": posted["ts"], "hash": posted["message"].get("hash", "any")}
    await error_of(client, "chat.update", **target, text="first")
    return await error_of(client, "chat.update", **target, text="second")


async def posts_with_one_client_msg_id(sandbox: Sandbox) -> int:
    for _ in range(2):
        await posting(client_msg_id="m1")(sandbox)
    return len(sandbox.channel("C0SUPPORT").messages)


async def expired_trigger(sandbox: Sandbox) -> str | None:
    trigger_id = sandbox.slack.triggers.issue("U0MARTA")
    sandbox.clock.advance(4)
    return await error_of(client_of(sandbox), "views.open", trigger_id=trigger_id, view=p.modal())


async def deliveries_of_a_failed_click(sandbox: Sandbox) -> list[int]:
    app = Recorder(500)
    await posting(p.actions(p.button("Go")))(sandbox)
    message = sandbox.channel("C0SUPPORT").last
    attempts = 4 if sandbox.slack.unsettled.interactive_redelivery else 1
    async with answering(sandbox, app.__call__):
        await sandbox.person("U0MARTA").click(message, "Go")
        await sandbox.until(lambda: len(app.requests) == attempts)
    return [d.retry_num for d in sandbox.deliveries]


async def submitted_number(sandbox: Sandbox) -> object:
    await opening(p.field(p.number_input(action_id="n"), block_id="b"))(sandbox)
    request = sandbox.person("U0MARTA").fill({"Field": "5"}).prepare_submit()
    return request.payload["view"]["state"]["values"]["b"]["n"]["value"]


async def groups_by_default(sandbox: Sandbox) -> int:
    sandbox.workspace.add_group(UserGroup("S0OLD", "old", "Old", disabled=True))
    return len((await answer(client_of(sandbox), "usergroups.list"))["usergroups"])


async def team_of_a_strangers_click(sandbox: Sandbox) -> str:
    far = sandbox.add_person("U0FAR", "Fay", team_id="T0OTHER")
    await posting(p.actions(p.button("Go")))(sandbox)
    return str(far.prepare_click(sandbox.channel("C0SUPPORT").last, "Go").payload["team"]["id"])


METADATA = {"event_type": "card", "event_payload": {"id": "x" * 8_000}}
SMALL = {"event_type": "card", "event_payload": {"id": "x"}}
RAW_NUMBER = p.table() | {"rows": [[{"type": "raw_number", "value": 5, "text": "5"}]]}
LONG = [p.section("x" * 2_641) for _ in range(5)]
VISIBLE_TO_TWO = p.actions(p.button(visible_to_user_ids=["U0MARTA", "U0ANA"]))
PLAIN_ENTITY, PLAIN_EMOJI = p.context(p.plain("a &lt; b")), p.context(p.plain(":tada:"))
AUTH = {"type": "auth_provider", "value": "x"}

SWITCHES: list[tuple[str, Probe, Any, Any, Any, Any]] = [
    # switch, probe, one answer, its outcome, the other answer, its outcome
    ("table_placement", posting(p.table()), "blocks", None, "attachments", "invalid_blocks"),
    ("table_placement", attached(p.table()), "blocks", "invalid_attachments", "attachments", None),
    (
        "table_cells",
        posting(RAW_NUMBER),
        frozenset({"raw_number"}),
        None,
        frozenset({"rich_text"}),
        "invalid_blocks",
    ),
    (
        "table_cells",
        posting(p.table()),
        frozenset({"raw_text"}),
        None,
        frozenset({"rich_text"}),
        "invalid_blocks",
    ),
    ("table_first_row_is_header", header_of_table, True, ("x",), False, None),
    ("data_table_rows", posting(p.data_table(201)), 201, None, 101, "invalid_blocks"),
    ("card_in_modal", opening(p.card()), True, None, False, "invalid_arguments"),
    ("table_on_home", publishing(p.table()), True, None, False, "invalid_arguments"),
    ("container_on_home", publishing(p.container()), True, None, False, "invalid_arguments"),
    (
        "container_takes_rich_text_and_input",
        posting(p.container(p.rich_text(), p.field())),
        *(True, None, False, "invalid_blocks"),
    ),
    ("auth_provider_surfaces", posting(AUTH), frozenset({"message"}), None, frozenset(), "invalid_blocks"),
    ("blocks_text_chars", posting(*LONG), 13_205, None, 13_200, "msg_blocks_too_long"),
    ("blocks_text_chars", posting(*LONG), None, None, 13_204, "msg_blocks_too_long"),
    ("metadata_chars", posting(metadata=METADATA), None, None, 8_000, "metadata_too_large"),
    (
        "metadata_needs_app_token",
        posting(metadata=SMALL),
        *(False, None, True, "metadata_must_be_sent_from_app"),
    ),
    ("message_hash", update_with_old_hash, False, None, True, "hash_conflict"),
    ("client_msg_id_dedupes", posts_with_one_client_msg_id, False, 2, True, 1),
    ("plain_text_decodes_entities", shown(PLAIN_ENTITY), True, "a < b", False, "a &lt; b"),
    ("plain_text_renders_emoji", shown(PLAIN_EMOJI), True, "\u2329tada\u232a", False, ":tada:"),
    ("verbatim_is_an_escape", pings_of_verbatim, False, frozenset({"here"}), True, frozenset()),
    ("visible_to_user_ids_max", posting(VISIBLE_TO_TWO), None, None, 1, "invalid_blocks"),
    ("old_clients_ignore_visible_to", buttons_of_leo, False, [], True, ["Go"]),
    (
        "expired_trigger_as_invalid_arguments",
        expired_trigger,
        *(False, "expired_trigger_id", True, "invalid_arguments"),
    ),
    ("interactive_redelivery", deliveries_of_a_failed_click, False, [0], True, [0, 1, 2, 3]),
    ("number_value_as_string", submitted_number, True, "5", False, 5),
    ("include_disabled_groups", groups_by_default, False, 0, True, 1),
    ("stranger_team_is_installed_team", team_of_a_strangers_click, True, "T0SHOP", False, "T0OTHER"),
]


def both_answers() -> list[Any]:
    cases = []
    for name, probe, *pairs in SWITCHES:
        for setting, outcome in (pairs[:2], pairs[2:]):
            cases.append(pytest.param(name, probe, setting, outcome, id=f"{name}-{setting}"))
    return cases


@pytest.mark.parametrize(("name", "probe", "setting", "outcome"), both_answers())
async def test_a_switch_decides_an_open_point(name: str, probe: Probe, setting: Any, outcome: Any) -> None:
    unsettled = dataclasses.replace(Unsettled(), **{name: setting})
    async with Sandbox.running(
        rate_limits=RateLimits.off(), unsettled=unsettled, retry_delays=(0.0, 0.0, 0.0)
    ) as sandbox:
        assert await probe(sandbox) == outcome


def test_every_switch_is_tried_with_both_answers() -> None:
    assert {name for name, *_ in SWITCHES} == {f.name for f in dataclasses.fields(Unsettled)}
    assert all(one != other for _, _, one, _, other, _ in SWITCHES)


async def test_emoji_false_keeps_the_colons_whatever_the_switch_says(sandbox: Sandbox) -> None:
    assert await shown(p.context(p.plain(":tada:", emoji=False)))(sandbox) == ":tada:"


async def test_a_client_msg_id_of_a_lost_message_is_a_missing_duplicate() -> None:
    unsettled = Unsettled(client_msg_id_dedupes=True)
    async with Sandbox.running(rate_limits=RateLimits.off(), unsettled=unsettled) as sandbox:
        post = posting(client_msg_id="m1")
        assert await post(sandbox) is None
        assert (
            await posting(client_msg_id="m1", channel="C0APPROVALS")(sandbox) == "duplicate_channel_not_found"
        )
        sandbox.admin.delete_message("C0SUPPORT", sandbox.channel("C0SUPPORT").last.ts)
        assert await post(sandbox) == "duplicate_message_not_found"
