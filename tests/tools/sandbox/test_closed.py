"""What .daikuignore closes is read by no sandboxed command, however it names it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from daiku.dataclass import replace
from daiku.domain.config import SandboxSettings
from daiku.domain.tools import ToolResult
from daiku.guard.sandbox import bubblewrap, links
from daiku.guard.sandbox.links import find_closed
from daiku.tools.shell import RunArgs
from daiku.tools.shell.gitsettings import find_hidden_object
from daiku.tools.shell.preparing import PreparedCommand, prepare, wrap_in_sandbox, wrap_in_trial
from daiku.tools.shell.trying import try_reading
from daiku.workspace.disk import DiskWorkspace
from tests.cases import for_each
from tests.tools.shell.test_shell import Bench

CANARY = "SECRET-CANARY"
# The sandbox needs bubblewrap, which `npm test` installs but not every container can run.
needs_bubblewrap = pytest.mark.skipif(not bubblewrap(), reason="no working bubblewrap here")


def git(root: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    return subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def bench(workspace: Path) -> Bench:
    root = workspace.resolve()
    for name in ("a.private", "keep/b.private", "deep/closed/x/y.txt", "odd [1]*.private", "keep/own.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{CANARY}\n")
    (root / "alias").symlink_to("a.private")
    (root / "closed-link.private").symlink_to("keep/target.txt")
    (root / "keep/target.txt").write_text(f"{CANARY}\n")
    (root / ".daikuignore").write_text("*.private\ndeep/closed/\n")
    (root / "keep/.daikuignore").write_text("own.txt\n")
    (root / "open.txt").write_text("open\n")
    (root / "private.py").write_text("open\n")
    for each in root.rglob("*"):
        if each.is_file():
            os.utime(
                each, (1e9, 1e9)
            )  # older than git's index, whose entries of the same second are read again
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "a")
    git(root, "branch", "feature/x")
    bench = Bench(root, SandboxSettings())
    bench.context = replace(bench.context, workspace=DiskWorkspace([root]))
    return bench


DOORS = (
    "cat a.private", "cat a.pri?", "cat alias", "find . -type f -exec cat {} +", "grep -r SECRET .", "git grep SECRET",
    "git grep SECRET HEAD", "git log -p", "git diff --no-index /dev/null a.private", "head -c 100 deep/closed/x/y.txt",
    "python3 -c \"import glob; [print(open(p).read()) for p in glob.glob('**/*', recursive=True) if __import__('os').path.isfile(p)]\"",
    "tar cf - . | cat", "xxd a.private | head; od -c keep/own.txt", "cp a.private /tmp/c; cat /tmp/c", "ln a.private h; cat h",
    "mv deep/closed deep/open; cat deep/open/x/y.txt", "dd if=keep/b.private 2>/dev/null", "cat closed-link.private keep/target.txt",
    "sort 'odd [1]*.private'", "cat /proc/self/cwd/a.private", "for f in *; do cat \"$f\"; done", "rev keep/own.txt | rev",
    "git diff HEAD", "git stash && git stash show -p", "cd deep && cat closed/x/*",
    "git show feature/x:a.private", "git show refs/heads/feature/x:deep/closed/x/y.txt", "git show :0:a.private", "git show :keep/own.txt",
    "cd deep && git show HEAD:keep/own.txt", "git grep SECRET feature/x:deep", "git grep SECRET HEAD:deep/closed",
)  # fmt: skip


@needs_bubblewrap
@pytest.mark.slow
@pytest.mark.parametrize("command", DOORS)
async def test_no_door_leads_to_a_closed_file(bench: Bench, command: str) -> None:
    """A23.6: the sandbox covers it, so that no list of commands is needed."""
    result = await bench.run(command)
    assert CANARY not in result.text.replace(" ", "")


@needs_bubblewrap
@pytest.mark.slow
async def test_other_files_are_read_and_written_and_git_sees_no_change(bench: Bench) -> None:
    """A23.6: a reading git takes the covered files for unchanged."""
    assert "open" in (await bench.run("cat open.txt private.py")).text
    assert (await bench.run("echo new > open.txt")).ok
    shown = await bench.run("git status --short")
    assert "open.txt" in shown.text
    assert "private" not in shown.text
    shown = await bench.run("git diff")
    assert shown.ok, shown.text
    assert "+new" in shown.text


@needs_bubblewrap
@pytest.mark.slow
async def test_a_commit_of_everything_deletes_no_closed_file(bench: Bench) -> None:
    """A23.6: it fails, or leaves the closed files in the commit."""
    (bench.root / ".daikuignore").write_text("deep/closed/\n")
    (bench.root / "keep/.daikuignore").unlink()
    await bench.run("echo new > open.txt; git add -A; git -c user.name=a -c user.email=a@b.c commit -qam b")
    assert git(bench.root, "show", "HEAD:deep/closed/x/y.txt") == f"{CANARY}\n"
    assert (bench.root / "a.private").read_text() == f"{CANARY}\n"


def closed_of(bench: Bench, command: str) -> tuple[Path, ...]:
    prepared = prepare(RunArgs(command=command), bench.context)
    assert isinstance(prepared, PreparedCommand)
    wrapped = wrap_in_sandbox(prepared)
    assert isinstance(wrapped, tuple)
    return tuple(map(Path, wrapped[0]))


@needs_bubblewrap
@pytest.mark.parametrize("command", ["cat open.txt", "make", "echo x > .git/hooks/pre-commit"])
def test_every_kind_of_command_has_the_covers(bench: Bench, command: str) -> None:
    """A23.6: what only reads, what writes, and what changes protected files."""
    assert bench.root / "keep/own.txt" in closed_of(bench, command)


@needs_bubblewrap
def test_a_trial_of_a_command_has_the_covers(bench: Bench) -> None:
    """A23.6: also where writes are discarded."""
    prepared = prepare(RunArgs(command="make"), bench.context)
    assert isinstance(prepared, PreparedCommand)
    argv, _ = wrap_in_trial(prepared, ())
    assert str(bench.root / "keep/own.txt") in argv


def test_too_many_closed_files_stop_the_command_and_a_large_folder_is_hidden_as_a_whole(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A23.6: nothing is left open."""
    monkeypatch.setattr(links, "MOST_MASKED", 3)
    marks = (f"{bench.root}/.daikuignore",)
    with pytest.raises(OSError, match="close their folders"):
        find_closed((bench.root,), marks)
    (bench.root / ".daikuignore").write_text("deep/\nkeep/\n")
    (bench.root / "deep/more").mkdir()
    for number in range(4):
        (bench.root / f"deep/more/{number}").touch()
    assert bench.root / "deep" in find_closed((bench.root,), marks)


