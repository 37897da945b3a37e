"""The doctor on Slack: the token, its scopes, the secret, the clock, the channels."""

import pytest

from bot.sandbox import Fault, Sandbox
from tests.integration.doctor.house import House

REST = ("slack clock", "scopes", "channels", "people", "approvers")
OF_PEOPLE = ("people", "approvers")


async def test_a_token_that_is_refused_explains_why_the_rest_is_skipped(house: House) -> None:
    found = await house.findings(SLACK_BOT_TOKEN="xoxb-wrong")
    assert found["slack"].status == "failed"
    assert found["slack"].do is not None
    assert found["slack"].do.startswith(
        "Slack does not take SLACK_BOT_TOKEN (invalid_auth): copy the Bot User"
    )
    assert {found[check].says for check in REST} == {"the token is refused"}
    assert found["signing secret"].status == "ok"


async def test_without_a_token_it_says_where_to_copy_one(house: House) -> None:
    found = await house.findings(SLACK_BOT_TOKEN="")
    assert found["slack"].says == "there is no token"
    assert "needs SLACK_BOT_TOKEN: copy the Bot User OAuth Token" in (found["slack"].do or "")
    assert {found[check].status for check in REST} == {"skipped"}


async def test_a_slack_that_cannot_be_reached_is_told_from_a_token_that_is_refused(house: House) -> None:
    found = await house.findings(SLACK_API_URL="http://127.0.0.1:1/api/")
    assert found["slack"].status == "failed"
    assert "Slack cannot be reached at http://127.0.0.1:1/api/" in (found["slack"].do or "")


@pytest.mark.parametrize("fault", [Fault.rate_limited(), Fault.error("internal_error")])
async def test_a_slack_that_cannot_answer_now_says_nothing_about_the_token(
    house: House, fault: Fault
) -> None:
    house.sandbox.faults.add("auth.test", fault)
    finding = await house.finding("slack")
    assert (finding.status, finding.says) == ("failed", "Slack cannot be asked")
    assert (finding.do or "").endswith("): try again later.")


@pytest.mark.parametrize(
    ("method", "check"),
    [
        ("auth.test", "slack"),
        ("users.info", "people"),
        ("conversations.info", "channels"),
        ("apps.connections.open", "socket mode"),
    ],
)
@pytest.mark.parametrize("answer", ["[1]", '"hello"', "null", '{"ok": true}', '{"ok": true, "user": null}'])
async def test_what_answers_and_is_no_slack_fails_the_check_that_asked_it(
    house: House, method: str, check: str, answer: str
) -> None:
    house.sandbox.faults.add(method, Fault.other(answer), times=9)
    finding = await house.finding(check, SLACK_APP_TOKEN=house.sandbox.workspace.app.app_token)
    assert finding.status == "failed"
    sentence = f"What answers at {house.sandbox.api_url} is no Slack Web API: check SLACK_API_URL."
    assert finding.do == sentence


async def test_missing_scopes_are_named_with_what_they_are_for(house: House) -> None:
    house.sandbox.workspace.app.scopes -= {"commands", "im:write"}
    finding = await house.finding("scopes")
    assert finding.status == "failed"
    assert finding.says == (
        "the token lacks commands (/approvals), im:write (copies of a card in an approver's messages)"
    )
    assert finding.do == (
        "Add what is missing on your Slack app's page OAuth & Permissions, and install the app again."
    )


async def test_scopes_that_are_not_needed_are_a_warning(house: House) -> None:
    house.sandbox.workspace.app.scopes |= {"channels:history"}
    finding = await house.finding("scopes")
    assert finding.status == "warning"
    assert finding.says == "the token has more than it needs: channels:history"
    assert "Remove what is not needed" in (finding.do or "")


async def test_both_are_said_at_once_and_the_graver_counts(house: House) -> None:
    house.sandbox.workspace.app.scopes ^= {"channels:history", "commands"}
    finding = await house.finding("scopes")
    assert finding.status == "failed"
    assert "the token lacks commands (/approvals); the token has more" in finding.says


async def test_without_users_read_nobody_can_be_looked_up(house: House) -> None:
    house.sandbox.workspace.app.scopes -= {"users:read"}
    found = await house.findings()
    assert found["scopes"].status == "failed"
    assert {found[check].status for check in OF_PEOPLE} == {"skipped"}
    assert found["people"].says == "Slack does not say who people are without the scope users:read"


async def test_without_a_signing_secret_it_says_where_to_copy_one(house: House) -> None:
    finding = await house.finding("signing secret", SLACK_SIGNING_SECRET="")
    assert finding.status == "failed"
    assert (finding.do or "").startswith("Set SLACK_SIGNING_SECRET: copy it from")


