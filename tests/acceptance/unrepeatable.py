"""The shop's tools, of which the refunds promise nothing about a repeat."""

from dataclasses import replace

from agent.tools import TOOLS as SHOP

TOOLS = [replace(tool, repeatable=False) if tool.name == "refund_payments" else tool for tool in SHOP]
NAME = "tests.acceptance.unrepeatable:TOOLS"
