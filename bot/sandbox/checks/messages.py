"""What a message may carry: text, blocks, attachments, metadata."""

import json
from dataclasses import dataclass
from typing import Any

from bot.sandbox import limits
from bot.sandbox.checks.blocks import check_blocks
from bot.sandbox.checks.checker import Checker
from bot.sandbox.errors import Json, SlackError
from bot.sandbox.unsettled import Unsettled


@dataclass(frozen=True)
class Content:
    """The checked content of a message; None where the call did not say."""

    text: str | None
    blocks: list[Json] | None
    attachments: list[Json] | None
    metadata: Json | None


def check_content(args: Json, unsettled: Unsettled, *, text_limit: int | None = None) -> Content:
    """The content of a posting or updating call, or the SlackError Slack would answer.

    `text_limit` is the length from which `msg_too_long` is answered; without it the text is cut
    at 40,000 characters.
    """
    text = _text(args)
    if text_limit is not None and text is not None and len(text) > text_limit:
        raise SlackError("msg_too_long")
    check = Checker("message", unsettled)
    blocks = _blocks(check, args.get("blocks"))
    attachments = _attachments(unsettled, args.get("attachments"), check)
    if check.tables > 1:
        raise SlackError("invalid_attachments", ["only_one_table_allowed"])
    most = unsettled.blocks_text_chars
    if most is not None and check.text_chars + check.markdown_chars > most:
        raise SlackError("msg_blocks_too_long")
    metadata = _metadata(args.get("metadata"), unsettled)
    return Content(None if text is None else text[: limits.POST_TEXT_KEPT], blocks, attachments, metadata)


def _text(args: Json) -> str | None:
    markdown = args.get("markdown_text")
    if markdown is not None:
        if args.get("blocks") or args.get("text"):
            raise SlackError("markdown_text_conflict")
        if len(str(markdown)) > limits.MARKDOWN_TEXT:
            raise SlackError("msg_too_long")
        return str(markdown)
    return None if args.get("text") is None else str(args["text"])


def _blocks(check: Checker, blocks: Any) -> list[Json] | None:
    if blocks is None:
        return None
    if not isinstance(blocks, list) or not all(isinstance(b, dict) and "type" in b for b in blocks):
        raise SlackError("invalid_blocks_format")
    check_blocks(check, blocks, "/blocks", limits.MESSAGE_BLOCKS)
    if check.unsettled.table_placement == "attachments" and check.tables:
        check.fail("/blocks", "unsupported type: table")
    if check.problems:
        raise SlackError("invalid_blocks", [str(p) for p in check.problems])
    return blocks


def _attachments(unsettled: Unsettled, attachments: Any, whole: Checker) -> list[Json] | None:
    if attachments is None:
        return None
    if not isinstance(attachments, list) or not all(isinstance(a, dict) for a in attachments):
        raise SlackError("invalid_attachments")
    if len(attachments) > limits.ATTACHMENTS:
        raise SlackError("too_many_attachments")
    for i, attachment in enumerate(attachments):
        check = Checker("message", unsettled)
        check.markdown_chars = whole.markdown_chars
        inner = attachment.get("blocks", [])
        if not isinstance(inner, list):
            raise SlackError("invalid_attachments")
        check_blocks(check, inner, f"/attachments/{i}/blocks", limits.MESSAGE_BLOCKS)
        if check.tables and (unsettled.table_placement == "blocks" or i > 0):
            check.fail(f"/attachments/{i}/blocks", "unsupported type: table")
        if check.problems:
            raise SlackError("invalid_attachments", [str(p) for p in check.problems])
        whole.tables += check.tables
        whole.text_chars += check.text_chars
        whole.markdown_chars = check.markdown_chars
    return attachments


def _metadata(metadata: Any, unsettled: Unsettled) -> Json | None:
    if metadata is None:
        return None
    if not isinstance(metadata, dict):
        raise SlackError("invalid_metadata_format")
    if unsettled.metadata_needs_app_token:
        raise SlackError("metadata_must_be_sent_from_app")
    complete = isinstance(metadata.get("event_type"), str) and isinstance(metadata.get("event_payload"), dict)
    if metadata and not complete:
        raise SlackError("invalid_metadata_schema")
    if unsettled.metadata_chars is not None and len(json.dumps(metadata)) > unsettled.metadata_chars:
        raise SlackError("metadata_too_large")
    return metadata