@pytest.mark.parametrize(
    "secret", ["0123456789abcdef", "0123456789abcdef0123456789abcdeg", "0123456789ABCDEF" * 2]
)
async def test_what_has_not_the_form_of_a_signing_secret_is_refused(house: House, secret: str) -> None:
    finding = await house.finding("signing secret", SLACK_SIGNING_SECRET=secret)
    assert finding.status == "failed"
    assert "not the Client Secret or the Verification Token." in (finding.do or "")
    assert secret not in finding.says + (finding.do or "")


async def test_a_token_for_socket_mode_that_is_refused_says_where_to_copy_one(house: House) -> None:
    finding = await house.finding("socket mode", SLACK_APP_TOKEN="xapp-wrong")
    assert (finding.status, finding.says) == ("failed", "Slack opens no connection")
    assert (finding.do or "").startswith("Slack does not take SLACK_APP_TOKEN (invalid_auth): copy the App-")


async def test_an_app_that_is_not_in_socket_mode_is_to_be_put_into_it(house: House) -> None:
    finding = await house.finding("socket mode", SLACK_APP_TOKEN="xapp-sandbox")
    assert finding.status == "failed"
    assert "turn it on on your Slack app's page Socket Mode" in (finding.do or "")


async def test_a_token_for_which_slack_opens_a_connection_is_fine(house: House) -> None:
    async with Sandbox.running(socket_mode=True) as sandbox:
        token = sandbox.workspace.app.app_token
        finding = await house.finding("socket mode", SLACK_API_URL=sandbox.api_url, SLACK_APP_TOKEN=token)
    assert finding.status == "ok"


async def test_in_socket_mode_no_signing_secret_is_missed(house: House) -> None:
    found = await house.findings(SLACK_SIGNING_SECRET="", SLACK_APP_TOKEN="xapp-sandbox")
    assert (found["signing secret"].status, found["signing secret"].says) == (
        "ok",
        "none is needed in Socket Mode",
    )


@pytest.mark.parametrize(
    ("seconds", "status", "words"),
    [(20, "ok", "from Slack's"), (90, "warning", "behind Slack's"), (-330, "failed", "ahead of Slack's")],
)
async def test_this_machines_clock_is_compared_with_slacks(
    house: House, seconds: int, status: str, words: str
) -> None:
    house.sandbox.clock.advance(seconds)
    finding = await house.finding("slack clock")
    assert finding.status == status
    assert words in finding.says
    assert status == "ok" or "refused when the two are more than 5 minutes apart." in (finding.do or "")


async def test_a_bot_that_is_not_in_the_channel_is_to_be_invited(house: House) -> None:
    house.sandbox.channel("C0APPROVALS").members.remove("U0BOT")
    finding = await house.finding("channels")
    assert finding.status == "failed"
    assert finding.says == "the bot is not in C0APPROVALS (#approvals)"
    assert finding.do == (
        "Write `/invite @vistobueno` in C0APPROVALS, or name another channel in the policy."
    )


async def test_a_channel_that_is_archived_cannot_take_cards(house: House) -> None:
    house.sandbox.channel("C0APPROVALS").is_archived = True
    finding = await house.finding("channels")
    assert finding.status == "failed"
    assert finding.says == "C0APPROVALS (#approvals) is archived"
    assert finding.do == "Unarchive it, or name another channel in the policy."


async def test_a_private_channel_without_the_bot_looks_like_none(house: House) -> None:
    channel = house.sandbox.channel("C0APPROVALS")
    channel.is_private = True
    channel.members.remove("U0BOT")
    finding = await house.finding("channels")
    assert finding.status == "failed"
    assert finding.says == "C0APPROVALS does not exist, or is private and the bot is not in it"
    assert "Correct its ID in the policy, or write `/invite @vistobueno`" in (finding.do or "")


async def test_a_channel_of_one_tool_is_looked_at_too(house: House) -> None:
    house.write_policy("[roles.admin]", '[tools.send_email]\nchannel = "C0LOST"\n[roles.admin]')
    finding = await house.finding("channels")
    assert finding.status == "failed"
    assert finding.says.startswith("C0LOST does not exist")


async def test_without_the_scope_for_channels_nothing_is_known_of_them(house: House) -> None:
    house.sandbox.workspace.app.scopes -= {"channels:read"}
    finding = await house.finding("channels")
    assert finding.status == "failed"
    assert finding.says == "Slack does not say whether the bot is in C0APPROVALS"


async def test_an_answer_that_does_not_come_is_a_warning(house: House) -> None:
    house.sandbox.faults.add("conversations.info", Fault.error("internal_error"))
    finding = await house.finding("channels")
    assert finding.status == "warning"
    assert finding.says == "C0APPROVALS could not be looked up (internal_error)"
