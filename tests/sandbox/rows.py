"""What is known of Slack's limits and refusals, row by row, and which test holds each row.

A row is held by the table of block limits (LIMIT), by the table of surfaces (SURFACE), by switches of
`Unsettled`, by named tests, or it is nothing a server could enforce, for the reason given.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One documented fact; exactly one of the other fields says what holds it."""

    name: str
    limits: tuple[str, ...] = ()
    surfaces: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    not_enforced: str = ""


def limit(name: str, *rows: str) -> Row:
    return Row(name, limits=rows or (name,))


def surface(name: str, *blocks: str) -> Row:
    return Row(name, surfaces=blocks or (name,))


def switch(name: str, *switches: str) -> Row:
    return Row(name, switches=switches)


def tested(name: str, *tests: str) -> Row:
    return Row(name, tests=tests)


def no_rule(name: str, reason: str) -> Row:
    return Row(name, not_enforced=reason)


PRODUCT = "advice to the app, nothing Slack's server refuses"

TRIGGERS_AND_VIEWS = (
    tested("trigger lives 3 s", "test_views.test_a_trigger_lives_three_seconds"),
    tested("trigger works once", "test_views.test_a_trigger_works_once"),
    tested("trigger must be real", "test_views.test_a_made_up_trigger_is_invalid"),
    switch("expired trigger may surface as invalid_arguments", "expired_trigger_as_invalid_arguments"),
    tested(
        "submission has its own trigger",
        "test_payloads.test_a_submission_carries_values_hash_and_a_trigger_of_its_own",
    ),
    tested("response_url: 5 uses", "test_methods.test_a_response_url_works_five_times"),
    tested("response_url: 30 min", "test_methods.test_a_response_url_lives_thirty_minutes"),
    tested(
        "response_url: ephemeral by default",
        "test_methods.test_a_response_url_answers_one_person_unless_told_otherwise",
    ),
    tested(
        "response_url: replace and delete",
        "test_methods.test_a_response_url_replaces_and_deletes_its_source",
    ),
    tested("a response_url does not replace the ack", "test_delivery.test_a_late_answer_counts_as_none"),
    no_rule("final edits go through chat.update", PRODUCT),
    tested(
        "no response_url from a view",
        "test_payloads.test_a_click_on_home_has_a_view_and_neither_channel_nor_response_url",
    ),
    tested(
        "submission's response_urls are empty",
        "test_payloads.test_a_submission_carries_values_hash_and_a_trigger_of_its_own",
    ),
    tested("view stack of 3", "test_views.test_a_stack_holds_three_views"),
    tested("views.update hash", "test_views.test_an_update_with_an_old_hash_conflicts"),
    tested("views.publish hash", "test_views.test_a_publish_with_an_old_hash_conflicts"),
    switch("messages have no hash", "message_hash"),
    tested("typed input is kept", "test_views.test_typed_values_stay_while_block_id_and_action_id_stay"),
    tested(
        "initial_value is ignored while ids stay",
        "test_views.test_a_new_initial_value_is_ignored_while_the_ids_stay",
    ),
    limit("view title 24", "view_title"),
    limit("view submit 24", "view_submit"),
    limit("view close 24", "view_close"),
    limit("view callback_id 255", "view_callback_id"),
    limit("view private_metadata 3,000", "view_private_metadata"),
    limit("view 100 blocks", "blocks_per_view"),
    tested("view 250 kB", "test_views.test_a_view_has_at_most_250_kb"),
    limit("view external_id 255", "view_external_id"),
    tested("external_id unique in team", "test_views.test_an_external_id_is_unique_in_the_team"),
    limit("submit mandatory with inputs", "submit_with_input"),
    tested(
        "response_action errors, for input blocks only",
        "test_forms.test_errors_keep_the_view_open_beside_their_inputs",
        "test_forms.test_errors_for_anything_but_inputs_are_trouble",
    ),
    tested(
        "response_action update, push, clear",
        "test_forms.test_update_replaces_push_adds_and_clear_closes_all",
    ),
    tested("view_closed needs notify_on_close", "test_payloads.test_a_closed_view_is_told_only_on_request"),
    tested("is_cleared: the whole stack", "test_payloads.test_a_closed_view_is_told_only_on_request"),
)

