"""What every part of the agent works with, wired once at the start and handed down."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.model import Model
from agent.policy import Policy
from agent.progress import Progress, Untold
from agent.tool import Risk, Tool
from agent.usercode import UserCode
from store.engine import Database


@dataclass(frozen=True)
class House:
    """The database, the tools, the policy, the place where user code runs, and in a worker the model and who
    shows how far its runs are."""

    db: Database
    tools: Mapping[str, Tool]
    policy: Policy
    user_code: UserCode
    model: Model | None = None
    progress: Progress = field(default_factory=Untold)

    def only_reads(self, tool: str) -> bool:
        """Whether there is a tool of this name, and it changes nothing."""
        return tool in self.tools and self.tools[tool].risk is Risk.READ_ONLY
