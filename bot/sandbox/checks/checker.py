"""Collects what is wrong with a Block Kit structure, with the few questions every block asks."""

from collections.abc import Collection
from typing import Any

from bot.sandbox import limits
from bot.sandbox.errors import Json, Problem
from bot.sandbox.unsettled import Unsettled

PLAIN = frozenset({"plain_text"})
MRKDWN = frozenset({"mrkdwn"})
ANY_TEXT = PLAIN | MRKDWN


class Checker:
    """One pass over the blocks of one surface ("message", "modal", "home")."""

    def __init__(self, surface: str, unsettled: Unsettled) -> None:
        self.surface = surface
        self.unsettled = unsettled
        self.problems: list[Problem] = []
        self.tables = 0
        self.markdown_chars = 0
        self.text_chars = 0
        self._block_ids: set[str] = set()

    def fail(self, pointer: str, what: str) -> None:
        """Note one problem."""
        self.problems.append(Problem(pointer, what))

    def known(self, obj: Json, names: Collection[str], at: str) -> None:
        """Only these properties may be there."""
        for name in obj:
            if name not in names:
                self.fail(at, f"invalid additional property: {name}")

    def string(
        self, obj: Json, name: str, at: str, most: int, *, least: int = 1, needed: bool = False
    ) -> str:
        """A string property of `least` to `most` characters; returns it, or ""."""
        value = obj.get(name)
        if value is None:
            if needed:
                self.fail(at, f"missing required field: {name}")
            return ""
        if not isinstance(value, str):
            self.fail(f"{at}/{name}", "must be a string")
            return ""
        self._length(value, f"{at}/{name}", least, most)
        return value

    def text(
        self,
        obj: Json,
        name: str,
        at: str,
        most: int,
        *,
        kinds: frozenset[str] = ANY_TEXT,
        needed: bool = False,
    ) -> None:
        """A text object of one of `kinds`, never empty, at most `most` characters."""
        value = obj.get(name)
        if value is None:
            if needed:
                self.fail(at, f"missing required field: {name}")
            return
        self.text_object(value, f"{at}/{name}", most, kinds)

    def text_object(self, value: Any, at: str, most: int, kinds: frozenset[str] = ANY_TEXT) -> None:
        """The same for a text object that stands by itself (a field, a context element)."""
        if not isinstance(value, dict) or value.get("type") not in kinds:
            self.fail(at, f"must be a text object of type {' or '.join(sorted(kinds))}")
            return
        extra = "emoji" if value["type"] == "plain_text" else "verbatim"
        self.known(value, {"type", "text", extra}, at)
        if not isinstance(value.get(extra, False), bool):
            self.fail(f"{at}/{extra}", "must be a boolean")
        self.text_chars += len(self.string(value, "text", at, most, needed=True))

    def items(
        self, obj: Json, name: str, at: str, most: int, *, least: int = 1, needed: bool = True
    ) -> list[tuple[str, Any]]:
        """A list property of `least` to `most` items; returns them with their pointers."""
        value = obj.get(name)
        if value is None:
            if needed:
                self.fail(at, f"missing required field: {name}")
            return []
        if not isinstance(value, list):
            self.fail(f"{at}/{name}", "must be an array")
            return []
        if len(value) > most:
            self.fail(f"{at}/{name}", f"no more than {most} items allowed")
        if len(value) < least:
            self.fail(f"{at}/{name}", f"no fewer than {least} items allowed")
        return [(f"{at}/{name}/{i}", item) for i, item in enumerate(value)]

    def choice(self, obj: Json, name: str, at: str, values: Collection[str], *, needed: bool = False) -> None:
        """A property that is one of `values`."""
        value = obj.get(name)
        if value is None and not needed:
            return
        if value not in values:
            self.fail(f"{at}/{name}", f"must be one of {', '.join(sorted(values))}")

    def boolean(self, obj: Json, name: str, at: str, *, needed: bool = False) -> None:
        """A property that is true or false."""
        if (name in obj or needed) and not isinstance(obj.get(name), bool):
            self.fail(f"{at}/{name}", "must be a boolean")

    def block_id(self, block: Json, at: str) -> None:
        """Length and uniqueness of `block_id` on the whole surface."""
        value = self.string(block, "block_id", at, limits.BLOCK_ID)
        if value and value in self._block_ids:
            self.fail(f"{at}/block_id", f"`block_id` {value} already exists")
        self._block_ids.add(value)

    def action_ids(self, elements: list[tuple[str, Any]]) -> None:
        """Uniqueness of `action_id` among the elements of one block."""
        seen: set[str] = set()
        for at, element in elements:
            value = element.get("action_id") if isinstance(element, dict) else None
            if isinstance(value, str) and value in seen:
                self.fail(
                    f"{at}/action_id", f"`action_id` {value} already exists for other elements in this block"
                )
            elif isinstance(value, str):
                seen.add(value)

    def _length(self, value: str, at: str, least: int, most: int) -> None:
        if len(value) > most:
            self.fail(at, f"must be less than {most + 1} characters")
        if len(value) < least:
            self.fail(at, f"must be more than {least - 1} characters")
