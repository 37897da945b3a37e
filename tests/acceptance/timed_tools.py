"""A tool for VISTOBUENO_TOOLS whose input has a moment."""

from datetime import datetime

from pydantic import BaseModel, Field

from agent.tool import Risk, Tool, always_ask


class Plan(BaseModel):
    """Plan a maintenance window."""

    begins: datetime | None = Field(None, title="Begins")


TOOLS = [
    Tool(
        name="plan",
        input=Plan,
        risk=Risk.IRREVERSIBLE,
        effect="plan",
        policy=always_ask,
        execute=lambda input, ctx: {"planned": True},
    )
]
