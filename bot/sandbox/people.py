"""What a person can do in Slack: write, press, choose, fill in, submit, close, look."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

from bot.sandbox.delivery import Delivery, SignedRequest, Target
from bot.sandbox.elements import HOLDS
from bot.sandbox.errors import Json, SlackError
from bot.sandbox.forms import entered, option_of, submitted
from bot.sandbox.methods.response_url import show
from bot.sandbox.modals import close_views, settle_submission
from bot.sandbox.payloads import command_fields, interaction, view_json
from bot.sandbox.posting import note_from_slackbot, remove
from bot.sandbox.presses import Where, find_element, locate, sign_press
from bot.sandbox.render import Reader, ShownTable
from bot.sandbox.slack import Slack
from bot.sandbox.talk import open_app, say_in_channel, say_in_dm
from bot.sandbox.workspace import Message, User, View

CLICKS = frozenset({"block_actions", "view_submission"})


@dataclass(frozen=True)
class Person:
    """One person at their Slack client, in one `window` of it if that has a name."""

    slack: Slack
    user: User
    window: str = ""

    @property
    def id(self) -> str:
        return self.user.id

    @property
    def views(self) -> list[View]:
        """The open modals, the root first; the last one is on top."""
        return self.slack.workspace.modals.get(self.id, [])

    @property
    def view(self) -> View:
        """The modal on top; LookupError if none is open."""
        if not self.views:
            raise LookupError(f"{self.user.real_name} has no modal open.")
        return self.views[-1]

    @property
    def home(self) -> View | None:
        """The published Home tab."""
        return self.slack.workspace.homes.get(self.id)

    @property
    def ephemerals(self) -> list[Message]:
        """The private notes on this person's screen, oldest first."""
        return [m for m in self.slack.workspace.ephemerals if m.only_for == self.id]

    def read(self, where: Where) -> str:
        """The text this person sees, one text object a line."""
        return self._reader.read(locate(self.slack, where))

    def buttons(self, where: Where) -> list[str]:
        """The labels of the buttons this person sees."""
        return self._reader.buttons(locate(self.slack, where), self.id)

    def tables(self, where: Where) -> list[ShownTable]:
        """The tables this person sees."""
        return self._reader.tables(locate(self.slack, where))

    def reload(self) -> None:
        """Reload the client: ephemeral messages are gone."""
        notes = self.slack.workspace.ephemerals
        notes[:] = [m for m in notes if m.only_for != self.id]
        self.slack.workspace.changes.announce()

    def dismiss(self, note: Message) -> None:
        """Take a private note off this person's screen; LookupError for anything else."""
        if note.only_for != self.id:
            raise LookupError(f"{self.user.real_name} can dismiss only their own private notes.")
        remove(self.slack, note)

    async def say(self, channel_id: str, text: str, thread_ts: str | None = None) -> Message:
        """Write in a channel; `<@U0BOT>` in it mentions the bot."""
        return await say_in_channel(self.slack, self.user, channel_id, text, thread_ts, None)

    async def mention(
        self, channel_id: str, text: str, thread_ts: str | None = None, to: Target = None
    ) -> Message:
        """Write to the bot in a channel; returns after the first attempt to deliver app_mention."""
        text = f"<@{self.slack.workspace.app.bot_user}> {text}"
        return await say_in_channel(self.slack, self.user, channel_id, text, thread_ts, to)

    async def dm(self, text: str, thread_ts: str | None = None, to: Target = None) -> Message:
        """Write to the bot in the DM; returns after the first attempt to deliver message.im."""
        return await say_in_dm(self.slack, self.user, text, thread_ts, to)

    async def open_home(self, tab: str = "home", to: Target = None) -> Delivery | None:
        """Open the app's Home (or "messages") tab."""
        return await open_app(self.slack, self.user, tab, to)

    def prepare_click(
        self, where: Where, name: str, *, index: int | None = None, action_ts: str | None = None
    ) -> SignedRequest:
        """The signed request of a click, not sent; the element is found by label, action_id or block_id."""
        shown = locate(self.slack, where)
        placed = find_element(self.slack, self.user, shown, name, index)
        return sign_press(self.slack, self.user, shown, placed, action_ts=action_ts, window=self.window)

    async def click(
        self, where: Where, name: str, *, index: int | None = None, to: Target = None
    ) -> Delivery:
        """Press a button; a confirmation dialog is confirmed."""
        return await self._deliver(self.prepare_click(where, name, index=index), to)

    async def clicks(
        self,
        where: Where,
        name: str,
        times: int,
        *,
        same_action_ts: bool = False,
        to: Target | Sequence[int | str] = None,
    ) -> list[Delivery]:
        """Press a button `times` times at once, each a request of its own; `to` may name several URLs."""
        action_ts = self.slack.workspace.new_ts() if same_action_ts else None
        requests = [self.prepare_click(where, name, action_ts=action_ts) for _ in range(times)]
        return list(await asyncio.gather(*map(self._deliver, requests, spread(to, times))))

    async def choose(
        self, where: Where, name: str, option: str, *, index: int | None = None, to: Target = None
    ) -> Delivery:
        """Choose an option of a select, radio group or overflow menu outside a form, by label or value."""
        shown = locate(self.slack, where)
        placed = find_element(self.slack, self.user, shown, name, index)
        if placed.element["type"] == "overflow":
            state: Json = {"selected_option": option_of(placed.element, option)}
        else:
            state = entered(placed.element, option)
            shown.typed[placed.key] = state
        request = sign_press(self.slack, self.user, shown, placed, chosen=state, window=self.window)
        return await self._deliver(request, to)

    async def slash(
        self, command: str, text: str = "", channel: str = "C0SUPPORT", to: Target = None
    ) -> Delivery:
        """Give a slash command in a channel (or DM) this person is in."""
        workspace = self.slack.workspace
        if command not in workspace.app.commands:
            raise LookupError(f"{command} is not a valid command.")
        place = workspace.channels[channel]
        if self.id not in place.members or (place.im_with and workspace.app.messages_tab_read_only):
            raise LookupError(f"{self.user.real_name} cannot give commands in {channel}.")
        fields = command_fields(
            command,
            self._escaped(text),
            self.user,
            place,
            workspace,
            response_url=self.slack.response_urls.issue(self.id, channel),
            trigger_id=self.slack.triggers.issue(self.id, window=self.window),
        )
        delivery = await self._deliver(self.slack.deliverer.sign_command(fields), to)
        self._show_answer(command, channel, delivery)
        return delivery

    def fill(self, values: Mapping[str, Any]) -> "Person":
        """Type into the modal on top: label, block_id or action_id → value. LookupError for others."""
        view = self.view
        for name, value in values.items():
            placed = find_element(self.slack, self.user, view, name, None)
            if placed.element["type"] not in HOLDS:
                raise LookupError(f"{name!r} is not an input.")
            view.typed[placed.key] = entered(placed.element, value)
        return self

    def prepare_submit(self) -> SignedRequest:
        """The signed view_submission of the modal on top, not sent.

        Raises FormIncompleteError if Slack's client would refuse to send it.
        """
        view = self.view
        if "submit" not in view.body:
            raise LookupError("This modal has no submit button.")
        typed = submitted(view, self.slack.unsettled)
        trigger_id = self.slack.triggers.issue(self.id, view.id, self.window)
        payload = self._of_view("view_submission", view, trigger_id)
        payload["view"] = view_json(view, self.slack.workspace, typed)
        payload["response_urls"] = []
        return self.slack.deliverer.sign_interaction(payload)

    async def submit(self, to: Target = None) -> Delivery:
        """Submit the modal on top and let Slack follow the app's answer."""
        view, request = self.view, self.prepare_submit()
        view.errors, view.banner = {}, None
        delivery = await self._deliver(request, to)
        settle_submission(self.slack, view, delivery)
        return delivery

    async def close(self, *, all: bool = False, to: Target = None) -> Delivery | None:
        """Close the modal on top, or the whole stack; None if the app did not ask to be told."""
        view = self.view
        whole = all or bool(view.body.get("clear_on_close"))
        close_views(self.slack, list(self.views) if whole else [view])
        if not view.body.get("notify_on_close"):
            return None
        payload = self._of_view("view_closed", view, "")
        del payload["trigger_id"]
        closed = view_json(view, self.slack.workspace)
        payload["view"] = {**closed, "state": {"values": {}}}
        payload["is_cleared"] = whole
        return await self._deliver(self.slack.deliverer.sign_interaction(payload), to)

    @property
    def _reader(self) -> Reader:
        return Reader(self.slack.workspace, self.slack.unsettled)

    async def _deliver(self, request: SignedRequest, to: Target) -> Delivery:
        deliverer, again = self.slack.deliverer, self.slack.unsettled.interactive_redelivery
        delivery = await deliverer.deliver(request, to, again=again)
        if self.slack.repeats_clicks and request.kind in CLICKS:
            deliverer.run(deliverer.send(request, to))
        return delivery

    def _of_view(self, kind: str, view: View, trigger_id: str) -> Json:
        payload = interaction(kind, self.user, self.slack.workspace, self.slack.unsettled, trigger_id)
        # a view belongs to the acting person's own workspace
        payload["team"] = {"id": self.user.team_id, "domain": self.slack.workspace.domain}
        return payload

    def _escaped(self, text: str) -> str:
        """With `should_escape`, names of people and channels become ids (manifest, slash_commands)."""
        if not self.slack.workspace.app.should_escape:
            return text
        for user in self.slack.workspace.users.values():
            text = text.replace(f"@{user.name}", f"<@{user.id}|{user.name}>")
        for channel in self.slack.workspace.channels.values():
            if channel.im_with is None:
                text = text.replace(f"#{channel.name}", f"<#{channel.id}|{channel.name}>")
        return text

    def _show_answer(self, command: str, channel: str, delivery: Delivery) -> None:
        if not delivery.acked:
            reason = "operation_timeout" if str(delivery.failure).endswith("timeout") else "dispatch_failed"
            note_from_slackbot(self.slack, channel, self.id, f'{command} failed with the error "{reason}"')
            return
        if not delivery.body.strip():
            return
        is_json = "json" in delivery.headers.get("content-type", "")
        answer: Json = json.loads(delivery.body) if is_json else {"text": delivery.body}
        if answer:
            try:
                show(self.slack, self.id, channel, answer)
            except SlackError as error:
                note_from_slackbot(
                    self.slack, channel, self.id, f'{command} failed with the error "{error.code}"'
                )


def spread(to: Target | Sequence[int | str], times: int) -> list[Target]:
    """One target for each of `times` requests; several targets take turns."""
    if to is None or isinstance(to, int | str):
        return [to] * times
    return list(islice(cycle(to), times))
