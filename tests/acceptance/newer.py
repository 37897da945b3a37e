"""The shop's tools as a later release has them: the input of refunds means something else by now."""

from dataclasses import replace

from agent.tools import TOOLS as OLD

TOOLS = [replace(tool, version="2") if tool.name == "refund_payments" else tool for tool in OLD]

WITHOUT_REFUNDS = [tool for tool in OLD if tool.name != "refund_payments"]
