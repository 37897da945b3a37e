"""The environment is read once, refused in one sentence, and never printed."""

import pytest

from bot.settings import RequestSettings, Settings, SettingsError

WHOLE = {
    "DATABASE_URL": "postgres://me:hidden@db/house",
    "SLACK_BOT_TOKEN": "xoxb-hidden",
    "SLACK_SIGNING_SECRET": "hidden",
    "ANTHROPIC_API_KEY": "hidden",
}


def test_an_empty_variable_counts_as_unset() -> None:
    assert Settings.read({"DATABASE_URL": " ", "PORT": ""}) == Settings()


def test_secrets_are_not_in_the_text_of_settings() -> None:
    settings = Settings.read({**WHOLE, "DATABASE_OWNER_URL": "postgresql://o:hidden@db/h"})
    assert "hidden" not in repr(settings) + repr(settings.require_slack("x"))


def test_the_web_api_s_address_ends_with_a_slash() -> None:
    assert Settings.read({"SLACK_API_URL": "http://127.0.0.1:1/api"}).slack_api_url.endswith("/api/")
    assert Settings().slack_api_url == "https://slack.com/api/"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("DATABASE_URL", "mysql://db/house"),
        ("DATABASE_OWNER_URL", "house"),
        ("SLACK_BOT_TOKEN", "xapp-1-hidden"),
        ("SLACK_APP_TOKEN", "xoxb-1-hidden"),
        ("SLACK_API_URL", "slack.com/api"),
        ("ANTHROPIC_BASE_URL", "here"),
        ("VISTOBUENO_TOOLS", "agent.tools"),
        ("VISTOBUENO_LOCALE", "klingon"),
        ("PORT", "65536"),
        ("PORT", "-1"),
        ("PORT", "http"),
        ("LOG_LEVEL", "loud"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(variable: str, value: str) -> None:
    with pytest.raises(SettingsError, match=variable) as refused:
        Settings.read({variable: value})
    assert refused.value.variable == variable
    assert "hidden" not in str(refused.value)


def test_what_slack_needs_is_asked_for_by_name() -> None:
    with pytest.raises(SettingsError, match="SLACK_BOT_TOKEN"):
        Settings().require_slack("vistobueno web")
    with pytest.raises(SettingsError, match="SLACK_SIGNING_SECRET"):
        Settings().require_requests("vistobueno web")


def test_in_socket_mode_no_signing_secret_is_needed() -> None:
    given = Settings.read({"SLACK_APP_TOKEN": "xapp-1"}).require_requests("vistobueno web")
    assert given == RequestSettings(signing_secret=None, app_token="xapp-1")
    assert "xapp-1" not in repr(given)


def test_a_model_is_a_key_or_another_address() -> None:
    for variable, value in (("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")):
        Settings.read({variable: value}).require_model("vistobueno worker")
    with pytest.raises(SettingsError, match="ANTHROPIC_API_KEY"):
        Settings().require_model("vistobueno worker")


def test_the_database_must_be_named_where_it_must() -> None:
    assert Settings.read(WHOLE).require_database("vistobueno web") == WHOLE["DATABASE_URL"]
    with pytest.raises(SettingsError, match="DATABASE_URL"):
        Settings().require_database("vistobueno web")
