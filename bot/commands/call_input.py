"""The input of a call as an argument: JSON in the word itself, in a file, or on stdin."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from bot.commands.output import CommandFailed

InputOption = Annotated[
    str,
    typer.Option(
        "--input",
        metavar="JSON",
        help="What the agent would send, as a JSON object; @FILE reads it from a file, - from stdin. "
        'Example: \'{"to": ["ana@example.com"], "subject": "Hello", "body": "…"}\'',
    ),
]


def read_input(given: str) -> Any:
    """The JSON value that `--input` gives; raises CommandFailed, which says where it is no JSON."""
    text, where = _text(given)
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        if not text.strip():
            raise CommandFailed(f"{where} is empty: write a JSON object, like {{}}.") from error
        place = f"line {error.lineno}, column {error.colno}"
        raise CommandFailed(f"{where} is not JSON at {place}: {error.msg}.") from error
    except RecursionError as error:
        raise CommandFailed(f"{where} is nested too deeply: no tool has such an input.") from error
    except ValueError as error:  # no number of JSON, too many digits
        raise CommandFailed(f"{where} cannot be read as JSON: {error}.") from error


def _text(given: str) -> tuple[str, str]:
    """The text, and what to call it."""
    if given == "-":
        return _decoded(sys.stdin.buffer.read(), "stdin"), "stdin"
    if not given.startswith("@"):
        return given, "--input"
    name = given[1:]
    try:
        return _decoded(Path(name).read_bytes(), name), name
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CommandFailed(f"The input {name!r} cannot be read: {reason}; correct its name.") from error


def _decoded(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CommandFailed(f"{where} is not UTF-8 text at byte {error.start}: write it in UTF-8.") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
