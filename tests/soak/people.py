"""The soak's people: Leo asks at a steady pace, leads decide what they see, and press again as people do."""

import asyncio
import itertools
import random
import time
from contextlib import suppress
from dataclasses import dataclass, field

from bot.blocks.target import Target
from bot.sandbox import FormIncompleteError, Message, Person
from tests.soak.place import LEADS, PAYMENTS_EACH, Place

SUPPORT, APPROVALS = "C0SUPPORT", "C0APPROVALS"
TOLD_SECONDS = 4.0
SETTLES_SECONDS = 8.0
PATIENCE_SECONDS = 180.0
REJECT, TWICE = 0.1, 0.2  # of the cards
MOST_OPEN = 40  # people do not ask for more while so much is undecided


@dataclass(frozen=True)
class Press:
    """One press, or a double one: when (seconds since 1970), how many were acknowledged, what was told."""

    approval_id: str
    person_id: str
    verdict: str
    began: float
    ended: float
    acked: int
    told: tuple[str, ...]


@dataclass
class People:
    """Who asks and who decides; `presses` is all that was pressed, `settled` the cards that are done with."""

    place: Place
    chance: random.Random
    presses: list[Press] = field(default_factory=list)
    asked: int = 0
    settled: int = 0
    _hands: dict[str, asyncio.Lock] = field(default_factory=dict)
    _deciding: set[asyncio.Task[None]] = field(default_factory=set)

    async def ask(self, runs: int, seconds: float) -> None:
        """Ask for so many refunds, spread over so many seconds, or more where that is too much at once."""
        leo, began = self.place.sandbox.person("U0LEO"), time.monotonic()
        sending = set()
        for number in range(runs):
            await asyncio.sleep(max(0.0, began + number * seconds / runs - time.monotonic()))
            if not await self._room():
                break  # nothing is decided any more: the verdict will say why
            numbers = range(number * PAYMENTS_EACH + 1, (number + 1) * PAYMENTS_EACH + 1)
            words = " and ".join(f"soak_{each}" for each in numbers)
            sending.add(asyncio.create_task(leo.mention(SUPPORT, f"please refund {words}")))
            self.asked += 1
        await asyncio.gather(*sending)

    async def _room(self) -> bool:
        """Wait until less is undecided; False if nothing has been decided for long."""
        settled, since = self.settled, time.monotonic()
        while self.asked - self.settled >= MOST_OPEN:
            await asyncio.sleep(0.1)
            if self.settled != settled:
                settled, since = self.settled, time.monotonic()
            if time.monotonic() - since > PATIENCE_SECONDS:
                return False
        return True

    async def decide(self) -> None:
        """Decide whatever comes up in the channel, until cancelled."""
        history, seen = self.place.sandbox.channel(APPROVALS).history, 0
        leads = itertools.cycle(LEADS)
        try:
            while True:
                while seen < len(history):
                    person = self.place.sandbox.person(next(leads))
                    task = asyncio.create_task(self._decide(person, history[seen]))
                    self._deciding.add(task)
                    task.add_done_callback(self._deciding.discard)
                    seen += 1
                with suppress(TimeoutError):
                    await self.place.sandbox.until(lambda: len(history) > seen, timeout=5.0)  # noqa: B023
        finally:
            for task in self._deciding:
                task.cancel()

    async def _decide(self, person: Person, card: Message) -> None:
        """Press until nothing can be pressed any more: a card that does not answer is pressed again."""
        await asyncio.sleep(self.chance.uniform(0.0, 1.0))
        reject, times = self.chance.random() < REJECT, 2 if self.chance.random() < TWICE else 1
        hand = self._hands.setdefault(person.id, asyncio.Lock())  # one thing at a time
        while "Approve" in person.buttons(card):
            async with hand:
                if "Approve" in person.buttons(card):
                    pressed = self._reject(person, card) if reject else self._approve(person, card, times)
                    self.presses.append(await pressed)
            with suppress(TimeoutError):
                await self.place.sandbox.until(
                    lambda: "Approve" not in person.buttons(card), timeout=SETTLES_SECONDS
                )
        self.settled += 1

    async def _approve(self, person: Person, card: Message, times: int) -> Press:
        target, before, began = _target(card), len(self._notes), time.time()
        sent = await person.clicks(card, "Approve", times=times)
        ended, acked = time.time(), sum(each.acked for each in sent)
        told = await self._told(person, before, acked)
        return Press(target.approval_id, person.id, "approve", began, ended, acked, told)

    async def _reject(self, person: Person, card: Message) -> Press:
        target, before, began = _target(card), len(self._notes), time.time()
        acked = 0
        with suppress(TimeoutError, LookupError, FormIncompleteError):
            await person.click(card, "Reject")
            await self.place.sandbox.until(
                lambda: (
                    person.views
                    and "Say why" not in person.read(person.view)
                    and "Reason" in person.read(person.view)
                ),
                timeout=TOLD_SECONDS,
            )
            acked = int((await person.fill({"Reason": "Not this one"}).submit()).acked)
        ended, told = time.time(), [person.read(view) for view in person.views if not view.body.get("submit")]
        while person.views:
            await person.close(all=True)
        told += await self._told(person, before, acked)
        return Press(target.approval_id, person.id, "reject", began, ended, acked, tuple(told))

    async def _told(self, person: Person, before: int, least: int) -> tuple[str, ...]:
        """What the person was told since; at least so many sentences if they come in time."""

        def found() -> list[str]:
            return [person.read(note) for note in self._notes[before:] if note.only_for == person.id]

        with suppress(TimeoutError):
            await self.place.sandbox.until(lambda: len(found()) >= max(least, 1), timeout=TOLD_SECONDS)
        return tuple(found())

    @property
    def _notes(self) -> list[Message]:
        return self.place.sandbox.workspace.ephemerals


def _target(card: Message) -> Target:
    """What the card's buttons carry."""
    for block in card.blocks:
        for element in block.get("elements", []):
            target = Target.read(element.get("value", ""))
            if target is not None:
                return target
    raise LookupError(f"no button of the card {card.ts} carries an approval")
