"""The environment as frozen Settings: read once at start, refused in one sentence that names the variable."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from babel import Locale, UnknownLocaleError

from bot.texts import LANGUAGES

SLACK_API_URL = "https://slack.com/api/"
DEFAULT_PORT = 3000
DEFAULT_MODEL = "claude-sonnet-5-5"
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class SettingsError(Exception):
    """A variable is missing or cannot be used: `variable` names it, the text says what to do."""

    def __init__(self, variable: str, message: str) -> None:
        self.variable = variable
        super().__init__(message)


@dataclass(frozen=True)
class SlackSettings:
    """What calling Slack's Web API needs."""

    bot_token: str = field(repr=False)
    api_url: str


@dataclass(frozen=True)
class RequestSettings:
    """How Slack's requests come in: over Socket Mode if there is an app-level token, else signed, over HTTP.

    With both, Slack decides which way it sends; without a signing secret nothing is taken over HTTP.
    """

    signing_secret: str | None = field(repr=False)
    app_token: str | None = field(repr=False)


@dataclass(frozen=True)
class Settings:
    """Everything the environment says; None where a variable is unset or empty."""

    database_url: str | None = field(default=None, repr=False)
    database_owner_url: str | None = field(default=None, repr=False)
    slack_bot_token: str | None = field(default=None, repr=False)
    slack_signing_secret: str | None = field(default=None, repr=False)
    slack_app_token: str | None = field(default=None, repr=False)
    slack_api_url: str = SLACK_API_URL
    anthropic_api_key: str | None = field(default=None, repr=False)
    anthropic_base_url: str | None = None
    model: str | None = None
    policy: str = "policy.toml"
    tools: str = "agent.tools:TOOLS"
    locale: str = "en"
    port: int | None = None
    log_level: str = "INFO"

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> "Settings":
        """Settings from the environment's variables; raises SettingsError for one that cannot be used."""
        given = {name: value.strip() for name, value in environ.items() if value.strip()}
        defaults = cls()
        return cls(
            database_url=_database_url(given, "DATABASE_URL"),
            database_owner_url=_database_url(given, "DATABASE_OWNER_URL"),
            slack_bot_token=_bot_token(given),
            slack_signing_secret=given.get("SLACK_SIGNING_SECRET"),
            slack_app_token=_app_token(given),
            slack_api_url=_with_slash(_http_url(given, "SLACK_API_URL") or defaults.slack_api_url),
            anthropic_api_key=_credential(given, "ANTHROPIC_API_KEY"),
            anthropic_base_url=_http_url(given, "ANTHROPIC_BASE_URL"),
            model=given.get("VISTOBUENO_MODEL"),
            policy=given.get("VISTOBUENO_POLICY", defaults.policy),
            tools=_tools(given.get("VISTOBUENO_TOOLS", defaults.tools)),
            locale=_locale(given.get("VISTOBUENO_LOCALE", defaults.locale)),
            port=_port(given.get("PORT")),
            log_level=_log_level(given.get("LOG_LEVEL", defaults.log_level)),
        )

    @property
    def has_model(self) -> bool:
        """Whether a model can be asked: a key is set, or another base URL than the provider's."""
        return self.anthropic_api_key is not None or self.anthropic_base_url is not None

    def model_name(self, named_by_policy: str | None) -> str:
        """The model that is asked: the environment's, else the policy's, else the product's own choice."""
        return self.model or named_by_policy or DEFAULT_MODEL

    def require_database(self, command: str) -> str:
        """The app's database URL; raises SettingsError when it is unset."""
        if self.database_url is None:
            raise SettingsError(
                "DATABASE_URL",
                f"`{command}` needs DATABASE_URL: set it to a PostgreSQL 14+ database "
                "(postgresql://user:password@host:5432/name), or use `vistobueno dev`, which brings its own.",
            )
        return self.database_url

    def require_slack(self, command: str) -> SlackSettings:
        """Token and URL of Slack; raises SettingsError when the token is missing."""
        if self.slack_bot_token is None:
            raise SettingsError(
                "SLACK_BOT_TOKEN",
                f"`{command}` needs SLACK_BOT_TOKEN: copy the Bot User OAuth Token (xoxb-…) "
                "from your Slack app's page OAuth & Permissions.",
            )
        return SlackSettings(self.slack_bot_token, self.slack_api_url)

    def require_requests(self, command: str) -> RequestSettings:
        """How Slack's requests come in; raises SettingsError when they cannot."""
        if self.slack_signing_secret is None and self.slack_app_token is None:
            raise SettingsError(
                "SLACK_SIGNING_SECRET",
                f"`{command}` needs SLACK_SIGNING_SECRET: copy it from your Slack app's page "
                "Basic Information (or SLACK_APP_TOKEN, for Socket Mode).",
            )
        return RequestSettings(self.slack_signing_secret, self.slack_app_token)

    def require_model(self, command: str) -> None:
        """Raise SettingsError when there is no model to ask."""
        if not self.has_model:
            raise SettingsError(
                "ANTHROPIC_API_KEY",
                f"`{command}` needs a model: set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for a server "
                "that speaks the same API (`vistobueno demo` needs neither).",
            )


