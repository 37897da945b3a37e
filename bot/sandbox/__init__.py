"""A strict local Slack for acceptance tests and the demo: Web API, signed deliveries, people, a page.

It shares no code with the rest of the product, so that it can judge it.
"""

from bot.sandbox.delivery import Delivery, SignedRequest
from bot.sandbox.faults import Fault
from bot.sandbox.forms import FormIncompleteError
from bot.sandbox.people import Person
from bot.sandbox.ratelimit import RateLimits
from bot.sandbox.render import ShownTable
from bot.sandbox.sandbox import Sandbox
from bot.sandbox.server import ApiCall
from bot.sandbox.unsettled import Unsettled
from bot.sandbox.workspace import Channel, Message, User, UserGroup, View, Workspace

__all__ = [
    "ApiCall",
    "Channel",
    "Delivery",
    "Fault",
    "FormIncompleteError",
    "Message",
    "Person",
    "RateLimits",
    "Sandbox",
    "ShownTable",
    "SignedRequest",
    "Unsettled",
    "User",
    "UserGroup",
    "View",
    "Workspace",
]
