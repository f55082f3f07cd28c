"""The `daiku` command, also as `python -m daiku`."""

from __future__ import annotations

import gc
import os
import sys

GC_THRESHOLD = 20_000
"""Allocations before a garbage collection. Python's default of 700 causes about 170 collections while a command loads,
an eighth of its start-up time, and they free nothing."""


def main() -> None:
    """Run the command line and leave with its exit code.

    An editor waits for `daiku lsp` to answer: that path loads the language server's small front and
    nothing of the command line. Hence the imports inside.
    """
    gc.set_threshold(GC_THRESHOLD)
    _fill_closed()
    args = sys.argv[1:]
    if args[:1] == ["lsp"] and not {"-h", "--help"} & set(args):
        from daiku.fronts.lsp import bootstrap  # an editor is waiting; the command line is not needed

        sys.exit(bootstrap.main(args[1:]))
    if args[:1] == ["acp"] and not {"-h", "--help"} & set(args):
        from daiku.fronts.acp import bootstrap as acp  # likewise, for editors that speak ACP

        sys.exit(acp.main(args[1:]))
    from daiku.fronts.cli import main as cli  # everything else is the command line's business

    sys.exit(cli.main(args))


def _fill_closed() -> None:
    """Open /dev/null for closed standard streams, so that the next opened file does not take their place."""
    opened = os.open(os.devnull, os.O_RDWR)
    while opened <= 2:
        opened = os.dup(opened)
    os.close(opened)


if __name__ == "__main__":
    main()