MESSAGES_AND_TEXT = (
    limit("50 blocks per message", "blocks_per_message"),
    limit("100 blocks per modal and home", "blocks_per_view"),
    tested("text is cut at 40,000", "test_messages.test_a_posted_text_is_cut_at_40_000_characters"),
    no_rule("aim at 4,000 characters", PRODUCT),
    tested("update text 4,000", "test_messages.test_an_update_takes_4_000_characters_of_text"),
    switch("all blocks together", "blocks_text_chars"),
    tested("100 attachments", "test_messages.test_a_message_takes_100_attachments"),
    limit("block_id 255", "block_id"),
    limit("block_id unique", "block_id_unique"),
    no_rule("a new block_id when a message is updated", PRODUCT),
    limit("action_id 255", "action_id"),
    limit("action_id unique in its block", "action_id_unique"),
    limit("button text 75", "button_text", "button_text_is_plain"),
    limit("button value 2,000", "button_value"),
    limit("button url 3,000", "button_url"),
    limit("button style", "button_style"),
    limit("accessibility_label 75", "accessibility_label"),
    limit("section text 1 to 3,000", "section_text", "empty_section"),
    limit("section fields: 10 of 2,000", "section_fields", "section_field"),
    limit("actions 25", "actions_elements"),
    limit("context 10", "context_elements", "context_text"),
    limit("context_actions 5", "context_actions_elements", "feedback_text"),
    limit("header 150", "header_text", "header_is_plain"),
    limit("input label 2,000", "input_label"),
    limit("input hint 2,000", "input_hint"),
    limit("placeholder 150", "placeholder"),
    limit("option text 75", "option_text"),
    limit("option value 150", "option_value"),
    limit("100 options", "options"),
    limit("100 option groups", "option_groups", "option_group_label"),
    limit("overflow 5", "overflow_options"),
    limit("confirm title 100", "confirm_title"),
    limit("confirm text 300", "confirm_text"),
    limit("confirm and deny 30", "confirm_button"),
    limit("markdown 12,000 together", "markdown_total"),
    tested(
        "markdown's block_id is not kept", "test_messages.test_the_block_id_of_a_markdown_block_is_not_kept"
    ),
    limit("number_input bounds are strings", "number_strings"),
    limit("is_decimal_allowed must be said (the SDK defaults it)", "number_decimal_flag"),
    switch("a submitted number is a string", "number_value_as_string"),
    limit(
        "further limits of the element pages",
        *("option_description", "image_url", "alt_text", "image_title", "input_length"),
        *("video_title", "video_author"),
    ),
    surface("number_input in modals only", "number_input"),
    surface("email, url and file inputs in modals only", "email_text_input", "url_text_input", "file_input"),
    surface("rich_text_input in modal and home", "rich_text_input"),
    surface("plain_text_input anywhere", "input"),
    limit(
        "what the SDK's validators leave out",
        *("table_rows", "table_columns", "alert_text", "card_buttons", "section_field"),
    ),
    tested(
        "blocks.validate is not offered", "test_methods.test_a_method_the_sandbox_does_not_speak_is_unknown"
    ),
)

