"""Send an email to customers, by way of the shop's outbox."""

from typing import Annotated, Any

from pydantic import BaseModel, Field, field_validator

from agent.tool import Context, Facts, Preview, Risk, Tool, ask_when
from agent.tools.shop.database import Shop, do_once, open_shop, shop_is_there
from agent.tools.shop.words import counted, repeated

Address = Annotated[str, Field(pattern=r"^[^@\s,;<>]+@[^@\s,;<>]+\.[^@\s,;<>]+$", max_length=254)]

AT_ONCE = 50


class SendEmail(BaseModel):
    """Send one email to one or more people. Every recipient gets a copy of their own."""

    to: list[Address] = Field(title="Recipients", min_length=1, max_length=500)
    subject: str = Field(title="Subject", min_length=1, max_length=150, pattern=r"^[^\r\n]*$")
    body: str = Field(title="Text", min_length=1, max_length=5000)

    @field_validator("to")
    @classmethod
    def each_once(cls, to: list[str]) -> list[str]:
        """Refuse a recipient who is there twice, in whatever case."""
        if again := repeated([address.lower() for address in to]):
            raise ValueError(f"give every recipient once; repeated: {again}")
        return to


def measure(input: SendEmail, ctx: Context) -> Facts:
    """Count the recipients."""
    return Facts(len(input.to), items=[address.lower() for address in input.to])


async def show(input: SendEmail, facts: Facts, ctx: Context) -> Preview:
    """Show the text, and which recipients are customers of the shop."""
    async with open_shop() as shop:
        known = await shop.execute(
            "SELECT lower(email) AS email, name FROM shop.customers WHERE lower(email) = ANY(%s)",
            [list(facts.items)],
        )
        names = {row["email"]: row["name"] for row in await known.fetchall()}
    strangers = facts.count - len(names)
    return Preview(
        title=f"Send an email to {counted(facts.count, 'person', 'people')}",
        impact=[
            f"Subject: {input.subject}",
            input.body,
            *([f"{counted(strangers, 'address', 'addresses')} of no customer"] if strangers else []),
        ],
        columns=["Recipient", "Customer"],
        sample=[[address, names.get(address, "(no customer)")] for address in facts.items],
    )


async def send(input: SendEmail, ctx: Context) -> dict[str, Any]:
    """Put one message for each recipient into the outbox, all or none."""

    async def put(shop: Shop) -> dict[str, Any]:
        for begin in range(0, len(input.to), AT_ONCE):
            await shop.execute(
                """INSERT INTO shop.outbox (key, recipient, subject, body)
                   SELECT %s, recipient, %s, %s FROM unnest(%s::text[]) AS recipient""",
                [ctx.idempotency_key, input.subject, input.body, input.to[begin : begin + AT_ONCE]],
            )
            ctx.progress(min(begin + AT_ONCE, len(input.to)), len(input.to))
        return {"sent": len(input.to)}

    return await do_once(ctx.idempotency_key, put)


send_email = Tool(
    name="send_email",
    input=SendEmail,
    risk=Risk.IRREVERSIBLE,
    effect="email",
    facts=measure,
    policy=ask_when(lambda i, f: f.count > 1),
    preview=show,
    execute=send,
    repeatable=True,
    timeout="15s",
    personal=frozenset({"Recipient", "Customer", "to"}),
    reasons=("Wrong tone", "Wrong recipients"),
    doing="Sending emails",
    check=shop_is_there,
)
