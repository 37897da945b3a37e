"""Markup built from functions: whatever is not `Html` already is escaped."""

import html
from collections.abc import Iterable
from typing import TypeAlias


class Html(str):
    """Text that is markup; only this module and constants make one."""

    __slots__ = ()


Child: TypeAlias = str | Html | Iterable["Child"] | None
Attribute: TypeAlias = str | int | bool | None
VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})


def text(*children: Child) -> Html:
    """The children after one another; strings that are no `Html` are escaped, None is nothing."""
    return Html("".join(_written(child) for child in children))


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Html:
    """An element: `class_` and `for_` lose their bar, `aria_label` gets its hyphen.

    An attribute that is True stands alone; False and None leave it out.
    """
    opened = f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    return Html(opened) if name in VOID else Html(f"{opened}{text(*children)}</{name}>")


def joined(parts: Iterable[Child], between: Html) -> Html:
    """The parts with markup between them."""
    return Html(between.join(_written(part) for part in parts))


def _written(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    if isinstance(child, str):
        return html.escape(child)
    return "".join(_written(one) for one in child)


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(str(value))}"'
