"""Slack's payloads as typed values, in every shape in which Slack sends them."""

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.blocks.modals import Callback
from bot.blocks.target import Target
from bot.payloads import (
    Command,
    DirectMessage,
    HomeOpened,
    Mention,
    UnknownPayload,
    read_click,
    read_command,
    read_home_opened,
    read_message,
    read_press,
    read_settling,
    read_submission,
    state_values,
)

BOT = "U0BOT"
RESPONSE_URL = "https://hooks.slack.com/actions/T0SHOP/1/x"
PERSON = {"id": "U0MARTA", "username": "marta", "name": "marta", "team_id": "T0SHOP"}
STATE = {"values": {"1.reason": {"value": {"type": "plain_text_input", "value": "twice"}}}}


def clicked(**changes: Any) -> dict[str, Any]:
    """A click in a channel message."""
    body: dict[str, Any] = {
        "type": "block_actions",
        "user": PERSON,
        "api_app_id": "A0SHOP",
        "token": "legacy",
        "container": {
            "type": "message",
            "message_ts": "1795000000.000200",
            "channel_id": "C0APPROVALS",
            "is_ephemeral": False,
        },
        "trigger_id": "12.34.abc",
        "team": {"id": "T0SHOP", "domain": "shop"},
        "enterprise": None,
        "is_enterprise_install": False,
        "channel": {"id": "C0APPROVALS", "name": "approvals"},
        "message": {
            "type": "message",
            "ts": "1795000000.000200",
            "bot_id": "B0BOT",
            "text": "x",
            "blocks": [],
        },
        "state": {"values": {}},
        "response_url": RESPONSE_URL,
        "actions": [
            {
                "action_id": "approval_approve",
                "block_id": "abc",
                "text": {"type": "plain_text", "text": "Approve", "emoji": False},
                "value": "ap_1:2",
                "style": "primary",
                "type": "button",
                "action_ts": "1795000100.123456",
            }
        ],
    }
    return {**copy.deepcopy(body), **changes}


def in_view(kind: str) -> dict[str, Any]:
    """A click in a modal or in App Home: no channel, message or response_url."""
    body = clicked(
        container={"type": "view", "view_id": "V1"},
        view={"id": "V1", "type": kind, "hash": "h1", "private_metadata": "", "state": STATE},
    )
    for name in ("channel", "message", "response_url", "state"):
        del body[name]
    return body


def submitted(**view: Any) -> dict[str, Any]:
    made = {
        "id": "V1",
        "team_id": "T0SHOP",
        "type": "modal",
        "hash": "1795.h",
        "callback_id": "approval_edit_form",
        "private_metadata": "ap_1:2",
        "state": copy.deepcopy(STATE),
        "root_view_id": "V1",
        "previous_view_id": None,
        "blocks": [],
        **view,
    }
    return {
        "type": "view_submission",
        "team": {"id": "T0SHOP", "domain": "shop"},
        "user": PERSON,
        "trigger_id": "56.78.def",
        "view": made,
        "response_urls": [],
    }


def event(**event: Any) -> dict[str, Any]:
    made = {
        "type": "app_mention",
        "user": "U0LEO",
        "text": "<@U0BOT> refund the failed payments",
        "ts": "1795000000.000100",
        "channel": "C0SUPPORT",
        "event_ts": "1795000000.000100",
        "team": "T0SHOP",
        **event,
    }
    return {
        "type": "event_callback",
        "event_id": "Ev1",
        "event_time": 1795000000,
        "team_id": "T0SHOP",
        "api_app_id": "A0SHOP",
        "authorizations": [{"team_id": "T0SHOP", "user_id": BOT, "is_bot": True}],
        "is_ext_shared_channel": False,
        "event": made,
    }


def test_a_click_in_a_message_is_read() -> None:
    click = read_click(clicked())
    assert (click.verb, click.target) == ("approve", Target("ap_1", 2))
    assert (click.team_id, click.user_id, click.user_team_id) == ("T0SHOP", "U0MARTA", "T0SHOP")
    assert (click.channel_id, click.message_ts) == ("C0APPROVALS", "1795000000.000200")
    assert (click.response_url, click.trigger_id) == (RESPONSE_URL, "12.34.abc")
    assert (click.user_name, click.action_ts) == ("marta", "1795000100.123456")
    assert (click.view_id, click.is_ephemeral) == (None, False)


