"""Run as a program: a command whose embedded database is on a small disk of its own, and what it leaves.

In namespaces of its own (unshare --mount --pid), so that nobody else sees the disk, and every process that
is left is one of the command's. Usage: alone.py FOLDER SIZE COMMAND…; on stdin comes, perhaps, a line
`SIGNAL WORDS`: send that signal to the command once a process has these words in its command line.
"""

import os
import subprocess
import sys
import time
from pathlib import Path


def main(folder: str, size: str, *command: str) -> int:
    """Run it; the last line on stdout is what is left."""
    os.makedirs(folder, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=711", "tmpfs", folder], check=True)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    asked = sys.stdin.readline().split()
    if asked:
        while not any(" ".join(asked[1:]) in line for line in processes()):
            time.sleep(0.01)
        child.send_signal(int(asked[0]))
    code = child.wait()
    print(f"left: {processes()}")
    return code if code >= 0 else 128 - code


def processes() -> list[str]:
    """The command lines of all other processes here; one that has ended has none."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended meanwhile
            found.append(line.replace(b"\0", b" ").decode(errors="replace").strip())
    return [line for line in found if line]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
