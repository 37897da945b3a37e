"""What a test needs of the machine, and which of that is not there."""

import os
import platform
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
OTHER_PLATFORM = "other platform:"


def lack(
    *,
    root: bool = False,
    programs: Sequence[str] = (),
    modules: Sequence[str] = (),
    machine: str | None = None,
    npm: tuple[str, str] | None = None,
) -> str | None:
    """The first thing that is missing on a Debian, as a clause that begins with "needs"; None: nothing is.

    `npm` is a folder with a package.json and the file in it that is looked for.
    """
    if platform.system() != "Linux":
        return f"{OTHER_PLATFORM} needs Linux"
    if machine not in (None, platform.machine()):
        return f"{OTHER_PLATFORM} needs Linux on {machine}"
    if root and os.geteuid() != 0:
        return "needs root"
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        return f"needs the program {missing[0]}"
    absent = [name for name in modules if find_spec(name) is None]
    if absent:
        return f"needs the package {absent[0]} of requirements-browser.lock"
    if npm is not None and not ROOT.joinpath(*npm).exists():
        return f"needs npm packages: npm ci --prefix {npm[0]}"
    return None
