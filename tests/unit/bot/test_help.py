"""`vistobueno --help` and its pages teach: nothing is without words, in the order of somebody new."""

from collections.abc import Iterator

import pytest
import typer

from bot.commands.output import LOOKING, RUNNING, TRYING
from bot.commands.root import MODULES, make_cli

ACTING = {"demo", "dev", "web", "worker", "migrate", "start", "runs cancel", "runs retry"}
"""All other commands only read, so a program can read what they say."""


def walk(command: typer.core.TyperGroup, name: str = "") -> Iterator[tuple[str, typer.core.TyperCommand]]:
    """Every command with its words, like "runs list"."""
    for word, inner in command.commands.items():
        if isinstance(inner, typer.core.TyperGroup):
            yield from walk(inner, f"{name}{word} ")
        else:
            assert isinstance(inner, typer.core.TyperCommand)
            yield f"{name}{word}", inner


def whole() -> typer.core.TyperGroup:
    made = typer.main.get_command(make_cli())
    assert isinstance(made, typer.core.TyperGroup)
    return made


COMMANDS = dict(walk(whole()))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_and_all_it_takes_are_explained(name: str) -> None:
    command = COMMANDS[name]
    assert command.help
    assert command.help.split("\n\n")[0].rstrip().endswith(".")
    for parameter in command.params:
        assert getattr(parameter, "help", ""), parameter.name


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - ACTING))
def test_what_reads_takes_json(name: str) -> None:
    assert any("--json" in parameter.opts for parameter in COMMANDS[name].params)


def test_commands_stand_in_the_order_of_somebody_new() -> None:
    panels: dict[str, list[str]] = {}
    for name, command in whole().commands.items():
        panels.setdefault(str(getattr(command, "rich_help_panel", None)), []).append(name)
    assert list(panels) == [TRYING, RUNNING, LOOKING]
    assert panels[TRYING][:2] == ["demo", "preview"]


@pytest.mark.parametrize("module", MODULES)
def test_for_a_command_the_module_is_loaded_that_has_it_with_all_that_it_has(module: str) -> None:
    for name in MODULES[module]:
        made = typer.main.get_command(make_cli(name))
        assert isinstance(made, typer.core.TyperGroup)
        assert tuple(made.commands) == MODULES[module]


@pytest.mark.parametrize("word", ["", "--help", "nonsense"])
def test_without_the_name_of_a_command_all_are_loaded(word: str) -> None:
    made = typer.main.get_command(make_cli(word))
    assert isinstance(made, typer.core.TyperGroup)
    assert sorted(made.commands) == sorted(name for names in MODULES.values() for name in names)
