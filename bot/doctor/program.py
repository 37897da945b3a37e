"""Whether Python is new enough, and whether what runs is what was installed."""

import json
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import agent
import bot
import store
from bot.doctor.finding import Finding, failed, ok, warning

OLDEST_PYTHON = (3, 11)
NAME = "vistobueno"


@dataclass(frozen=True)
class Installed:
    """The installed version, and the folder that its packages lie in."""

    version: str
    root: Path


def check_program() -> list[Finding]:
    """The checks "python" and "version"."""
    return [check_python(sys.version_info[:3]), check_version(installed(), running())]


def check_python(version: tuple[int, ...]) -> Finding:
    """Whether this Python is new enough."""
    shown = ".".join(map(str, version))
    if version >= OLDEST_PYTHON:
        return ok("python", shown)
    oldest = ".".join(map(str, OLDEST_PYTHON))
    return failed("python", f"this is Python {shown}", f"Use Python {oldest} or newer.")


def check_version(there: Installed | None, roots: set[Path]) -> Finding:
    """Whether the packages that run, from the folders `roots`, are those of the installation."""
    places = " and ".join(sorted(map(str, roots)))
    if len(roots) > 1:
        return failed(
            "version",
            f"the packages bot, agent and store come from {places}",
            "Start vistobueno from another folder, or rename what else is called bot, agent or store.",
        )
    if there is None:
        return warning(
            "version",
            f"what runs is in {places} and was never installed",
            "Install it there (`make setup`), so that its version and those of its libraries are known.",
        )
    if there.root not in roots:
        return warning(
            "version",
            f"{there.version} is installed in {there.root}, but what runs is in {places}",
            "Start vistobueno from another folder, or install what is in this one.",
        )
    return ok("version", there.version)


def running() -> set[Path]:
    """The folders that the packages in use lie in: one, if nothing stands in their way."""
    return {Path(str(package.__file__)).resolve().parents[1] for package in (bot, agent, store)}


def installed() -> Installed | None:
    """The installation of this Python, None if there is none."""
    try:
        found = metadata.distribution(NAME)
    except metadata.PackageNotFoundError:
        return None
    return Installed(found.version, _root(found))


def _root(found: metadata.Distribution) -> Path:
    # https://packaging.python.org/en/latest/specifications/direct-url-data-structure/
    origin = json.loads(found.read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable"):
        return Path(url2pathname(urlsplit(origin["url"]).path)).resolve()
    return Path(str(found.locate_file(""))).resolve()