def settling(action_id: str, value: str = "ap_1:2@3") -> dict[str, Any]:
    body = clicked()
    body["actions"][0] |= {"action_id": action_id, "value": value}
    return body


@pytest.mark.parametrize(
    ("action_id", "said"),
    [("outcome_ran", "ran"), ("outcome_did_not_run", "did_not_run"), ("outcome_try_again", "try_again")],
)
def test_a_press_that_settles_says_what_after_how_many_attempts(action_id: str, said: str) -> None:
    pressed = read_settling(settling(action_id))
    assert (pressed.said, pressed.attempts, pressed.target) == (said, 3, Target("ap_1", 2, attempts=3))
    assert read_press(settling(action_id)) == pressed


@pytest.mark.parametrize(
    ("action_id", "value"),
    [
        ("outcome_ran", "ap_1:2"),
        ("outcome_ran", "ap_1:2@0"),
        ("outcome_ran", "ap_1:2@"),
        ("outcome_ran", "ap_1:2@x"),
        ("outcome_ran", "@1"),
        ("outcome_dreamt", "ap_1:2@1"),
        ("approval_approve", "ap_1:2@1"),
    ],
)
def test_a_press_that_settles_nothing_is_refused(action_id: str, value: str) -> None:
    with pytest.raises(UnknownPayload):
        read_settling(settling(action_id, value))


def test_a_press_that_decides_is_no_settlement() -> None:
    assert read_press(clicked()) == read_click(clicked())
    with pytest.raises(UnknownPayload):
        read_click(settling("outcome_ran"))


def test_a_click_in_an_ephemeral_message_has_no_message_object() -> None:
    body = clicked()
    del body["message"]
    body["container"]["is_ephemeral"] = True
    click = read_click(body)
    assert click.is_ephemeral and click.message_ts == "1795000000.000200"


def test_a_click_in_a_direct_message_is_read() -> None:
    body = clicked(channel={"id": "D0MARTA", "name": "directmessage"})
    body["container"]["channel_id"] = "D0MARTA"
    assert read_click(body).channel_id == "D0MARTA"


@pytest.mark.parametrize("kind", ["modal", "home"])
def test_a_click_in_a_view_has_no_channel(kind: str) -> None:
    click = read_click(in_view(kind))
    assert (click.channel_id, click.message_ts, click.response_url) == (None, None, None)
    assert (click.view_id, click.view_hash) == ("V1", "h1")


@pytest.mark.parametrize(
    ("action_id", "verb"),
    [("approval_approve", "approve"), ("approval_edit", "edit"), ("approval_reject", "reject")],
)
def test_the_button_says_the_verb(action_id: str, verb: str) -> None:
    body = clicked()
    body["actions"][0]["action_id"] = action_id
    assert read_click(body).verb == verb


def test_a_person_of_another_workspace_keeps_their_own_team() -> None:
    body = clicked(user={**PERSON, "id": "W0GUEST", "team_id": "T0OTHER"})
    click = read_click(body)
    assert (click.user_id, click.user_team_id, click.team_id) == ("W0GUEST", "T0OTHER", "T0SHOP")


def test_an_org_wide_click_without_a_team_belongs_to_the_persons() -> None:
    assert read_click(clicked(team=None)).team_id == "T0SHOP"


@pytest.mark.parametrize(
    "change",
    [
        {"action_id": "something_else"},
        {"value": "ap_1"},
        {"value": "ap_1:2; drop"},
        {"value": ""},
        {"value": None},
        {"value": 7},
        {"action_ts": None},
    ],
)
def test_a_button_that_is_not_a_cards_is_refused_with_a_way_to_answer(change: dict[str, Any]) -> None:
    body = clicked()
    body["actions"][0] |= change
    with pytest.raises(UnknownPayload) as raised:
        read_click(body)
    assert (raised.value.response_url, raised.value.user_id) == (RESPONSE_URL, "U0MARTA")


