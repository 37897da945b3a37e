"""The files around the code agree with each other: manifest, environment, processes, locks, Makefile."""

import itertools
import json
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.commands.processes import listening_at
from bot.settings import Settings

ROOT = Path(__file__).parents[2]

SCOPES_OF_EVENT = {
    "app_home_opened": set(),
    "app_mention": {"app_mentions:read"},
    "app_uninstalled": set(),
    "channel_archive": {"channels:read"},
    "member_left_channel": {"channels:read", "groups:read"},
    "message.im": {"im:history"},
    "subteam_members_changed": {"usergroups:read"},
    "tokens_revoked": set(),
    "user_change": {"users:read"},
}
"""https://docs.slack.dev/reference/events: the scopes each event needs."""

SCOPES_OF_WORK = {"chat:write", "commands", "im:write", "users:read", "usergroups:read"}
"""What is called or offered: cards, /approvals, direct messages, people, groups."""

VARIABLES = [
    "DATABASE_URL",
    "DATABASE_OWNER_URL",
    "SLACK_BOT_TOKEN",
    "SLACK_SIGNING_SECRET",
    "SLACK_APP_TOKEN",
    "SLACK_API_URL",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "VISTOBUENO_MODEL",
    "VISTOBUENO_POLICY",
    "VISTOBUENO_TOOLS",
    "VISTOBUENO_LOCALE",
    "STRIPE_API_KEY",
    "STRIPE_API_BASE",
    "SHOP_PROVIDER_HONOURS_KEYS",
    "PORT",
    "LOG_LEVEL",
]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.fixture
def manifest() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(read("manifest.yml"))
    return loaded


def test_the_manifest_asks_for_the_scopes_of_its_events_and_its_work_and_no_more(
    manifest: dict[str, Any],
) -> None:
    events = manifest["settings"]["event_subscriptions"]["bot_events"]
    assert sorted(events) == sorted(SCOPES_OF_EVENT)
    needed = SCOPES_OF_WORK.union(*(SCOPES_OF_EVENT[event] for event in events))
    assert sorted(manifest["oauth_config"]["scopes"]["bot"]) == sorted(needed)


def test_the_only_history_the_manifest_may_read_is_that_of_messages_to_the_bot(
    manifest: dict[str, Any],
) -> None:
    histories = [scope for scope in manifest["oauth_config"]["scopes"]["bot"] if scope.endswith(":history")]
    assert histories == ["im:history"]


def test_the_manifest_sends_everything_to_one_url(manifest: dict[str, Any]) -> None:
    urls = {
        manifest["settings"]["event_subscriptions"]["request_url"],
        manifest["settings"]["interactivity"]["request_url"],
        *(command["url"] for command in manifest["features"]["slash_commands"]),
    }
    assert len(urls) == 1
    assert urls.pop().endswith("/slack/events")
    assert manifest["settings"]["interactivity"]["is_enabled"] is True
    assert manifest["settings"]["socket_mode_enabled"] is False


def test_the_slash_command_gets_ids_instead_of_names_and_says_how_it_is_used(
    manifest: dict[str, Any],
) -> None:
    [command] = manifest["features"]["slash_commands"]
    assert command["command"] == "/approvals"
    assert command["should_escape"] is True
    words = re.findall(r"[a-z]+", command["usage_hint"])
    assert words == ["mine", "all", "show", "cancel", "help"]
    understood = re.findall(r'case (?:"" \| )?"([a-z]+)":', read("bot/listeners/command.py"))
    assert sorted(understood) == sorted(words)


def test_people_may_write_to_the_bot(manifest: dict[str, Any]) -> None:
    home = manifest["features"]["app_home"]
    assert home == {
        "home_tab_enabled": True,
        "messages_tab_enabled": True,
        "messages_tab_read_only_enabled": False,
    }


def test_the_example_environment_names_every_variable_once() -> None:
    assert re.findall(r"^(?:# )?([A-Z_]+)=", read(".env.example"), re.MULTILINE) == VARIABLES


def test_the_example_environment_sourced_as_it_says_gives_the_defaults() -> None:
    copied = "set -a; . ./.env.example; set +a; env -0"
    shell = subprocess.run(["sh", "-c", copied], cwd=ROOT, env={}, check=True, capture_output=True, text=True)
    given = dict(line.split("=", 1) for line in shell.stdout.split("\0") if line)
    settings = Settings.read({name: value for name, value in given.items() if name in VARIABLES})
    assert settings == Settings.read({})
    assert listening_at(settings) == ("127.0.0.1", 3000)


