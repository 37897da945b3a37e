"""The tools of this installation, loaded by name."""

import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType

from agent.tool import Tool


class ToolsError(Exception):
    """The tools cannot be loaded; the text says what to change, in one sentence."""


def load_tools(spec: str) -> Mapping[str, Tool]:
    """Import the sequence of tools that `package.module:NAME` names, the working folder included; by name."""
    found = _named(spec)
    if isinstance(found, str) or not isinstance(found, Sequence):
        raise ToolsError(f"VISTOBUENO_TOOLS: {spec} must be a list of tools, not {type(found).__name__}.")
    for entry in found:
        if not isinstance(entry, Tool):
            raise ToolsError(f"VISTOBUENO_TOOLS: {spec} may hold only Tool(…), not {entry!r}.")
    return by_name(found, spec)


def by_name(tools: Sequence[Tool], spec: str = "the list") -> Mapping[str, Tool]:
    """Key tools by their names; ToolsError for a name that is there twice or an unknown follow-up."""
    for name, times in Counter(tool.name for tool in tools).items():
        if times > 1:
            raise ToolsError(
                f"VISTOBUENO_TOOLS: {spec} has {times} tools named {name}; give each its own name."
            )
    named = {tool.name: tool for tool in tools}
    for tool in tools:
        if tool.followup is not None and tool.followup not in named:
            raise ToolsError(
                f"VISTOBUENO_TOOLS: {tool.name} names the follow-up {tool.followup}, which is no tool."
            )
    return MappingProxyType(named)


def _named(spec: str) -> object:
    module_name, colon, name = spec.partition(":")
    if not (module_name and colon and name):
        raise ToolsError(f"VISTOBUENO_TOOLS must be package.module:NAME, not {spec!r}.")
    # an installed command does not look in the folder it is started in, where the user's file is
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = import_module(module_name)
    except (Exception, SystemExit) as error:
        # the file is user code: whatever it raises, the person needs one sentence
        raise ToolsError(
            f"VISTOBUENO_TOOLS: {module_name} could not be imported ({type(error).__name__}: {error}); "
            "correct that file, or its name."
        ) from error
    if not hasattr(module, name):
        raise ToolsError(f"VISTOBUENO_TOOLS: {module_name} has no {name}; name the list of tools there.")
    return getattr(module, name)