@pytest.mark.parametrize(
    "body",
    [{}, {"type": "block_actions"}, clicked(type="shortcut"), clicked(actions=[]), clicked(user=None)],
)
def test_another_shape_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(UnknownPayload):
        read_click(body)


def test_two_actions_in_one_payload_are_refused() -> None:
    body = clicked()
    body["actions"] *= 2
    with pytest.raises(UnknownPayload):
        read_click(body)


def test_a_submission_is_read() -> None:
    submission = read_submission(submitted())
    assert submission.callback_id is Callback.EDIT
    assert (submission.view_id, submission.view_hash) == ("V1", "1795.h")
    assert submission.target == Target("ap_1", 2)
    assert submission.values == {"1.reason": "twice"}
    assert (submission.user_id, submission.trigger_id) == ("U0MARTA", "56.78.def")


def test_the_confirmation_of_an_edit_names_its_draft() -> None:
    body = submitted(callback_id="approval_edit_confirm", private_metadata="ap_1:2:dr_1")
    assert read_submission(body).target.draft_id == "dr_1"


@pytest.mark.parametrize(
    "view",
    [
        {"callback_id": "approval_nothing"},
        {"callback_id": "another"},
        {"private_metadata": ""},
        {"private_metadata": '{"approval": 1}'},
    ],
)
def test_a_window_that_is_not_ours_is_refused(view: dict[str, Any]) -> None:
    with pytest.raises(UnknownPayload):
        read_submission(submitted(**view))


@pytest.mark.parametrize(
    "body", [clicked(state=STATE), in_view("modal"), in_view("home"), submitted()], ids=range(4)
)
def test_what_was_typed_is_found_in_messages_modals_and_home(body: dict[str, Any]) -> None:
    assert state_values(body) == {"1.reason": "twice"}


def test_an_app_home_without_state_has_no_values() -> None:
    assert state_values({"view": {"type": "home"}}) == {}


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        ({"type": "plain_text_input", "value": None}, None),
        ({"type": "number_input", "value": "12.10"}, "12.10"),
        ({"type": "number_input", "value": 12}, "12"),
        ({"type": "static_select", "selected_option": None}, None),
        ({"type": "static_select", "selected_option": {"text": {}, "value": "3"}}, "3"),
        ({"type": "multi_static_select", "selected_options": []}, ()),
        ({"type": "multi_static_select", "selected_options": [{"value": "1"}, {"value": "2"}]}, ("1", "2")),
        ({"type": "datepicker", "selected_date": "2026-11-30"}, "2026-11-30"),
        ({"type": "datetimepicker", "selected_date_time": None}, None),
        (
            {"type": "datetimepicker", "selected_date_time": 1796083200},
            datetime.fromtimestamp(1796083200, UTC),
        ),
    ],
)
def test_every_element_gives_its_value(element: dict[str, Any], expected: object) -> None:
    assert state_values({"state": {"values": {"b": {"value": element}}}}) == {"b": expected}


@pytest.mark.parametrize("odd", ["soon", "", 10**40, -1, 1.5e300, True, [], {}])
def test_a_picker_that_holds_no_moment_is_another_shape(odd: object) -> None:
    element = {"type": "datetimepicker", "selected_date_time": odd}
    with pytest.raises(UnknownPayload):
        state_values({"state": {"values": {"b": {"value": element}}}})


def test_a_mention_is_read_without_the_mention() -> None:
    assert read_message(event(), BOT) == Mention(
        "Ev1",
        "T0SHOP",
        "C0SUPPORT",
        "U0LEO",
        "T0SHOP",
        "refund the failed payments",
        "1795000000.000100",
        None,
        False,
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<@U0BOT>", ""),
        ("hey <@U0BOT|helper>  please", "hey please"),
        ("<@U0BOT> refund if a &lt; b &amp;&amp; c &gt; d", "refund if a < b && c > d"),
        ("<@U0BOT> write &amp;lt; for me", "write &lt; for me"),
        ("<@U0BOT> tell <@U0ANA>", "tell <@U0ANA>"),
        ("<@U0BOT> one\ntwo", "one\ntwo"),
        (None, ""),
    ],
)
def test_the_text_is_what_the_person_wrote(text: str | None, expected: str) -> None:
    found = read_message(event(text=text), BOT)
    assert found is not None and found.text == expected


