"""Run a command in a terminal of the editor with exactly the environment, folder and sandbox that Daiku decided on."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

NOT_STARTED = 127


def main() -> None:
    """Run `launcher.py FOLDER`: become the command that FOLDER/command.json describes, unless Daiku took that
    back meanwhile. The new name of the file says that it is started, `pid` which process it is."""
    folder = Path(sys.argv[1])
    taken = folder / "taken.json"
    try:
        (folder / "command.json").rename(taken)
        told = json.loads(taken.read_text(encoding="utf-8"))
        taken.unlink()
    except (OSError, ValueError):
        sys.exit(NOT_STARTED)
    stdin = os.open(folder / "stdin" if told["stdin"] else os.devnull, os.O_RDONLY)
    if not told["terminal"]:
        os.dup2(stdin, 0)
    os.close(stdin)
    (folder / "pid").write_text(str(os.getpid()), encoding="ascii")
    os.chdir(told["cwd"])
    argv = [str(os.getppid()) if part == told["parent"] else part for part in told["argv"]]
    os.execve(argv[0], argv, told["env"])  # noqa: S606  # the command, as the guard let it through


if __name__ == "__main__":
    main()
