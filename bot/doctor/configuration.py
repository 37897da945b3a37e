"""Whether each variable of the environment can be used, and whether they can work together."""

from collections.abc import Mapping

from bot.doctor.finding import Finding, failed, summed, warning
from bot.settings import Settings, SettingsError
from store.engine import sqlalchemy_url
from store.errors import DatabaseUnavailable

CHECK = "configuration"


def check_variables(environ: Mapping[str, str]) -> Finding:
    """Every variable that cannot be used; fine if the settings can be read."""
    given, faults = dict(environ), list[Finding]()
    while True:
        try:
            Settings.read(given)
        except SettingsError as error:
            faults.append(failed(CHECK, f"{error.variable} cannot be used", str(error)))
            del given[error.variable]
        else:
            return summed(CHECK, "every variable can be used", faults)


def check_configuration(settings: Settings) -> Finding:
    """Whether the variables can work together."""
    checks = (_owner_alone(settings), _two_databases(settings))
    return summed(CHECK, "every variable can be used", [found for found in checks if found is not None])


def _owner_alone(settings: Settings) -> Finding | None:
    if settings.database_owner_url is None or settings.database_url is not None:
        return None
    return failed(
        CHECK,
        "DATABASE_OWNER_URL is set and DATABASE_URL is not",
        "Set DATABASE_URL to the same database: the owner's URL is for `vistobueno migrate` alone.",
    )


def _two_databases(settings: Settings) -> Finding | None:
    app, owner = _database(settings.database_url), _database(settings.database_owner_url)
    if app is None or owner is None or app == owner:
        return None
    return warning(
        CHECK,
        "DATABASE_URL and DATABASE_OWNER_URL name different databases",
        "Let both name the same database, or `vistobueno migrate` prepares one that the app never uses.",
    )


def _database(url: str | None) -> str | None:
    try:
        return sqlalchemy_url(url).database if url else None
    except DatabaseUnavailable:  # what is wrong with it is for the database's own check
        return None