def test_a_reply_keeps_its_thread_and_a_shared_channel_its_teams() -> None:
    body = event(thread_ts="1795000000.000001", team="T0OTHER", user="W0GUEST")
    body["is_ext_shared_channel"] = True
    found = read_message(body, BOT)
    assert found is not None
    assert (found.thread_ts, found.user_team_id, found.team_id) == ("1795000000.000001", "T0OTHER", "T0SHOP")
    assert found.is_ext_shared and found.user_id == "W0GUEST"


def test_a_direct_message_counts_without_a_mention() -> None:
    body = event(type="message", channel_type="im", channel="D0LEO", text="refund them")
    found = read_message(body, BOT)
    assert isinstance(found, DirectMessage) and found.text == "refund them"


def test_a_message_with_a_file_is_still_a_persons() -> None:
    body = event(type="message", channel_type="im", channel="D0LEO", subtype="file_share")
    assert isinstance(read_message(body, BOT), DirectMessage)


@pytest.mark.parametrize(
    "change",
    [
        {"subtype": "message_changed", "hidden": True},
        {"subtype": "message_deleted"},
        {"subtype": "bot_message"},
        {"subtype": "channel_join"},
        {"bot_id": "B0OTHER"},
        {"user": BOT},
        {"user": None},
        {"edited": {"user": "U0LEO", "ts": "1795000001.000000"}},
    ],
)
@pytest.mark.parametrize("kind", ["app_mention", "message"])
def test_edits_bots_and_the_bots_own_messages_are_nothing(kind: str, change: dict[str, Any]) -> None:
    where = {"channel_type": "im", "channel": "D0LEO"} if kind == "message" else {}
    assert read_message(event(type=kind, **where), BOT) is not None
    assert read_message(event(**{"type": kind, **where, **change}), BOT) is None


def test_a_message_in_a_channel_is_not_for_the_bot() -> None:
    assert read_message(event(type="message", channel_type="channel"), BOT) is None


def test_a_mention_in_a_direct_message_is_not_counted_twice() -> None:
    assert read_message(event(channel="D0LEO"), BOT) is None


@pytest.mark.parametrize("body", [{"type": "url_verification"}, {"type": "event_callback"}, {}])
def test_what_is_no_event_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(UnknownPayload):
        read_message(body, BOT)


def command(text: str | None) -> dict[str, Any]:
    return {
        "token": "legacy",
        "team_id": "T0SHOP",
        "team_domain": "shop",
        "channel_id": "C0SUPPORT",
        "channel_name": "support",
        "user_id": "U0MARTA",
        "user_name": "marta",
        "command": "/approvals",
        "text": text,
        "api_app_id": "A0SHOP",
        "is_enterprise_install": "false",
        "response_url": RESPONSE_URL,
        "trigger_id": "9.9.z",
    }


@pytest.mark.parametrize(
    ("text", "word", "argument"),
    [
        ("", "", ""),
        (None, "", ""),
        ("  Show  ap_1 ", "show", "ap_1"),
        ("delegate @ana 2d", "delegate", "@ana 2d"),
    ],
)
def test_a_command_is_its_first_word_and_the_rest(text: str | None, word: str, argument: str) -> None:
    found = read_command(command(text))
    assert (found.word, found.argument) == (word, argument)
    assert isinstance(found, Command) and found.response_url == RESPONSE_URL


def test_another_form_is_no_command() -> None:
    with pytest.raises(UnknownPayload):
        read_command({"ssl_check": "1", "token": "x"})


def test_only_the_home_tab_counts_as_opened_home() -> None:
    body = event(type="app_home_opened", tab="home", channel="D0LEO")
    assert read_home_opened(body) == HomeOpened("T0SHOP", "U0LEO", "D0LEO")
    assert read_home_opened(event(type="app_home_opened", tab="messages", channel="D0LEO")) is None