def test_every_variable_of_the_example_environment_is_explained() -> None:
    lines = read(".env.example").splitlines()
    bare = [line for before, line in itertools.pairwise(lines) if "=" in line and not before]
    assert bare == []


def test_a_platform_migrates_before_it_starts_web_and_worker() -> None:
    assert read("Procfile").splitlines() == [
        "release: vistobueno migrate",
        "web: vistobueno web",
        "worker: vistobueno worker",
    ]


def locked(name: str) -> dict[str, str]:
    """Package → version (with its marker) of a lock file."""
    return dict(re.findall(r"^([a-z0-9._-]+)(?:\[[a-z,]+\])?==([^\\\n]+)", read(name), re.MULTILINE))


@pytest.mark.parametrize(
    ("name", "least"),
    [("requirements.lock", 50), ("requirements-dev.lock", 50), ("requirements-browser.lock", 2)],
)
def test_a_lock_has_hashes_for_all_and_names_no_registry(name: str, least: int) -> None:
    text = read(name)
    entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(entries) >= least
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    assert re.findall(r"https?://|index-url|find-links|file:", text) == []


def test_the_development_lock_has_the_same_versions_as_the_other() -> None:
    runtime, development = locked("requirements.lock"), locked("requirements-dev.lock")
    assert {name: development[name] for name in runtime} == runtime


def test_the_lock_of_the_browsers_tests_has_what_is_declared_and_the_versions_of_the_others() -> None:
    development, browser = locked("requirements-dev.lock"), locked("requirements-browser.lock")
    assert set(tomllib.loads(read("pyproject.toml"))["dependency-groups"]["browser"]) <= set(browser)
    shared = set(development) & set(browser)
    assert {name: browser[name] for name in shared} == {name: development[name] for name in shared}


@pytest.mark.parametrize("folder", ["tests/browser/outside", "tests/standins/stripe"])
def test_a_lock_of_npm_has_the_one_package_with_all_it_needs_by_their_hashes_and_names_no_registry(
    folder: str,
) -> None:
    declared = json.loads(read(f"{folder}/package.json"))
    [(name, version)] = (declared.get("dependencies") or declared["optionalDependencies"]).items()
    packages = json.loads(read(f"{folder}/package-lock.json"))["packages"]
    there = {path: package for path, package in packages.items() if path}
    assert there[f"node_modules/{name}"]["version"] == version
    assert all(package["integrity"].startswith("sha512-") for package in there.values())
    assert not any("resolved" in package for package in there.values())


@pytest.mark.parametrize(
    ("lock", "groups"), [("requirements.lock", ["build"]), ("requirements-dev.lock", ["build", "dev"])]
)
def test_the_locks_have_everything_that_the_project_declares(lock: str, groups: list[str]) -> None:
    declared = tomllib.loads(read("pyproject.toml"))
    extras = declared["project"]["optional-dependencies"].values()
    wanted = declared["project"]["dependencies"] + list(itertools.chain(*extras))
    for group in groups:
        wanted += [entry for entry in declared["dependency-groups"][group] if isinstance(entry, str)]
    names = {re.split(r"[\[<>=~! ]", entry)[0].lower() for entry in wanted}
    assert names - set(locked(lock)) == set()


def make(*arguments: str, folder: Path) -> str:
    """What make writes to its standard output, as if no other make had started these tests."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_make_alone_lists_the_commands() -> None:
    commands = re.findall(r"^make ([\w-]+) ", make(folder=ROOT), re.MULTILINE)
    assert commands == [
        "help",
        "setup",
        "demo",
        "test",
        "test-long",
        "screenshots",
        "check",
        "mutants",
        "soak",
        "bench",
        "crash",
        "crash-quick",
        "crash-mutants",
        "lock",
        "clean",
    ]


def test_make_demo_leaves_the_standard_output_to_the_demo(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        (tmp_path / name).write_text(read(name), encoding="utf-8")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    demo = tmp_path / ".venv" / "bin" / "vistobueno"
    demo.write_text('#!/bin/sh\necho "$@"\n', encoding="utf-8")
    demo.chmod(0o755)
    (tmp_path / ".venv" / "ready").touch()
    assert make("demo", "ARGS=--play --json", folder=tmp_path) == "demo --play --json\n"
