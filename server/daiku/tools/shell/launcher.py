"""Run a command in a terminal of the editor with Daiku's environment, folder, and sandbox."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

NOT_STARTED = 127


def main() -> None:
    """Run `launcher.py FOLDER`: become the command of FOLDER/command.json, unless Daiku withdrew it.

    Renaming that file marks the command as started; the file `pid` contains the process id.
    """
    folder = Path(sys.argv[1])
    claimed = folder / "taken.json"
    try:
        (folder / "command.json").rename(claimed)
        command = json.loads(claimed.read_text(encoding="utf-8"))
        claimed.unlink()
    except (OSError, ValueError):
        sys.exit(NOT_STARTED)
    stdin = os.open(folder / "stdin" if command["stdin"] else os.devnull, os.O_RDONLY)
    if not command["terminal"]:
        os.dup2(stdin, 0)
    os.close(stdin)
    (folder / "pid").write_text(str(os.getpid()), encoding="ascii")
    os.chdir(command["cwd"])
    argv = [str(os.getppid()) if part == command["parent"] else part for part in command["argv"]]
    os.execve(argv[0], argv, command["env"])  # noqa: S606  # the command, as the guard allowed it


if __name__ == "__main__":
    main()
