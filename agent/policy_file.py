"""Reads policy.toml table by table: every value typed, every fault one sentence with the file and the key."""

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

T = TypeVar("T", str, int, bool)

LARGEST = 1_000_000  # bytes
_DURATION = re.compile(r"([0-9]{1,9})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_KINDS: Mapping[type, str] = {str: "text in quotes", int: "a whole number", bool: "true or false"}


class PolicyError(Exception):
    """The policy cannot be used; the text says in one sentence where it is wrong and what to do."""


@dataclass(frozen=True)
class Section:
    """One table of the file: `name` as it is written there ("" is the top), and its values."""

    file: str
    name: str
    values: Mapping[str, object]

    def has(self, key: str) -> bool:
        """Say whether the key is there."""
        return key in self.values

    def fault(self, key: str, problem: str) -> PolicyError:
        """Give the error that names the file, the table and the key; `problem` goes on after the key."""
        end = "" if problem.endswith("?") else "."
        return PolicyError(f"{self.file}: {key}{f' in [{self.name}]' if self.name else ''} {problem}{end}")

    def only(self, known: Collection[str]) -> "Section":
        """Give the section itself; PolicyError for a key that is not one of `known`."""
        for key in self.values:
            if key not in known:
                raise self.fault(f'"{key}"', f"is not a known key; {nearest(key, known)}")
        return self

    def table(self, key: str) -> "Section":
        """Give the table under `key`, an empty one if it is not there."""
        name = f"{self.name}.{key}" if self.name else key
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            raise self.fault(key, f"must be a table; begin it with the line [{name}]")
        return Section(self.file, name, value)

    def text(self, key: str, default: str | None = None) -> str | None:
        """Give a text that is not blank."""
        value = self._typed(key, str, default)
        if value is not None and not value.strip():
            raise self.fault(key, "is empty; write a text or remove the line")
        return value

    def whole(self, key: str, default: int | None = None, *, least: int, most: int) -> int | None:
        """Give a whole number from `least` to `most`."""
        value = self._typed(key, int, default)
        if value is not None and not least <= value <= most:
            raise self.fault(key, f"is {value}; write a whole number from {least} to {most}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """Give true or false."""
        return bool(self._typed(key, bool, default))

    def texts(self, key: str, example: str) -> tuple[str, ...]:
        """Give a list of one or more texts, each once; PolicyError if it is missing or empty."""
        if not self.has(key):
            raise self.fault(key, f"is missing; write it like {key} = [{example}]")
        value = self.values[key]
        if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
            raise self.fault(key, f"must be a list of texts, like {key} = [{example}]")
        if not value:
            raise self.fault(key, f"is empty, which means nobody; write it like {key} = [{example}]")
        return tuple(dict.fromkeys(value))

    def seconds(self, key: str, default: str, *, most: str) -> float:
        """Give a duration like "90s", "30m", "4h" or "2d" in seconds, more than none and at most `most`."""
        text = self.values.get(key, default)
        found = _DURATION.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise self.fault(key, f'must be a duration like "90s", "30m", "4h" or "2d", not {text!r}')
        seconds = int(found[1]) * _SECONDS[found[2]]
        limit = _DURATION.fullmatch(most)
        assert limit is not None, "the limit is written in the code"
        if not 0 < seconds <= int(limit[1]) * _SECONDS[limit[2]]:
            raise self.fault(key, f'is "{text}"; write more than "0s" and at most "{most}"')
        return float(seconds)

    def _typed(self, key: str, kind: type[T], default: T | None) -> T | None:
        if not self.has(key):
            return default
        value = self.values[key]
        # true is an int to Python, and never a number here
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.fault(key, f"must be {_KINDS[kind]}, not {value!r}")
        return value


def read_toml(path: Path) -> Section:
    """Read the whole file; PolicyError if it is not there, cannot be read or is no TOML."""
    try:
        values = tomllib.loads(read_text(path, "VISTOBUENO_POLICY"))
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"{path} is not valid TOML; correct it: {error}.") from error
    except RecursionError as error:
        raise PolicyError(f"{path} has values nested too deeply; write them in tables.") from error
    except ValueError as error:  # int() reads no more than some thousand digits
        raise _beyond_numbers(path) from error
    if _holds_beyond_numbers(values):
        raise _beyond_numbers(path)
    return Section(str(path), "", values)


def _beyond_numbers(path: Path) -> PolicyError:
    return PolicyError(f"{path} has a number of more than 64 bits; write a smaller one.")


def _holds_beyond_numbers(value: object) -> bool:
    # what TOML promises to hold: https://toml.io/en/v1.0.0#integer
    match value:
        case int():
            return not -(2**63) <= value < 2**63
        case dict():
            return any(map(_holds_beyond_numbers, value.values()))
        case list():
            return any(map(_holds_beyond_numbers, value))
        case _:
            return False


def read_text(path: Path, named_by: str) -> str:
    """Read a UTF-8 file, without its byte order mark; PolicyError says who named one that cannot be read."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)  # not more: it may be a device
        if len(content) > LARGEST:
            raise PolicyError(
                f"{path} is larger than {LARGEST // 1_000_000} MB; correct its path in {named_by}."
            )
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        why = error.strerror or error
        raise PolicyError(
            f"{path} cannot be read ({why}); create it, or correct its path in {named_by}."
        ) from error
    except UnicodeDecodeError as error:
        raise PolicyError(f"{path} is not UTF-8 text; save it as UTF-8.") from error


def nearest(word: str, known: Iterable[str]) -> str:
    """Say what may have been meant: the nearest of the known words, or all of them."""
    words = sorted(known)
    close = get_close_matches(word, words, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]}?"
    return f"use one of {', '.join(words)}" if words else "there is none yet"
