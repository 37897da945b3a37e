"""The page's addresses: what a browser reads, what its forms send, what it is sent as things change."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from bot.sandbox.page.document import NO_WELCOME, SCRIPTS, Page, failure
from bot.sandbox.page.doing import DEEDS, FAILURES, Deed, find_element, find_shown
from bot.sandbox.page.errors import NoLongerError, NotThereError, PageError
from bot.sandbox.page.origin import require_own_host, require_own_page
from bot.sandbox.page.place import Place, read_place
from bot.sandbox.page.seen import Seen
from bot.sandbox.page.sight import Sight
from bot.sandbox.page.windows import Asked
from bot.sandbox.slack import Slack
from bot.sandbox.world import DeedRefusedError, Section, Step, Welcome, World

Handler = Callable[[Request], Awaitable[Response]]
HERE = Path(__file__).parent
FILES = {"/page.css": "text/css"} | {f"/{name}.js": "text/javascript" for name in SCRIPTS}
HEARTBEAT = 15.0
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


@dataclass
class Site:
    """The page of one Slack; `suggestion` stands in the first channel, until `closing` is set.

    `world` is what surrounds the Slack, if anything does.
    """

    slack: Slack
    closing: asyncio.Event
    suggestion: str = ""
    seen: Seen = field(default_factory=Seen)
    world: World | None = None

    def routes(self) -> list[Route]:
        """Every address of the page."""
        return [
            Route("/", answered(self.show), methods=["GET"]),
            Route("/live", answered(self.follow), methods=["GET"]),
            *(Route(path, answered(self.do), methods=["POST"]) for path in DEEDS),
            Route("/world", answered(self.let_happen), methods=["POST"]),
            *(Route(path, send_file, methods=["GET"]) for path in FILES),
        ]

    async def show(self, request: Request) -> Response:
        """The page at the place that the address names."""
        require_own_host(request)
        place = self._place(request)
        notice = FAILURES.get(request.query_params.get("failed", ""), "")
        if self.world is not None:
            await self.world.look()
        self.seen.look(place)
        page = replace(self._page(place), asked=self._asked(request, place), notice=notice)
        return HTMLResponse(page.document(), headers=HEADERS)

    async def do(self, request: Request) -> Response:
        """What a form asks for; leads back to the page."""
        require_own_page(request)
        place = self._place(request)
        form = await _read_form(request)
        try:
            there = await DEEDS[request.url.path](Deed(self.slack, place, form))
        except LookupError as error:
            if type(error) is not LookupError:
                raise
            # the client's own refusals are sentences
            return _failed(str(error.args[0]), 409, place.address())
        return RedirectResponse(there, 303, headers=HEADERS)

    async def let_happen(self, request: Request) -> Response:
        """What a control of the world asks for; leads back to the page."""
        require_own_page(request)
        place = self._place(request)
        deed = next(iter((await _read_form(request)).get("deed", [])), "")
        known = {control.deed for section in self._around() or () for control in section.controls}
        if self.world is None or deed not in known:
            raise NotThereError(f"Nothing called {deed!r} can be made to happen here.")
        try:
            await self.world.do(deed)
        except DeedRefusedError as error:
            raise NoLongerError(str(error)) from error
        return RedirectResponse(place.address(), 303, headers=HEADERS)

    async def follow(self, request: Request) -> Response:
        """The regions of the page as server-sent events, each time one of them has changed."""
        require_own_host(request)
        place = self._place(request)
        return StreamingResponse(self._followed(place), media_type="text/event-stream", headers=HEADERS)

    async def _followed(self, place: Place) -> AsyncIterator[str]:
        with nullcontext() if self.world is None else self.world.watched():
            async for event in self._regions(place):
                yield event

    async def _regions(self, place: Place) -> AsyncIterator[str]:
        sent: dict[str, str] = {}

        def changed() -> dict[str, str] | None:
            now = self._regions_now(place)
            return (
                {} if self.closing.is_set() else {n: html for n, html in now.items() if sent.get(n) != html}
            )

        while not self.closing.is_set():
            try:
                new = await self.slack.workspace.changes.until(
                    lambda: changed() or self.closing.is_set(), HEARTBEAT
                )
            except TimeoutError:
                yield ": still here\n\n"
                continue
            if isinstance(new, dict):
                sent |= new
                version = self.slack.workspace.changes.count
                yield f"data: {json.dumps({'version': version, 'regions': new})}\n\n"

    def _regions_now(self, place: Place) -> dict[str, str]:
        try:
            # a place can cease to be: a message is deleted, a person leaves a channel
            fresh = self._read_place(dict(_pairs(place)), place.browser_zone)
        except PageError:
            return {}
        self.seen.look(fresh)
        return self._page(fresh).regions()

    def _page(self, place: Place) -> Page:
        there = (self._sight(place), self.seen, self.suggestion)
        return Page(*there, around=self._around(), step=self._step(), welcome=self._welcome())

    def _place(self, request: Request) -> Place:
        return self._read_place(request.query_params, request.cookies.get("zone", ""))

    def _read_place(self, fields: Mapping[str, str], zone: str) -> Place:
        return replace(read_place(self.slack.workspace, fields), browser_zone=zone)

    def _sight(self, place: Place) -> Sight:
        return Sight(place, self.slack.unsettled)

    def _around(self) -> Sequence[Section] | None:
        return None if self.world is None else self.world.sections()

    def _step(self) -> Step | None:
        return None if self.world is None else self.world.next_step()

    def _welcome(self) -> Welcome:
        return NO_WELCOME if self.world is None else self.world.welcome()

    def _asked(self, request: Request, place: Place) -> Asked | None:
        ask, where = request.query_params.get("ask"), request.query_params.get("where", "")
        if not ask:
            return None
        shown = find_shown(self.slack, place, where)
        placed, option = find_element(self.slack, place, shown, ask)
        return Asked(where, placed, option) if "confirm" in placed.element else None


def answered(handler: Handler) -> Handler:
    """The handler, with a document of one sentence for what it refuses."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except PageError as error:
            return _failed(str(error), error.status, "/")

    return answer


async def send_file(request: Request) -> Response:
    """The stylesheet or a script."""
    path = request.url.path
    content = (HERE / path.removeprefix("/")).read_text()
    return Response(content, media_type=FILES[path], headers={**HEADERS, "Cache-Control": "no-cache"})


async def _read_form(request: Request) -> dict[str, list[str]]:
    return parse_qs((await request.body()).decode(errors="replace"), keep_blank_values=True)


def _pairs(place: Place) -> list[tuple[str, str]]:
    pairs = [("as", place.user.id), ("in", place.inside)]
    return [*pairs, ("thread", place.thread)] if place.thread else pairs


def _failed(sentence: str, status: int, address: str) -> Response:
    return HTMLResponse(failure(sentence, address), status, headers=HEADERS)
