"""The doctor's checks that need nothing but what they are given."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from bot.doctor import program
from bot.doctor.clocks import Asked, compare
from bot.doctor.finding import failed, summed, warning
from bot.doctor.program import OLDEST_PYTHON, Installed, check_python, check_version
from bot.doctor.scopes import BOT_SCOPES

ROOT = Path(__file__).parents[3]
HERE, THERE = Path("/srv/here"), Path("/srv/there")


def test_the_scopes_are_those_of_the_manifest() -> None:
    manifest = yaml.safe_load((ROOT / "manifest.yml").read_text(encoding="utf-8"))
    assert list(BOT_SCOPES) == manifest["oauth_config"]["scopes"]["bot"]


def test_what_a_scope_is_for_is_said_alike_in_the_manifest_and_in_the_setup() -> None:
    manifest = (ROOT / "manifest.yml").read_text(encoding="utf-8")
    setup = (ROOT / "docs" / "slack-setup.md").read_text(encoding="utf-8")
    said = dict(re.findall(r"^ +- ([a-z_.]+(?::[a-z]+)?) # (.+)$", manifest, re.MULTILINE))
    listed = re.findall(r"^\| `([a-z_.]+(?::[a-z]+)?)` \| `?(.+?)`? \|$", setup, re.MULTILINE)
    assert said == dict(listed) == BOT_SCOPES


def test_the_oldest_python_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == ">=" + ".".join(map(str, OLDEST_PYTHON))
    assert project["name"] == program.NAME


def test_an_old_python_is_to_be_replaced() -> None:
    assert check_python((3, 11, 0)).status == "ok"
    found = check_python((3, 10, 12))
    assert (found.status, found.says, found.do) == (
        "failed",
        "this is Python 3.10.12",
        "Use Python 3.11 or newer.",
    )


def test_the_installed_packages_are_what_should_run() -> None:
    found = check_version(Installed("0.1.0", HERE), {HERE})
    assert (found.status, found.says) == ("ok", "0.1.0")


def test_another_copy_than_the_installed_one_is_a_warning() -> None:
    found = check_version(Installed("0.1.0", HERE), {THERE})
    assert found.status == "warning"
    assert found.says == "0.1.0 is installed in /srv/here, but what runs is in /srv/there"


def test_what_was_never_installed_is_a_warning() -> None:
    found = check_version(None, {THERE})
    assert found.status == "warning"
    assert found.says == "what runs is in /srv/there and was never installed"


def test_packages_from_different_places_cannot_be_of_one_version() -> None:
    found = check_version(Installed("0.1.0", HERE), {HERE, THERE})
    assert found.status == "failed"
    assert found.says == "the packages bot, agent and store come from /srv/here and /srv/there"
    assert (found.do or "").startswith("Start vistobueno from another folder")


def test_what_runs_is_this_folder() -> None:
    assert program.running() == {ROOT}


@pytest.mark.parametrize(
    ("direct_url", "root"),
    [
        ('{"dir_info": {"editable": true}, "url": "file:///srv/my%20here"}', "/srv/my here"),
        ('{"dir_info": {}, "url": "file:///srv/here"}', "site"),
        (None, "site"),
    ],
)
def test_an_editable_installation_is_where_its_sources_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, direct_url: str | None, root: str
) -> None:
    info = tmp_path / "site" / "vistobueno-7.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vistobueno\nVersion: 7.0\n")
    if direct_url is not None:
        (info / "direct_url.json").write_text(direct_url)
    monkeypatch.setattr(metadata, "distribution", lambda name: metadata.PathDistribution(info))
    assert program.installed() == Installed("7.0", tmp_path / root)


def test_where_nothing_is_installed_there_is_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "NAME", "no-such-distribution")
    assert program.installed() is None


def test_a_clock_is_compared_with_the_middle_of_the_time_it_took_to_ask() -> None:
    assert Asked(began=100.0, ended=104.0).ahead_of(92.0) == 10.0


@pytest.mark.parametrize(
    ("ahead", "status", "says"),
    [
        (-30.0, "ok", "30 s from Slack's"),
        (31.0, "warning", "this machine's clock is 31 s ahead of Slack's"),
        (-300.0, "warning", "this machine's clock is 300 s behind Slack's"),
        (301.0, "failed", "this machine's clock is 301 s ahead of Slack's"),
    ],
)
def test_a_clock_may_be_half_a_minute_off_and_must_not_be_five(ahead: float, status: str, says: str) -> None:
    found = compare("clock", "Slack's", ahead, "Set it.")
    assert (found.status, found.says) == (status, says)


def test_the_faults_of_a_check_are_one_line_as_grave_as_the_gravest() -> None:
    assert summed("x", "fine", []).says == "fine"
    found = summed("x", "fine", [warning("x", "a", "Do it."), failed("x", "b", "Do it.")])
    assert (found.status, found.says, found.do) == ("failed", "a; b", "Do it.")
