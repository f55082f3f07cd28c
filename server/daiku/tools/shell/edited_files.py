"""Files that a command edits in place, before and after it."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from glob import glob
from hashlib import blake2b
from pathlib import Path

from daiku.core.commands.inplace import find_edited_words

LARGEST = 5_000_000
"""Bytes of a file that is compared."""


def read_edited_files(command: str, folder: Path) -> Mapping[str, str]:
    """Return the digests of all files that `command`, run in `folder`, can change, by path. Blocks.

    Empty if they are not known, or one is too large or no regular file.
    """
    digests: dict[str, str] = {}
    for word in find_edited_words(command):
        for path in glob(word, root_dir=folder, include_hidden=True):  # noqa: PTH207  # a word may be an absolute path
            try:
                found = (folder / path).stat()
                if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
                    return {}
                digests[path] = blake2b((folder / path).read_bytes()).hexdigest()
            except OSError:
                return {}
    return digests
