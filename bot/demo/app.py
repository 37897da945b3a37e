"""`python -m bot.demo.app`: the app of a demo, which is `vistobueno dev` that ends with its demo."""

import os
import sys
import threading
from typing import NoReturn

from bot import cli


def main() -> NoReturn:
    """Run it for as long as the process that started it holds the other end of the standard input."""
    threading.Thread(target=_end_with_the_demo, name="the demo's end", daemon=True).start()
    sys.argv = ["vistobueno", "dev"]
    cli.main()


def _end_with_the_demo() -> None:
    # on every system the end of a killed process closes its pipes, and nothing else tells its children
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