def test_a_project_without_the_file_is_not_walked(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "_entries", lambda _folder: pytest.fail("walked"))
    assert find_closed((workspace.resolve(),), ()) == ()


IN_REVISIONS = (
    "git show HEAD:a.private", "git show feature/x:a.private", "git show refs/heads/feature/x:./a.private", "git show :a.private", "git show :0:a.private",
    "git show 'HEAD@{0}:a.private'", "git show 'HEAD^{tree}:a.private'", "git show HEAD~0:keep/own.txt", "git show HEAD:deep/closed/x/y.txt", "git --no-pager show HEAD:a.private",
    "git diff feature/x:a.private HEAD:open.txt", "git diff HEAD:open.txt..HEAD:a.private", "git show HEAD:open.txt HEAD:a.private", "git ls-files | head; git show HEAD:a.private",
    "git show BLOB", "git diff OPEN BLOB", "git diff OPEN..BLOB", "git diff OPEN...BLOB", "git show ^OPEN BLOB", "git log -p BLOB",
    "git grep SECRET HEAD:deep", "git grep SECRET TREE", "git diff TREE HEAD:keep", "git diff HEAD:keep..TREE", "git grep SECRET 'HEAD:deep/closed'",
)  # fmt: skip
IN_OPEN_FILES = (
    "git show HEAD:open.txt", "git show feature/x:private.py", "git show HEAD:deep", "git show HEAD:keep/", "git ls-tree HEAD:deep", "git ls-tree TREE", "git rev-parse HEAD:deep",
    "git log -p", "git log -p -- open.txt", "git diff HEAD~0 HEAD", "git diff feature/x..HEAD", "git diff feature/x...HEAD -- keep", "git show HEAD", "git grep open HEAD -- deep",
    "git grep 'HEAD:open'", "git log --grep=a:b", "git log -L1,1:open.txt", "git show :open.txt", "git log -- ':!a.private'", "git diff -- ':(exclude)a.private'", "git log --format=%h:%s", "ls HEAD:a.private",
)  # fmt: skip


def hidden_object(bench: Bench, command: str, folder: str = ".") -> str:
    objects = git(bench.root, "rev-parse", "HEAD:deep", "HEAD:a.private", "HEAD:open.txt")
    tree, blob, opened = objects.split()
    line = command.replace("TREE", tree).replace("BLOB", blob[:12]).replace("OPEN", opened[:12])
    return find_hidden_object(
        line, bench.root / folder, bench.root, os.environ, bench.context.workspace.closed
    )


