"""The tool git/commit: stage and commit, without running programs that the repository names."""

from __future__ import annotations

import os

from pydantic import Field

from daiku.domain.labels import Label
from daiku.domain.tools import ToolResult
from daiku.items.rules.harmless import clean_commit_message
from daiku.tools.face import Face
from daiku.tools.git.git import StatusArgs, find_repository, run_in_repository, status
from daiku.tools.git.repository import GitRepository
from daiku.tools.tool import Args, Preview, Tool, ToolContext, build_failure

COMMIT_HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit")
_SUBMODULE_MODE = "160000"
"""Mode of a submodule's index entry."""


class CommitArgs(Args):
    message: str = Field(min_length=1, description="the commit's message")
    paths: tuple[str, ...] = Field(default=(), description="staged first")
    all: bool = Field(default=False, description="stage every change of tracked files")


async def commit(args: CommitArgs, context: ToolContext) -> ToolResult:
    """Stage the named paths and commit.

    Hooks do not run and nothing is signed; the result says so if the user configured either. In a work item's
    run the message has no effect on a forge.
    """
    located = await find_repository(args.paths, context)
    if isinstance(located, ToolResult):
        return located
    repository, names = located
    for pathspecs, options in ((names, ()), ([":(top)"] if args.all else [], ("--update",))):
        if pathspecs and (problem := await _stage(repository, pathspecs, options)):
            return build_failure(problem)
    if not await _has_staged_changes(repository):
        return build_failure("Nothing is staged, so there is nothing to commit. Name `paths`, or say `all`.")
    argv = ["commit", "--no-gpg-sign", "--no-verify", "--cleanup=strip", "--file=-"]
    # The message is passed on standard input, so that it cannot be parsed as an option.
    message = args.message if context.personal else clean_commit_message(args.message)
    result = await run_in_repository(repository, [], argv, "", context, "Committed.", stdin=message)
    note = await _find_skipped_checks(repository) if result.ok and not repository.of_items else ""
    return result.model_copy(update={"text": f"{result.text}\n{note}"}) if note else result


async def _find_skipped_checks(repository: GitRepository) -> str:
    """Return a note about the hooks and the signature that this commit lacks; empty if there are none."""
    parts: list[str] = []
    if hooks := await _find_hooks(repository):
        parts.append(f"these hooks did not run: {', '.join(hooks)}")
    for scope in ("--local", "--global"):
        _, output = await repository.run(["config", scope, "--type=bool", "--get", "commit.gpgSign"])
        if output.strip() == "true":
            parts.append("the commit is not signed, although commit.gpgSign is set")
            break
    advice = "Tell the user. `git commit --amend --no-edit` in shell__run runs the hooks and signs"
    return f"[Skipped: {'; '.join(parts)}. {advice}.]" if parts else ""


async def _find_hooks(repository: GitRepository) -> list[str]:
    """Return the names of the commit hooks that git would run for the user."""
    _, common_folder = await repository.run(["rev-parse", "--git-common-dir"])
    folder = repository.root / common_folder.strip() / "hooks"
    for scope in ("--global", "--local"):  # the repository's own setting overrides the global one
        code, hooks_path = await repository.run(["config", scope, "--type=path", "--get", "core.hooksPath"])
        if code == 0 and hooks_path.strip():
            folder = repository.root / hooks_path.strip()
    return [name for name in COMMIT_HOOKS if os.access(folder / name, os.X_OK)]


async def _stage(repository: GitRepository, names: list[str], options: tuple[str, ...]) -> str:
    """Stage the files of these names. Returns the failure, or an empty string.

    Of a nested repository only its commit is staged: git would read its files with the programs that its own
    settings name.
    """
    pathspecs = [name if name == ":(top)" else f":(literal){name}" for name in names]
    code, entries = await repository.list_names(
        ["ls-files", "-z", "--stage", "--", *pathspecs], literal=False
    )
    links = [entry.partition("\t")[2] for entry in entries.split("\0") if entry.startswith(_SUBMODULE_MODE)]
    file_specs = [spec for name, spec in zip(names, pathspecs, strict=True) if name.rstrip("/") not in links]
    output = entries
    if code == 0 and file_specs:
        excluded = [f":(exclude,literal){name}" for name in links]
        code, output = await repository.run(["add", *options, "--", *file_specs, *excluded], literal=False)
    if code == 0 and links:
        code, output = await repository.run(["update-index", "--", *links])
    return f"git add failed with exit code {code}:\n{output}" if code else ""


async def _has_staged_changes(repository: GitRepository) -> bool:
    """Return True if there is something to commit.

    Otherwise git would list all changes, and read nested repositories for that.
    """
    diff_code, _ = await repository.run(
        ["diff", "--cached", "--quiet", "--no-ext-diff", "--ignore-submodules=dirty"]
    )
    merge_code, _ = await repository.run(["rev-parse", "--verify", "--quiet", "MERGE_HEAD"])
    return diff_code != 0 or merge_code == 0


async def preview_commit(args: CommitArgs, context: ToolContext) -> Preview | ToolResult:
    """Show the message and the status as a preview."""
    shown_status = await status(StatusArgs(paths=args.paths), context)
    if not shown_status.ok:
        return shown_status
    return Preview(f"{args.message}\n\n{shown_status.text}")


COMMIT = Tool(
    "git/commit", "command", CommitArgs, commit, preview=preview_commit,
    face=Face("git-commit", Label("Commit", "コミット"), "{message}"),
    description="Commit what is staged, or stage and commit. Only when the person asked for a commit.",
)  # fmt: skip
