"""The `vistobueno` command as it is installed: loads what it is made of, and runs it."""

import signal
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; exit 1 with one line on stderr for what a person can mend, 2 for wrong usage."""
    asked = signal.getsignal(signal.SIGINT)
    if asked is signal.default_int_handler:
        # loading takes a second, and Ctrl-C in it would print where; begun in the background it is ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from bot.commands import root

    signal.signal(signal.SIGINT, asked)
    root.run()


if __name__ == "__main__":
    main()
