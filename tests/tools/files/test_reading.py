"""What a model is shown of a file, and what it has seen then."""

from __future__ import annotations

from pathlib import Path

from daiku.settings.config import Config
from daiku.texts.rules.truncate import OUTPUT_LIMIT
from daiku.tools.files.reading import ReadArgs, read
from daiku.tools.files.seen import SeenTexts
from daiku.tools.tool import ToolContext
from daiku.workspace.checkpoints import CheckpointStore
from daiku.workspace.disk import DiskWorkspace


async def test_of_a_file_that_is_too_long_for_one_answer_only_what_was_shown_counts_as_read(
    tmp_path: Path,
) -> None:
    text = "".join(f"line {number}\n" for number in range(OUTPUT_LIMIT // 5))
    (tmp_path / "long.txt").write_text(text)
    workspace = DiskWorkspace([tmp_path])
    kept = CheckpointStore(tmp_path / "kept", workspace)
    context = ToolContext("s", "r", "c", workspace, kept, Config(), lambda _: None)
    seen, real = SeenTexts(), workspace.locate("long.txt")
    shown = await read(seen, ReadArgs(path="long.txt"), context)
    assert "[Go on with start_line=" in shown.text
    assert seen.check_overwrite("s", real, "long.txt", text, "short\n") is not None
    seen = SeenTexts()
    at = 1
    while at:
        shown = await read(seen, ReadArgs(path="long.txt", start_line=at), context)
        at = (
            int(shown.text.rpartition("start_line=")[2].rstrip("]") or 0)
            if "start_line=" in shown.text
            else 0
        )
    assert seen.check_overwrite("s", real, "long.txt", text, "short\n") is None
