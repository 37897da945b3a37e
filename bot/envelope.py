"""The outside of Slack's requests: the parts that Bolt takes for granted, checked before it sees them.

Bolt reads ids, teams and the kind of a request without a look at their types, and what it finds to be of
another kind is an exception for nobody to answer (slack_bolt/request/internals.py and payload_utils.py). Only
what it reads is checked here; what a listener needs of the rest, bot/payloads.py asks for.
"""

from __future__ import annotations

import json
from typing import Annotated, Any
from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator


class UnreadableRequest(Exception):
    """Neither a form nor an object of JSON, or with parts that are not of Slack's kinds."""


# https://docs.slack.dev/reference/objects: ids are letters and digits, times are seconds with a fraction
_Id = Annotated[str, Field(pattern=r"^[!-~]*$", max_length=255)]
_Time = Annotated[str, Field(pattern=r"^[0-9]{1,20}\.[0-9]{1,20}$")]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True)


class _Named(_Part):
    id: _Id | None = None
    team_id: _Id | None = None
    enterprise_id: _Id | None = None


class _About(_Part):
    """Who and where: at the top of a request, in an event, in the message or thread of an event."""

    user: _Id | _Named | None = None
    user_id: _Id | None = None
    channel: _Id | _Named | None = None
    channel_id: _Id | None = None
    team: _Id | _Named | None = None
    team_id: _Id | None = None
    enterprise: _Id | _Named | None = None
    thread_ts: _Time | None = None
    item: _About | str | None = None
    assistant_thread: _About | None = None
    message: _Message | None = None
    previous_message: _Message | None = None


class _Message(_About):
    ts: _Time | None = None


class _Event(_About):
    type: _Id
    ts: _Time | None = None


class _Action(_Part):
    type: _Id | None = None
    action_id: str
    block_id: str | None = None


class _View(_Named):
    type: _Id
    callback_id: str | None = None
    app_installed_team_id: _Id | None = None


class _Container(_Part):
    channel_id: _Id | None = None
    message_ts: _Time | None = None


class _Response(_Part):
    response_url: str | None = None


class _Request(_About):
    """The whole body."""

    type: _Id | None = None
    event_id: _Id | None = None
    authorizations: list[_About] | None = None
    event: _Event | None = None
    actions: list[_Action] | None = Field(None, min_length=1)
    container: _Container | None = None
    view: _View | None = None
    response_url: str | None = None
    response_urls: list[_Response] = []
    function_data: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _has_what_its_type_names(self) -> _Request:
        part = _PARTS.get(self.type or "")
        if part is not None and getattr(self, part) is None:
            raise ValueError(f"a {self.type} without {part}")
        return self


_PARTS = {
    "event_callback": "event",
    "block_actions": "actions",
    "view_submission": "view",
    "view_closed": "view",
}


def read_body(body: bytes, content_type: str) -> dict[str, Any]:
    """The body of a signed request, for Bolt; UnreadableRequest if Slack would not send it.

    JSON for events, a form for commands, JSON in the field `payload` of a form for clicks and windows.
    """
    try:
        text = body.decode()
        is_json = content_type.startswith("application/json") or text.startswith("{")
        read = json.loads(text) if is_json else _read_form(text)
    except (ValueError, RecursionError) as error:  # no UTF-8, no JSON, or too deep
        raise UnreadableRequest(str(error)) from error
    return check_payload(read)


def check_payload(payload: Any) -> dict[str, Any]:
    """What Slack sent, read from its JSON, for Bolt; UnreadableRequest if Slack would not send it."""
    if not isinstance(payload, dict) or not payload:
        raise UnreadableRequest("neither a form nor an object of JSON")
    try:
        _Request.model_validate(payload)
    except (ValueError, RecursionError) as error:  # not of Slack's kinds, or too deep
        raise UnreadableRequest(_reason(error)) from error
    return payload


def _read_form(text: str) -> Any:
    fields = dict(parse_qsl(text, keep_blank_values=True))
    return json.loads(fields["payload"]) if "payload" in fields else fields


def _reason(error: ValueError | RecursionError) -> str:
    if isinstance(error, ValidationError):  # its text holds the values
        first = error.errors(include_input=False, include_url=False)[0]
        return f"{'.'.join(map(str, first['loc'])) or 'body'}: {first['msg']}"
    return str(error)