def _database_url(given: Mapping[str, str], name: str) -> str | None:
    url = given.get(name)
    if url is None:
        return None
    # not urlsplit: a password may have signs that it takes for something else
    if url.partition("://")[0] not in {"postgres", "postgresql"}:
        raise SettingsError(
            name, f"{name} is not a PostgreSQL URL: write it as postgresql://user:password@host:5432/name."
        )
    # libpq would quote the part in which they are, and that may be the password
    if any(sign.isspace() or not sign.isprintable() for sign in url):
        raise SettingsError(
            name, f"{name} has spaces or signs that cannot be printed: write them as %20 and the like."
        )
    return url


def _http_url(given: Mapping[str, str], name: str) -> str | None:
    url = given.get(name)
    if url is None:
        return None
    if not _is_http(url):
        raise SettingsError(name, f"{name} is not a web address: write it as https://host/path.")
    return url


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # half an IPv6 address, or a port that is no number
        return False


def _credential(given: Mapping[str, str], name: str) -> str | None:
    value = given.get(name)
    # it goes into a header of HTTP
    if value is not None and not (value.isascii() and value.isprintable() and " " not in value):
        raise SettingsError(name, f"{name} has signs that cannot be part of it: copy it again.")
    return value


def _with_slash(url: str) -> str:
    return url if url.endswith("/") else f"{url}/"


def _bot_token(given: Mapping[str, str]) -> str | None:
    token = _credential(given, "SLACK_BOT_TOKEN")
    if token is not None and token.startswith(("xapp-", "xoxp-")):
        raise SettingsError(
            "SLACK_BOT_TOKEN",
            f"SLACK_BOT_TOKEN holds a token that begins with {token[:5]}: "
            "copy the Bot User OAuth Token, which begins with xoxb-.",
        )
    return token


def _app_token(given: Mapping[str, str]) -> str | None:
    token = _credential(given, "SLACK_APP_TOKEN")
    if token is not None and not token.startswith("xapp-"):
        raise SettingsError(
            "SLACK_APP_TOKEN",
            "SLACK_APP_TOKEN does not begin with xapp-: copy the App-Level Token with connections:write "
            "from your Slack app's page Basic Information.",
        )
    return token


def _tools(spec: str) -> str:
    module, _, name = spec.partition(":")
    if not module or not name:
        raise SettingsError(
            "VISTOBUENO_TOOLS", f"VISTOBUENO_TOOLS is {spec!r}: write it as package.module:NAME."
        )
    return spec


def _locale(name: str) -> str:
    known = ", ".join(sorted(LANGUAGES))
    advice = f"there are words in {known} only; write that, or a form of it that is known, like en_GB."
    try:
        found = Locale.parse(name.replace("-", "_"))
    except (ValueError, UnknownLocaleError) as error:
        raise SettingsError("VISTOBUENO_LOCALE", f"VISTOBUENO_LOCALE is {name!r}: {advice}") from error
    if found.language not in LANGUAGES:
        raise SettingsError("VISTOBUENO_LOCALE", f"VISTOBUENO_LOCALE is {name!r}: {advice}")
    return str(found)


def _port(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) < 65536):
        raise SettingsError("PORT", f"PORT is {text!r}: write a number from 0 to 65535.")
    return int(text)


def _log_level(text: str) -> str:
    if text.upper() not in LOG_LEVELS:
        raise SettingsError("LOG_LEVEL", f"LOG_LEVEL is {text!r}: write one of {', '.join(LOG_LEVELS)}.")
    return text.upper()
