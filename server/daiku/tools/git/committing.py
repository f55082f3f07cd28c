"""Commits: what is named or changed is staged and committed, and no program is run that a repository names."""

from __future__ import annotations

import os

from pydantic import Field

from daiku.domain.labels import Label
from daiku.domain.tools import ToolResult
from daiku.items.rules.harmless import commit_words
from daiku.tools.face import Face
from daiku.tools.git.git import StatusArgs, ask, repository_of, status
from daiku.tools.git.repository import Repository
from daiku.tools.tool import Args, Preview, Tool, ToolContext, failed

COMMIT_HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit")
_LINK = "160000"
"""The mode of the entry of a repository within the repository."""


class CommitArgs(Args):
    message: str = Field(min_length=1, description="the commit's message")
    paths: tuple[str, ...] = Field(default=(), description="staged first")
    all: bool = Field(default=False, description="stage every change of tracked files")


async def commit(args: CommitArgs, context: ToolContext) -> ToolResult:
    """Stage what is named and commit. Hooks do not run and nothing is signed, and the result says so if the user has set
    either. In the run of a work item the message does nothing on a forge."""
    placed = await repository_of(args.paths, context)
    if isinstance(placed, ToolResult):
        return placed
    repository, names = placed
    for wanted, options in ((names, ()), ([":(top)"] if args.all else [], ("--update",))):
        if wanted and (why := await _stage(repository, wanted, options)):
            return failed(why)
    if not await _has_something_to_commit(repository):
        return failed("Nothing is staged, so there is nothing to commit. Name `paths`, or say `all`.")
    told = ["commit", "--no-gpg-sign", "--no-verify", "--cleanup=strip", "--file=-"]
    # The message goes through standard input: it cannot be taken for an option.
    message = args.message if context.personal else commit_words(args.message)
    done = await ask(repository, [], told, "", context, "Committed.", stdin=message)
    skipped = await _find_skipped_checks(repository) if done.ok and not repository.of_items else ""
    return done.model_copy(update={"text": f"{done.text}\n{skipped}"}) if skipped else done


async def _find_skipped_checks(repository: Repository) -> str:
    """Return a note on the user's hooks and signature that this commit went without; empty if there are none."""
    parts: list[str] = []
    if hooks := await _find_hooks(repository):
        parts.append(f"these hooks did not run: {', '.join(hooks)}")
    for scope in ("--local", "--global"):
        _, signs = await repository.run(["config", scope, "--type=bool", "--get", "commit.gpgSign"])
        if signs.strip() == "true":
            parts.append("the commit is not signed, although commit.gpgSign is set")
            break
    how = "Tell the user. `git commit --amend --no-edit` in shell__run runs the hooks and signs"
    return f"[Skipped: {'; '.join(parts)}. {how}.]" if parts else ""


async def _find_hooks(repository: Repository) -> list[str]:
    """Return the names of the commit hooks that git would run for the user."""
    _, common = await repository.run(["rev-parse", "--git-common-dir"])
    folder = repository.root / common.strip() / "hooks"
    for scope in ("--global", "--local"):  # the repository's own setting wins
        code, named = await repository.run(["config", scope, "--type=path", "--get", "core.hooksPath"])
        if code == 0 and named.strip():
            folder = repository.root / named.strip()
    return [name for name in COMMIT_HOOKS if os.access(folder / name, os.X_OK)]


async def _stage(repository: Repository, names: list[str], options: tuple[str, ...]) -> str:
    """Stage the files of these names and return why that failed, empty on success. Of a repository within this one only
    its commit is staged: git would look through its files with the programs that its own settings name."""
    pathspecs = [name if name == ":(top)" else f":(literal){name}" for name in names]
    code, listed = await repository.names(["ls-files", "-z", "--stage", "--", *pathspecs], literal=False)
    links = [entry.partition("\t")[2] for entry in listed.split("\0") if entry.startswith(_LINK)]
    of_files = [spec for name, spec in zip(names, pathspecs, strict=True) if name.rstrip("/") not in links]
    said = listed
    if code == 0 and of_files:
        left_out = [f":(exclude,literal){name}" for name in links]
        code, said = await repository.run(["add", *options, "--", *of_files, *left_out], literal=False)
    if code == 0 and links:
        code, said = await repository.run(["update-index", "--", *links])
    return f"git add failed with exit code {code}:\n{said}" if code else ""


async def _has_something_to_commit(repository: Repository) -> bool:
    """Return True if there is something to commit. If not, git would list all changes, and for that look into the
    repositories within this one."""
    staged, _ = await repository.run(
        ["diff", "--cached", "--quiet", "--no-ext-diff", "--ignore-submodules=dirty"]
    )
    merging, _ = await repository.run(["rev-parse", "--verify", "--quiet", "MERGE_HEAD"])
    return staged != 0 or merging == 0


async def preview_commit(args: CommitArgs, context: ToolContext) -> Preview | ToolResult:
    """What would be in the commit."""
    seen = await status(StatusArgs(paths=args.paths), context)
    if not seen.ok:
        return seen
    return Preview(f"{args.message}\n\n{seen.text}")


COMMIT = Tool(
    "git/commit", "command", CommitArgs, commit, preview=preview_commit,
    face=Face("git-commit", Label("Commit", "コミット"), "{message}"),
    description="Commit what is staged, or stage and commit. Only when the person asked for a commit.",
)  # fmt: skip
