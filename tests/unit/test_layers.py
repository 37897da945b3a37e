"""Who may import whom: bot → agent → store, and each outside library in one place."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("bot", "agent", "store")

LOWER_LAYERS = {"bot": {"bot", "agent", "store"}, "agent": {"agent", "store"}, "store": {"store"}}
"""The project's packages that each package may import."""

HOME_OF = {
    **dict.fromkeys(("slack", "slack_bolt", "slack_sdk", "fastapi", "starlette", "uvicorn"), "bot"),
    **dict.fromkeys(("sqlalchemy", "psycopg", "psycopg_pool", "alembic"), "store"),
    "anthropic": "agent.model",
}
"""The one place of our own that may import a library."""

USER_CODE = "agent.tools"
"""Tools are the user's own code: any library will do there, but the layers hold."""

SANDBOX = "bot.sandbox"
DEMO = "bot.demo"
DEMO_IMPORTERS = (DEMO, "bot.commands.preview")
"""Who may bring in the sandbox; the demo's errors alone are for the command line too."""

EMPTY_NAMES = {"util", "utils", "helper", "helpers", "common", "manager", "managers", "service", "services"}


def inside(module: str, package: str) -> bool:
    """Whether a module is a package or lies in it."""
    return module == package or module.startswith(f"{package}.")


def imports(source: str, module: str, *, is_package: bool) -> Iterator[str]:
    """Every module that a source imports, also inside functions and by a literal import_module.

    `from a import b` gives both `a` and `a.b`, because b may be a module.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                keep = len(parts) - node.level + is_package
                base = ".".join([*parts[:keep], *([base] if base else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            yield from (str(a.value) for a in node.args[:1] if isinstance(a, ast.Constant))


def complaint(module: str, imported: str) -> str | None:
    """What is wrong with this import, if anything."""
    package, top = module.split(".")[0], imported.split(".")[0]
    home = HOME_OF.get(top)
    if top in PACKAGES and top not in LOWER_LAYERS[package]:
        return f"{module} imports {imported}: {package} may not know {top}"
    if inside(module, SANDBOX) and top in PACKAGES and not inside(imported, SANDBOX):
        # `from bot import sandbox` would also name the bare package, which is empty
        return None if imported == "bot" else f"{module} imports {imported}: the sandbox stands alone"
    if inside(imported, SANDBOX) and not (inside(module, SANDBOX) or inside(module, DEMO)):
        return f"{module} imports {imported}: only the demo and the tests use the sandbox"
    may_use_demo = any(inside(module, importer) for importer in DEMO_IMPORTERS)
    if inside(imported, DEMO) and not inside(imported, f"{DEMO}.errors") and not may_use_demo:
        return f"{module} imports {imported}: only the demo and `preview --open` use the demo's world"
    if home is not None and not inside(module, home) and not inside(module, USER_CODE):
        return f"{module} imports {imported}: only {home} does"
    return "tests are not for the product" if top == "tests" else None


def complaints(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """Everything that is wrong with a module's name and imports."""
    empty = [f"{module}: '{part}' says nothing" for part in module.split(".") if part in EMPTY_NAMES]
    found = (complaint(module, name) for name in imports(source, module, is_package=is_package))
    return empty + [text for text in found if text is not None]


def modules() -> Iterator[tuple[Path, str]]:
    """The files of the three packages and their module names."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield path, ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_the_packages_keep_to_their_layers() -> None:
    found = [
        text
        for path, module in modules()
        for text in complaints(
            path.read_text(encoding="utf-8"), module, is_package=path.name == "__init__.py"
        )
    ]
    assert found == []


def test_all_three_packages_are_looked_at() -> None:
    assert {module.split(".")[0] for _, module in modules()} == set(PACKAGES)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("store.runs", "import agent"),
        ("store.runs", "from bot.texts import en"),
        ("agent.loop", "from bot import publish"),
        ("agent.tools.shop", "import bot.publish"),
        ("agent.loop", "from slack_sdk.errors import SlackApiError"),
        ("agent.worker", "def start():\n    import uvicorn"),
        ("store.engine", "from starlette import status"),
        ("agent.loop", "import anthropic.types"),
        ("bot.app", "from anthropic import AsyncAnthropic"),
        ("agent.sweep", "import sqlalchemy as sa"),
        ("bot.identity", "from psycopg import errors"),
        ("bot.app", "from bot.sandbox.server import serve"),
        ("bot.app", "from bot import sandbox"),
        ("bot.app", "from . import sandbox"),
        ("bot.listeners.decision", "from ..sandbox import server"),
        ("bot.app", "import importlib\nimportlib.import_module('bot.sandbox')"),
        ("bot.app", "from bot.demo.world import open_world"),
        ("bot.commands.processes", "from bot.demo import showing"),
        ("bot.cli", "from bot.sandbox import Sandbox"),
        ("bot.sandbox.server", "from store.records import Run"),
        ("bot.sandbox.server", "from ..blocks import card"),
        ("bot.sandbox.server", "from bot.payloads import Click"),
        ("agent.helpers", ""),
        ("bot.service.cards", ""),
        ("bot.app", "from tests.databases import Database"),
    ],
)
def test_a_planted_violation_is_found(module: str, source: str) -> None:
    assert complaints(source, module)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("bot.app", "from agent.loop import run\nfrom store.records import Run\nimport fastapi"),
        ("agent.loop", "from store import runs\nfrom . import results\nfrom .outcome import Paused"),
        ("agent.model", "from anthropic import AsyncAnthropic"),
        ("agent.tools.shop.data", "import psycopg, slack_sdk"),
        ("store.migrations.env", "from alembic import context"),
        ("bot.demo", "from bot.sandbox.server import serve"),
        ("bot.demo.play", "from bot.sandbox.people import PEOPLE"),
        (
            "bot.sandbox.server",
            "from bot.sandbox.limits import LIMITS\nfrom .limits import LIMITS\nimport slack_sdk",
        ),
        ("bot.sandbox.server", "from bot.sandbox import limits"),
    ],
)
def test_an_import_that_keeps_to_the_layers_is_none_of_its_business(module: str, source: str) -> None:
    assert complaints(source, module) == []


def test_a_relative_import_in_a_package_starts_at_the_package() -> None:
    found = list(imports("from .limits import LIMITS", "bot.sandbox", is_package=True))
    assert found == ["bot.sandbox.limits", "bot.sandbox.limits.LIMITS"]
