"""What each person has looked at, so that what is new elsewhere can be marked."""

from dataclasses import dataclass, field

from bot.sandbox.page.place import HOME, Place
from bot.sandbox.workspace import Message


@dataclass
class Seen:
    """The newest `ts` each person has had on the screen, per channel."""

    _newest: dict[tuple[str, str], str] = field(default_factory=dict)

    def look(self, place: Place) -> None:
        """The person at this place has its messages before them."""
        if place.channel is not None and place.channel.messages:
            self._newest[place.user.id, place.inside] = place.channel.last.ts

    def new_at(self, place: Place) -> list[Message]:
        """What others have written at this place since the person last looked."""
        if place.inside == HOME or place.channel is None:
            return []
        since = self._newest.get((place.user.id, place.inside), "")
        return [m for m in place.channel.messages if m.ts > since and m.user != place.user.id]

    def mentions_at(self, place: Place) -> int:
        """How many of the new messages are addressed to the person."""
        new = self.new_at(place)
        return sum(place.inside == "dm" or place.user.id in message.pings for message in new)
