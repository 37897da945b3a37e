"""Points on which Slack's documents and observers differ: each a switch with both answers."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Unsettled:
    """One answer per open point; the defaults are the stricter or the documented one."""

    table_placement: Literal["blocks", "attachments"] = "blocks"
    """Where a table may stand: in `blocks`, or only in `attachments[0].blocks`."""
    table_cells: frozenset[str] = frozenset({"raw_text", "rich_text", "raw_number"})
    """Cell types a table accepts; some clients saw `rich_text` alone, the docs list no `raw_number`."""
    table_first_row_is_header: bool = True
    """Whether people see the first row of a table as its header."""
    data_table_rows: int = 101
    """Most rows of a `data_table`, its header included; another library says 201."""
    card_in_modal: bool = False
    """`card` is listed for modals and reported not to render there."""
    table_on_home: bool = False
    """`table` is listed for Home and reported not to render there."""
    container_on_home: bool = False
    """`container` is listed for messages only; another validator lets it pass on Home."""
    container_takes_rich_text_and_input: bool = True
    """The docs list both as children; one library's author saw them refused."""
    auth_provider_surfaces: frozenset[str] = frozenset()
    """Surfaces on which an `auth_provider` block passes."""
    blocks_text_chars: int | None = 13_200
    """Characters of all blocks of a message before `msg_blocks_too_long`; None: never."""
    metadata_chars: int | None = 8_000
    """Characters of a message's metadata as JSON before `metadata_too_large`; None: never."""
    metadata_needs_app_token: bool = False
    """Whether a bot token is answered `metadata_must_be_sent_from_app`."""
    message_hash: bool = False
    """Whether messages carry a `hash` that `chat.update` compares."""
    client_msg_id_dedupes: bool = False
    """Whether a repeated `client_msg_id` returns the first message instead of a second one."""
    plain_text_decodes_entities: bool = True
    """Whether `&lt;` in plain text is shown as `<`."""
    plain_text_renders_emoji: bool = True
    """Whether `:name:` in plain text without `emoji` is shown as an emoji."""
    verbatim_is_an_escape: bool = False
    """Whether `verbatim: true` keeps `<!channel>` from pinging."""
    visible_to_user_ids_max: int | None = None
    """Most ids in a button's `visible_to_user_ids`; None: no limit."""
    old_clients_ignore_visible_to: bool = False
    """Whether a client shows a button to people its `visible_to_user_ids` leaves out."""
    expired_trigger_as_invalid_arguments: bool = False
    """Whether a dead `trigger_id` surfaces as `invalid_arguments` with the detail in its messages."""
    interactive_redelivery: bool = False
    """Whether a click, a form or a command that was not acknowledged is delivered again."""
    number_value_as_string: bool = True
    """Whether a submitted `number_input` has a string as its value, or a number."""
    include_disabled_groups: bool = False
    """What `include_disabled` means for user groups when it is not given."""
    stranger_team_is_installed_team: bool = True
    """Whether the top-level `team` of a foreign person's click is the app's workspace, or theirs."""
