"""Which block may stand on which surface (docs.slack.dev/blocks.json)."""

from collections.abc import Mapping
from types import MappingProxyType

from bot.sandbox.unsettled import Unsettled

EVERYWHERE = frozenset({"message", "modal", "home"})
MESSAGE = frozenset({"message"})

SURFACES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        **dict.fromkeys(
            ("actions", "section", "header", "divider", "context", "input", "image", "rich_text", "video"),
            EVERYWHERE,
        ),
        "alert": frozenset({"modal"}),
        "card": frozenset({"message", "home"}),
        "carousel": frozenset({"message", "home"}),
        **dict.fromkeys(
            ("container", "table", "data_table", "markdown", "task_card", "plan", "context_actions", "file"),
            MESSAGE,
        ),
    }
)
CONTAINER_CHILDREN = frozenset(
    {
        *("actions", "context", "divider", "file", "header", "image", "input"),
        *("rich_text", "section", "table", "data_table", "video"),
    }
)


def surfaces_of(kind: str, unsettled: Unsettled) -> frozenset[str]:
    """The surfaces a block of this type passes on; empty for an unknown type."""
    if kind == "auth_provider":
        return unsettled.auth_provider_surfaces
    extra = set()
    if kind == "card" and unsettled.card_in_modal:
        extra.add("modal")
    if kind in {"table", "data_table"} and unsettled.table_on_home:
        extra.add("home")
    if kind == "container" and unsettled.container_on_home:
        extra.add("home")
    return SURFACES.get(kind, frozenset()) | extra


def container_children(unsettled: Unsettled) -> frozenset[str]:
    """The types of block a container takes."""
    if unsettled.container_takes_rich_text_and_input:
        return CONTAINER_CHILDREN
    return CONTAINER_CHILDREN - {"rich_text", "input"}
