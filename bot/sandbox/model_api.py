"""An HTTP server that speaks Anthropic's Messages API in front of any function that answers."""

from __future__ import annotations

import json
import uuid
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Protocol, cast

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

AnswerRequest = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""The JSON of a Messages request to the JSON of its response."""

# https://platform.claude.com/docs/en/api/errors
_ERROR_TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class Fault(Protocol):
    """What an exception must have to be answered as the provider's error; `retry_after` is optional."""

    status: int | None
    message: str


def create_model_api(
    answer: AnswerRequest, *, faults: tuple[type[Exception], ...], api_key: str | None = None
) -> Starlette:
    """An app with POST /v1/messages that answers with `answer`, and /v1/messages/count_tokens.

    Exceptions of the types in `faults` have the shape of Fault; they become the provider's error with
    their status (500 if None) and Retry-After in seconds. Any key is taken unless `api_key` names one.
    """

    async def create_message(request: Request) -> JSONResponse:
        asked = await _asked(request, api_key)
        if isinstance(asked, JSONResponse):
            return asked
        try:
            return JSONResponse(await answer(asked), headers=_request_id())
        except faults as error:
            fault = cast(Fault, error)
            return error_response(fault.status or 500, fault.message, getattr(error, "retry_after", None))

    async def count_tokens(request: Request) -> JSONResponse:
        asked = await _asked(request, api_key)
        if isinstance(asked, JSONResponse):
            return asked
        # about four letters each: no more than an estimate, as the provider's own
        return JSONResponse({"input_tokens": len(json.dumps(asked)) // 4}, headers=_request_id())

    async def not_found(request: Request, _: Exception) -> JSONResponse:
        return error_response(HTTPStatus.NOT_FOUND, f"Not found: {request.url.path}")

    return Starlette(
        routes=[
            Route("/v1/messages", create_message, methods=["POST"]),
            Route("/v1/messages/count_tokens", count_tokens, methods=["POST"]),
        ],
        exception_handlers={HTTPStatus.NOT_FOUND: not_found},
    )


def error_response(status: int, message: str, retry_after: float | None = None) -> JSONResponse:
    """The provider's error: `{"type": "error", "error": {"type", "message"}, "request_id"}`."""
    headers = _request_id()
    content = {
        "type": "error",
        "error": {"type": _error_type(status), "message": message},
        "request_id": headers["request-id"],
    }
    if retry_after is not None:
        headers["retry-after"] = f"{retry_after:g}"
    return JSONResponse(content, status, headers)


def _error_type(status: int) -> str:
    return _ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")


async def _asked(request: Request, api_key: str | None) -> dict[str, Any] | JSONResponse:
    """What is asked, or the provider's answer to a request that asks nothing."""
    refusal = _check_headers(request.headers, api_key)
    if refusal:
        return refusal
    body = _read_object(await request.body())
    if body is None or not body.get("messages"):
        return error_response(HTTPStatus.BAD_REQUEST, "messages: Field required")
    return body


def _check_headers(headers: Mapping[str, str], api_key: str | None) -> JSONResponse | None:
    # The SDK sends its key as a bearer token, other clients in x-api-key.
    given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
    if not given:
        return error_response(HTTPStatus.UNAUTHORIZED, "x-api-key header is required")
    if api_key is not None and given != api_key:
        return error_response(HTTPStatus.UNAUTHORIZED, "invalid x-api-key")
    if not headers.get("anthropic-version"):
        return error_response(HTTPStatus.BAD_REQUEST, "anthropic-version: header is required")
    return None


def _read_object(body: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(body)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _request_id() -> dict[str, str]:
    return {"request-id": f"req_{uuid.uuid4().hex[:24]}"}