@for_each("command", IN_REVISIONS)
def test_a_closed_file_is_found_in_a_revision(bench: Bench, command: str) -> None:
    """A23.6: however the revision is written, and by an object that has no path."""
    assert hidden_object(bench, command)


@for_each("command", IN_OPEN_FILES)
def test_an_open_file_in_a_revision_is_shown(bench: Bench, command: str) -> None:
    """A23.6: also whole revisions, where git takes closed files for binary, and names in a folder."""
    assert not hidden_object(bench, command)


def test_a_path_in_a_revision_counts_from_the_top_of_the_repository(bench: Bench) -> None:
    """A23.6: unless it begins with a dot."""
    assert hidden_object(bench, "git show HEAD:deep/closed/x/y.txt", "keep")
    assert hidden_object(bench, "git show HEAD:./own.txt", "keep")
    assert hidden_object(bench, "git show HEAD:../deep/closed/x/y.txt", "keep")
    assert not hidden_object(bench, "git show HEAD:own.txt", "keep")
    assert not hidden_object(bench, "git show HEAD:./closed/x/y.txt", "keep")


HISTORY = (
    "git log -p -a", "git cat-file --batch --batch-all-objects", "git show HEAD --text | cat", "git fast-export HEAD | awk 1",
    "python3 -c \"import glob, zlib; [print(zlib.decompress(open(p, 'rb').read())) for p in glob.glob('.git/objects/??/*')]\"",
    "git --work-tree=/tmp checkout HEAD -- . ; cat /tmp/a.private", "sh -c 'git log -p -a'", "git commit --dry-run -v", "git status -v",
)  # fmt: skip


@needs_bubblewrap
@pytest.mark.slow
@pytest.mark.parametrize("command", HISTORY)
async def test_no_command_that_nobody_allowed_finds_a_closed_file_in_the_history(
    bench: Bench, command: str
) -> None:
    """A23.6: neither at the level `sandbox` nor where writes are discarded."""
    (bench.root / "a.private").write_text(f"{CANARY} changed\n")
    git(bench.root, "add", "a.private")
    bench.context = replace(bench.context, masked=True)
    result = await bench.run(command)
    assert CANARY not in result.text
    tried = await try_reading(RunArgs(command=command), bench.context, serving=False)
    assert not isinstance(tried, ToolResult) or CANARY not in tried.text


ALLOWED = (
    "git log -p -a", "git show HEAD --text", "git diff --text HEAD~1", "git grep -a SECRET HEAD", "git cat-file -p HEAD:a.private", "git archive HEAD | tar xO",
    "git stash show -p", "git format-patch --stdout --root HEAD", "git add open.txt && git log -p", "git show $(git rev-parse HEAD:a.private)", "git status; git log -p -a",
    "sh -c 'git log -p -a'", "git checkout HEAD:deep -- . && cat closed/x/y.txt", "git worktree add /tmp/w && cat /tmp/w/a.private", "git clone . /tmp/c && cat /tmp/c/a.private",
    "git restore --source=HEAD:deep -- closed; cat closed/x/y.txt", "echo HEAD:a.private | git cat-file --batch", "git commit --allow-empty -vm b", "git notes add -m x -C HEAD:a.private",
    "git --work-tree=/tmp checkout HEAD -- .; cat /tmp/a.private", "git --work-tree /tmp restore .; cat /tmp/a.private", "GIT_WORK_TREE=/tmp git restore .; cat /tmp/a.private",
    "env GIT_WORK_TREE=/tmp git checkout -- .; cat /tmp/a.private", "export GIT_WORK_TREE=/tmp; git reset --hard; cat /tmp/a.private", "git -c core.worktree=/tmp checkout -- .; cat /tmp/a.private",
    "git config core.worktree /tmp; git checkout -- .; cat /tmp/a.private", "export G''IT_WORK_TREE=/tmp; git reset --hard; cat /tmp/a.private",
    "git config --local core.workTree /tmp && git restore .; cat /tmp/a.private", "git rebase -x 'git log -p' --root", "git rebase --exec='git log -p' HEAD", "git stash -p", "git stash show -p --text stash@{0}",
    "git restore -Ws HEAD:deep -- closed; cat closed/x/y.txt", "git checkout -f feature/x~0:deep -- .; cat closed/x/y.txt", "git reset HEAD:deep -- closed && git checkout -- closed; cat closed/x/y.txt",
)  # fmt: skip


