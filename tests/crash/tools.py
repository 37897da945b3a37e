"""The shop's tools with refunds that may not be repeated, as SHOP_PROVIDER_HONOURS_KEYS=no makes them.

The shop's own read the variable when they are loaded, which is before a process of the matrix has it.
"""

from dataclasses import replace

from agent.tools import TOOLS as SHOP

TOOLS = tuple(replace(tool, repeatable=False) if tool.name == "refund_payments" else tool for tool in SHOP)