BLOCKS = (
    surface("actions"),
    surface("section"),
    surface("alert"),
    surface("card"),
    surface("carousel"),
    surface("container"),
    surface("table"),
    surface("data_table"),
    surface("markdown"),
    surface("task_card and plan", "task_card", "plan"),
    surface("context_actions"),
    surface("classic blocks everywhere", "header", "divider", "context", "input", "image", "rich_text"),
    switch("auth_provider", "auth_provider_surfaces"),
    limit("unknown blocks and properties", "unknown_block"),
    limit("actions hold 25 elements", "actions_elements"),
    limit("section has one accessory", "section_one_accessory"),
    limit("alert 200 and its levels", "alert_text", "alert_level"),
    limit("no buttons in alert, table, header, context", "no_buttons_inside"),
    switch("card in a modal", "card_in_modal"),
    limit("card has 3 buttons", "card_buttons"),
    limit("card 150, 150, 200", "card_title", "card_body"),
    limit("card needs content", "card_needs_content"),
    limit("carousel 1 to 10 cards", "carousel_cards"),
    limit("carousel has buttons through its cards", "carousel_buttons"),
    switch("container on home", "container_on_home"),
    limit("container 10 children", "container_children"),
    limit("container titles 150", "container_title"),
    limit("container width", "container_width"),
    limit("container divider or collapsible", "container_collapsible"),
    limit("container does not nest", "container_no_nesting"),
    limit("container has buttons through actions", "container_buttons"),
    limit("container's children", "container_child_types"),
    switch("container with rich_text and input", "container_takes_rich_text_and_input"),
    no_rule("Slack's sample of a container is a bulk review", "an example, not a rule"),
    switch("table on home", "table_on_home"),
    limit("table 100 rows", "table_rows"),
    limit("table 20 cells a row", "table_columns"),
    limit("table 20 column settings", "table_column_settings"),
    switch("table cell types", "table_cells"),
    limit("table cells are not empty", "table_empty_cell"),
    switch("table's first row is its header", "table_first_row_is_header"),
    tested("one table per message", "test_messages.test_a_second_table_is_refused_wherever_it_stands"),
    switch("table in blocks or attachments", "table_placement"),
    limit("data_table 2 to 101 rows", "data_table_rows"),
    switch("data_table rows, 101 or 201", "data_table_rows"),
    limit("data_table page 1 to 100", "data_table_page"),
    limit("data_table caption", "data_table_caption"),
    limit("data_table rectangular", "data_table_rectangular"),
    limit("task status", "task_status"),
    limit("task details are rich text", "task_rich_text"),
    tested("visible_to_user_ids hides", "test_people.test_a_button_for_some_is_hidden_from_the_others"),
    switch("visible_to_user_ids: how many", "visible_to_user_ids_max"),
    switch("visible_to_user_ids on old clients", "old_clients_ignore_visible_to"),
    limit("agent_prompt 4,000", "agent_prompt"),
    no_rule("agent_prompt never on an approval's button", PRODUCT),
    no_rule("the safe layout of a card", PRODUCT),
)

ESCAPING = (
    tested(
        "three control characters, three entities",
        "test_text.test_unescaped_input_pings_and_escaped_input_does_not",
    ),
    tested(
        "unescaped input pings wherever markup is parsed",
        "test_text.test_unescaped_input_pings_and_escaped_input_does_not",
    ),
    tested("a link can be spoofed", "test_text.test_a_link_shows_its_label_and_not_where_it_goes"),
    no_rule("* _ ~ ` and a leading > have no escape", "formatting only; the sandbox shows the characters"),
    tested("plain and raw text parse no markup", "test_text.test_places_without_markup_never_ping"),
    switch("emoji in plain text", "plain_text_renders_emoji"),
    switch("entities in plain text", "plain_text_decodes_entities"),
    switch("verbatim", "verbatim_is_an_escape"),
    tested("link_names", "test_text.test_link_names_turns_a_typed_group_into_a_mention"),
    no_rule("a markdown block never gets untrusted text", PRODUCT),
    no_rule("truncate before escaping, strip control characters", PRODUCT),
    tested("should_escape", "test_payloads.test_a_command_escapes_names_if_the_manifest_says_so"),
    no_rule("names and topics stay out of the system prompt", PRODUCT),
)