@needs_bubblewrap
@pytest.mark.slow
@pytest.mark.parametrize("command", ALLOWED)
async def test_a_command_that_only_a_rule_allowed_finds_no_closed_file_in_the_history(
    bench: Bench, command: str
) -> None:
    """A23.6: nobody saw it, so git has no history there."""
    (bench.root / "a.private").write_text(f"{CANARY} changed\n")
    git(bench.root, "add", "a.private")
    bench.context = replace(bench.context, unseen=True)
    assert CANARY not in (await bench.run(command)).text.replace(" ", "")


@needs_bubblewrap
@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "git log --oneline -1 && make -v; git checkout -b new", "git merge feature/x", "git switch feature/x",
        "git log --stat -1 && git tag t", "git branch other && git status --porcelain", "git add open.txt && git commit -qm new && git log --oneline -1",
        "python3 -c \"import subprocess as s; s.run(['git', 'describe', '--always'], check=True)\"", "git describe --always && touch x",
        "git checkout -- open.txt", "git restore open.txt", "git restore --source=HEAD~1 open.txt", "git checkout HEAD~1 -- open.txt", "git add open.txt && git restore --staged open.txt",
        "git stash push open.txt && git stash pop", "git reset", "git reset --soft HEAD~1", "git reset HEAD -- open.txt", "git switch -c new", "git log --oneline | head -1",
    ],
)  # fmt: skip
async def test_a_command_that_a_rule_allowed_works_if_git_prints_no_file(bench: Bench, command: str) -> None:
    """A23.6: whatever git does elsewhere."""
    git(bench.root, "config", "user.name", "a")
    git(bench.root, "config", "user.email", "a@b.c")
    (bench.root / "open.txt").write_text("new\n")
    git(bench.root, "commit", "-qam", "b")
    (bench.root / "open.txt").write_text("newer\n")
    if "feature/x" in command:
        git(bench.root, "checkout", "open.txt")
    bench.context = replace(bench.context, unseen=True)
    result = await bench.run(command)
    assert result.ok, result.text


@needs_bubblewrap
@pytest.mark.slow
@pytest.mark.parametrize("level", ["masked", "unseen"])
@pytest.mark.parametrize(
    "command",
    [
        "git checkout -- open.txt", "git restore .", "git checkout-index -f open.txt", "git restore --source=HEAD:deep -- closed", "git reset --hard",
        "git checkout HEAD~0 -- .", "sh go.sh", "make -f go.mk", "git stash", "git apply x.diff",
    ],
)  # fmt: skip
async def test_no_open_file_is_lost_where_the_history_is_hidden(
    bench: Bench, command: str, level: str
) -> None:
    """A23.6: git deletes a file before it reads what to put there."""
    (bench.root / "go.sh").write_text("git checkout -- open.txt\n")
    (bench.root / "go.mk").write_text("all:\n\tgit restore open.txt\n")
    (bench.root / "open.txt").write_text("newer\n")
    bench.context = replace(bench.context, **{level: True})
    await bench.run(command)
    assert (bench.root / "open.txt").exists()
    assert (bench.root / "a.private").exists()


@needs_bubblewrap
@pytest.mark.slow
async def test_a_command_that_the_user_allowed_finds_the_history(bench: Bench) -> None:
    """A23.6: the user saw what it names."""
    assert CANARY in (await bench.run("git log -p -a")).text
    bench.context = replace(bench.context, consented=True)
    assert CANARY in (await bench.run("git show HEAD:a.private")).text


@needs_bubblewrap
@pytest.mark.slow
async def test_changes_are_recorded_where_the_history_is_hidden_and_the_result_says_what_is_not(
    bench: Bench,
) -> None:
    """A23.6: a commit needs the objects of git, and prints no text of a file."""
    bench.context = replace(bench.context, masked=True)
    git(bench.root, "config", "user.name", "a")
    git(bench.root, "config", "user.email", "a@b.c")
    assert (await bench.run("echo new > open.txt")).ok
    assert (await bench.run("git add open.txt && git commit -qm new")).ok
    assert git(bench.root, "show", "HEAD:open.txt") == "new\n"
    assert "may print files that .daikuignore closes" in (await bench.run("git log -p | awk 1")).text
    assert "Call git in a command of its own" in (await bench.run("touch x; git status | awk 1")).text


@needs_bubblewrap
@pytest.mark.slow
@pytest.mark.parametrize(
    "command", ["mv deep deeper", "git mv deep deeper", "mkdir z && mv deep z", "mv deep/closed deep/open"]
)
async def test_a_folder_of_closed_files_is_not_moved_to_where_they_are_open(
    bench: Bench, command: str
) -> None:
    """A23.6: `deep/closed/` in a .daikuignore closes nothing in `deeper`."""
    await bench.run(command)
    assert (bench.root / "deep/closed/x/y.txt").exists()
