"""The shop's tools for the matrix: refunds that may be repeated with their key, and refunds that may not."""

from dataclasses import replace

from agent.tools import TOOLS as SHOP

TOOLS = tuple(replace(tool, repeatable=False) if tool.name == "refund_payments" else tool for tool in SHOP)
