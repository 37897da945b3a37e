"""The rows on methods, scopes and rate limits, and all rows together."""

from tests.sandbox.rows import (
    BLOCKS,
    ESCAPING,
    MESSAGES_AND_TEXT,
    TRIGGERS_AND_VIEWS,
    no_rule,
    switch,
    tested,
)

CHANNEL_KINDS = "test_messages.test_a_channel_the_bot_is_not_in_refuses_by_its_kind"
ARCHIVED = "test_messages.test_an_archived_channel_refuses_posts_and_freezes_messages"
GONE = "test_messages.test_a_message_that_is_gone_is_not_found"
NOT_OURS = "test_messages.test_only_the_bots_own_messages_can_be_changed"
TIERS = "test_methods.test_a_method_is_limited_by_its_tier"
SCOPE = "test_methods.test_a_method_needs_its_scope"
NO_TEXT = "test_messages.test_a_message_needs_text_blocks_or_attachments"
EPHEMERAL = "test_messages.test_an_ephemeral_reaches_members_only_and_cannot_be_updated"

METHODS = (
    tested(
        "chat.postMessage: 1 a second a channel, several hundred a minute",
        "test_methods.test_posts_are_limited_to_one_a_second_in_each_channel",
        "test_methods.test_posts_are_limited_in_the_whole_workspace",
    ),
    tested("chat.postMessage: channel_not_found, not_in_channel", CHANNEL_KINDS),
    tested("chat.postMessage: is_archived", ARCHIVED),
    tested(
        "chat.postMessage: restricted_action",
        "test_messages.test_a_restricted_channel_answers_with_its_restriction",
    ),
    tested(
        "chat.postMessage: messages_tab_disabled",
        "test_messages.test_a_disabled_messages_tab_refuses_direct_messages",
    ),
    tested("chat.postMessage: no_text", NO_TEXT),
    tested(
        "chat.postMessage: invalid_blocks",
        "test_limits.test_what_passes_the_limit_is_refused_with_the_code_and_the_place",
    ),
    tested(
        "chat.postMessage: invalid_blocks_format",
        "test_messages.test_blocks_that_are_no_list_of_blocks_have_an_invalid_format",
    ),
    switch("chat.postMessage: msg_blocks_too_long", "blocks_text_chars"),
    switch("chat.postMessage: metadata_too_large", "metadata_chars"),
    tested("chat.update: tier 3 and scope", TIERS, SCOPE),
    tested("chat.update: message_not_found", GONE),
    tested("chat.update: cant_update_message", NOT_OURS),
    tested("chat.update: edit_window_closed", "test_messages.test_a_closed_edit_window_refuses_the_update"),
    tested("chat.update: is_inactive", ARCHIVED, "test_messages.test_a_deleted_channel_freezes_messages"),
    tested("chat.update: msg_too_long", "test_messages.test_an_update_takes_4_000_characters_of_text"),
    no_rule("chat.update: block_mismatch", "only for rich text that people typed, which a bot cannot update"),
    no_rule("chat.update: streaming_state_conflict", "the sandbox offers no streaming of messages"),
    tested("chat.postEphemeral: tier 4 and scope", TIERS, SCOPE),
    tested("chat.postEphemeral: user_not_in_channel", EPHEMERAL),
    tested("chat.postEphemeral: not_in_channel, is_archived", CHANNEL_KINDS, ARCHIVED),
    tested("chat.delete: tier 3 and scope", TIERS, SCOPE),
    tested("chat.delete: message_not_found, cant_delete_message", GONE, NOT_OURS),
    no_rule(
        "chat.scheduleMessage",
        "not offered: an approval's time is the database's, nothing is scheduled in Slack",
    ),
    tested("chat.getPermalink: limit", TIERS),
    tested("chat.getPermalink: message_not_found", GONE),
    tested("views.*: tier 4 and no scope", TIERS, "test_methods.test_some_methods_need_no_scope"),
    tested("views.publish: not_enabled", "test_views.test_home_needs_its_tab"),
    tested("conversations.open: tier 3 and scope", TIERS, SCOPE),
    tested(
        "conversations.open: user_not_found, user_disabled, user_not_visible",
        "test_methods.test_a_dm_opens_with_visible_active_people_only",
    ),
    tested("users.info: tier 4 and scope", TIERS, SCOPE),
    tested(
        "users.info: errors, email only with its scope",
        "test_methods.test_a_user_is_shown_with_what_a_right_depends_on",
    ),
    tested("users.lookupByEmail: tier 3 and scope", TIERS, SCOPE),
    tested(
        "users.lookupByEmail: users_not_found",
        "test_methods.test_an_email_is_looked_up_under_its_own_scope",
    ),
    tested("usergroups.*: tier 2 and scope", TIERS, SCOPE),
    tested("usergroups.*: no_such_subteam", "test_methods.test_user_groups_list_their_members"),
    tested("usergroups.*: plan_upgrade_required", "test_methods.test_a_free_plan_has_no_user_groups"),
    tested("conversations.info, members: tiers and scopes", TIERS, SCOPE),
    tested(
        "conversations.info, members: channel_not_found",
        "test_methods.test_a_conversation_tells_what_it_is",
    ),
    tested(
        "apps.connections.open: tokens and forbidden_team",
        "test_methods.test_a_connection_is_refused_by_token_and_where_the_app_is_not_in_socket_mode",
    ),
    tested(
        "Socket Mode: hello counts connections",
        "test_sockets.test_a_connection_begins_with_a_hello_that_counts_the_app_s_connections",
    ),
    tested("Socket Mode: a URL serves once", "test_sockets.test_a_url_is_good_for_one_connection"),
    tested("Socket Mode: ten connections", "test_sockets.test_the_eleventh_connection_is_one_too_many"),
    tested(
        "Socket Mode: events take no payload",
        "test_sockets.test_an_event_takes_no_payload_and_says_which_attempt_it_is",
    ),
    tested(
        "Socket Mode: commands take one",
        "test_sockets.test_a_command_is_answered_with_a_payload_and_never_comes_again",
    ),
    tested(
        "Socket Mode: one connection per envelope",
        "test_sockets.test_each_envelope_goes_to_one_connection_in_turn",
    ),
    tested("429 carries Retry-After", TIERS),
    tested(
        "a retry after a lost answer posts twice",
        "test_faults.test_a_client_that_retries_after_a_lost_answer_posts_twice",
    ),
    switch("client_msg_id", "client_msg_id_dedupes"),
    tested("ephemerals cannot be updated", EPHEMERAL),
    tested(
        "ephemerals need an active person and die on reload",
        "test_messages.test_an_ephemeral_is_lost_on_absent_people_and_on_reload",
    ),
    tested("only the poster updates; an admin's deletion is silent", NOT_OURS, GONE),
    tested("a removed bot sees not_in_channel or channel_not_found", CHANNEL_KINDS),
    tested("lifecycle events", "test_delivery.test_the_app_hears_what_happens_to_its_surroundings"),
    tested(
        "chat:write.public opens public channels only",
        "test_messages.test_chat_write_public_opens_public_channels_only",
    ),
    no_rule(
        "limits outside the Marketplace", "they are on history methods, which the sandbox does not offer"
    ),
    tested("metadata: format and schema", "test_messages.test_metadata_has_a_type_and_a_payload"),
    switch("metadata: size", "metadata_chars"),
    switch("metadata: app token", "metadata_needs_app_token"),
    no_rule("metadata is readable by other apps", "there are no other apps in the sandbox"),
)

BEYOND = (
    switch("are clicks delivered again", "interactive_redelivery"),
    switch("disabled groups by default", "include_disabled_groups"),
    switch("top-level team of a stranger's click", "stranger_team_is_installed_team"),
)
"""Switches for open points of delivery and directory, which no limit is about."""

ROWS = (*TRIGGERS_AND_VIEWS, *MESSAGES_AND_TEXT, *BLOCKS, *ESCAPING, *METHODS, *BEYOND)
