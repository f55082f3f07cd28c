"""Git tools: status, diff, log, and commit, without programs of the repository's choice."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pydantic import Field

from daiku.domain.base import JsonObject
from daiku.domain.errors import DaikuError
from daiku.domain.labels import Label
from daiku.domain.tools import ToolResult
from daiku.guard.rules.protected.names import holds_secrets
from daiku.items.rules.harmless import clean_commit_message
from daiku.run.rules.outside import Workspace
from daiku.texts.text import text as sentence
from daiku.tools.face import Face
from daiku.tools.git.repository import STATUS_TOO_SLOW, GitRepository, open_repository
from daiku.tools.tool import Args, Preview, Tool, ToolContext, build_failure

MAX_SUBMODULES = 50
"""Submodules that are included."""
_SUBMODULE_PATHS = ("config", "--file", ".gitmodules", "--null", "--get-regexp", r"^submodule\..*\.path$")


async def find_submodules(
    opened: GitRepository, names: list[str], workspace: Workspace
) -> tuple[tuple[Path, GitRepository], ...]:
    """Return the submodules below the folder of `opened` that are checked out and that `names` include."""
    code, top = await opened.run(["rev-parse", "--show-toplevel"])
    top_folder = Path(top.strip())
    if code != 0 or not (top_folder / ".gitmodules").is_file():  # one look
        return ()
    top_repository = GitRepository(opened.git, top_folder, opened.roots, opened.off, opened.of_items)
    _, output = await top_repository.list_names(list(_SUBMODULE_PATHS))
    root = opened.root.resolve()  # likewise
    requested = [root / name if name != "." else root for name in names] or [root]
    submodules: list[tuple[Path, GitRepository]] = []
    for entry in output.split("\0")[:MAX_SUBMODULES]:
        place = top_folder / entry.partition("\n")[2]
        is_requested = any(place.is_relative_to(name) for name in requested)
        if (
            not is_requested
            or place == top_folder
            or not _is_checked_out(place, root)
            or workspace.hidden(place)
        ):
            continue
        nested = await open_repository(place, opened.roots)
        if isinstance(nested, GitRepository):
            submodules.append((place.relative_to(root), nested))
    return tuple(submodules)


def find_nearest_repository(root: Path, places: list[Path]) -> Path:
    """Return the innermost submodule below `root` that contains all of `places`, or `root`."""
    around = places[0].parents if places else ()
    inner = (
        folder
        for folder in around
        if root in folder.parents
        and (folder / ".git").exists()
        and all(folder in each.parents for each in places)
    )
    return next(inner, root)


def _is_checked_out(place: Path, root: Path) -> bool:
    """Return True if `place` is a separate repository in `root`, not reached by a link."""
    return place.is_relative_to(root) and place.resolve() == place and (place / ".git").exists()


_REF = re.compile(r"(?!-)[^\s\x00-\x1f\x7f:?*\\]+")


class StatusArgs(Args):
    paths: tuple[str, ...] = Field(default=(), description="only these")


class DiffArgs(Args):
    """Arguments of a diff. `ref` empty: the working tree."""

    ref: str = Field(default="", description="a commit, or a range: main...HEAD")
    staged: bool = Field(default=False, description="what would be committed")
    paths: tuple[str, ...] = Field(default=(), description="only these")
    stat: bool = Field(default=False, description="only names and counts")


class LogArgs(Args):
    ref: str = Field(default="", description="a commit, branch or range to begin at")
    paths: tuple[str, ...] = Field(default=(), description="only commits that touch these")
    limit: int = Field(default=20, ge=1, le=500, description="how many; 20 without it")
    patch: bool = Field(default=False, description="with their diffs")


async def status(args: StatusArgs, context: ToolContext) -> ToolResult:
    """Return the branch and the changed files."""
    argv = ["status", "--short", "--branch", "--ignore-submodules=dirty", "--untracked-files=all"]
    result = await run_tool(argv, "", args.paths, context, "Nothing has changed.")
    submodule_argv = ["status", "--short", "--ignore-submodules=dirty", "--untracked-files=all"]
    return await _add_submodules(result, submodule_argv, args.paths, context, shows_content=False)


async def diff(args: DiffArgs, context: ToolContext) -> ToolResult:
    """Return the changes as a unified diff."""
    argv = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty"]
    argv += ["--cached"] if args.staged else []
    argv += ["--stat"] if args.stat else []
    result = await run_tool(argv, args.ref, args.paths, context, "", shows_content=True)
    if result.ok and not args.ref:
        result = await _add_submodules(result, argv, args.paths, context, shows_content=True)
    return result if result.text else result.model_copy(update={"text": "No differences."})


async def _add_submodules(
    result: ToolResult, argv: list[str], paths: tuple[str, ...], context: ToolContext, *, shows_content: bool
) -> ToolResult:
    """Add the output of `argv` for each changed submodule to the result of the repository."""
    located = await find_repository(paths, context) if result.ok else result
    if isinstance(located, ToolResult):
        return result
    parts = [result.text] if result.text else []
    for subfolder, nested in await find_submodules(*located, context.workspace):
        prefixes = [
            f"--{side}-prefix={letter}/{subfolder.as_posix()}/"
            for side, letter in (("src", "a"), ("dst", "b"))
        ]
        submodule_argv = [*argv, *(prefixes if shows_content else ())]
        submodule_result = await run_in_repository(
            nested, [], submodule_argv, "", context, "", shows_content=shows_content
        )
        if submodule_result.text:
            parts.append(f"In the submodule {subfolder.as_posix()}:\n{submodule_result.text}")
    return result.model_copy(update={"text": "\n".join(parts)}) if parts else result


async def log(args: LogArgs, context: ToolContext) -> ToolResult:
    """List commits, the newest first."""
    argv = [
        "log",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        f"--max-count={args.limit}",
        "--date=iso-strict",
    ]
    argv += ["--format=%h %ad %an%d%n    %s", *(["--patch"] if args.patch else [])]
    return await run_tool(argv, args.ref, args.paths, context, "No commits.", shows_content=args.patch)


async def run_tool(
    argv: list[str],
    ref: str,
    paths: tuple[str, ...],
    context: ToolContext,
    empty: str,
    *,
    shows_content: bool = False,
) -> ToolResult:
    """Run git and return its output. Options come first, then the ref, then `--` and the paths.

    `shows_content`: the output has text of files. Files of secrets and closed files are left out.
    """
    if ref and (not _REF.fullmatch(ref) or "::" in ref):
        return build_failure(
            f"{ref!r} is no commit, branch or range. Right: main, HEAD~2, v1.0, main...HEAD."
        )
    located = await find_repository(paths, context)
    if isinstance(located, ToolResult):
        return located
    opened, names = located
    return await run_in_repository(opened, names, argv, ref, context, empty, shows_content=shows_content)


async def run_in_repository(
    opened: GitRepository,
    names: list[str],
    argv: list[str],
    ref: str,
    context: ToolContext,
    empty: str,
    *,
    stdin: str | None = None,
    shows_content: bool = False,
) -> ToolResult:
    """Run git in a repository and return its output. With `shows_content`, closed files are left out."""
    hidden: tuple[str, ...] = ()
    pathspecs = names
    if shows_content:
        excluded = await _find_hidden(opened, argv, ref, names, context.workspace)
        if isinstance(excluded, str):
            return build_failure(excluded)
        hidden = excluded
        pathspecs = [f":(literal){name}" for name in names] + [
            f":(top,exclude,literal){name}" for name in hidden
        ]
    command = [*argv, *(["--end-of-options", ref] if ref else []), "--", *pathspecs]
    code, text = await opened.run(command, stdin=stdin, literal=not shows_content)
    data: JsonObject = {"exitCode": code, "output": text}
    if code == STATUS_TOO_SLOW:
        return build_failure(sentence("git.slow"))
    if code != 0:
        return ToolResult(ok=False, text=f"git {argv[0]} failed with exit code {code}:\n{text}", data=data)
    reason = "they look like files of secrets or are closed to you"
    note = f"\n[Not shown, because {reason}: {', '.join(hidden)}.]" if hidden else ""
    return ToolResult(ok=True, text=((text.rstrip("\n") or empty) + note).lstrip("\n"), data=data)


async def _find_hidden(
    opened: GitRepository, argv: list[str], ref: str, names: list[str], workspace: Workspace
) -> tuple[str, ...] | str:
    """Return the shown files that hold secrets by name or are closed, or why they cannot be listed.

    The paths are relative to the top of the work tree.
    """
    list_argv = [
        option
        for option in argv
        if option not in ("--stat", "--patch") and not option.startswith("--format=")
    ]
    list_argv += ["--name-only", "-z", "--no-renames", *(["--format="] if argv[0] == "log" else [])]
    code, names_output = await opened.list_names(
        [*list_argv, *(["--end-of-options", ref] if ref else []), "--", *names]
    )
    if code != 0:
        return f"git {argv[0]} failed with exit code {code}:\n{names_output}"
    changed = dict.fromkeys(name.strip("\n") for name in names_output.split("\0"))
    code, top_output = await opened.run(["rev-parse", "--show-toplevel"])
    if code != 0:
        return f"git {argv[0]} failed with exit code {code}:\n{top_output}"
    top = Path(top_output.strip("\n"))
    return tuple(n for n in changed if n and (holds_secrets(n) or workspace.hidden(top / n)))


async def find_repository(
    paths: tuple[str, ...], context: ToolContext
) -> tuple[GitRepository, list[str]] | ToolResult:
    """Return the repository of a call, and `paths` relative to its folder."""
    located = _find_folder(paths, context)
    if isinstance(located, ToolResult):
        return located
    root, names = located
    opened = await open_repository(root, context.workspace.roots)
    return build_failure(opened) if isinstance(opened, str) else (opened, names)


def _find_folder(paths: tuple[str, ...], context: ToolContext) -> tuple[Path, list[str]] | ToolResult:
    """Return the workspace folder that git runs in, and `paths` relative to it."""
    roots = context.workspace.roots
    if not roots:
        return build_failure("No folder is open.")
    try:
        places = [context.workspace.locate(path) for path in paths]
    except DaikuError as error:
        return build_failure(f"Not run: {error.failure.message}")
    root = next((r for r in roots if places and (places[0] == r or r in places[0].parents)), roots[0])
    root = find_nearest_repository(root, places)
    names = [os.path.relpath(place, root) for place in places]
    if any(name.startswith("..") for name in names):
        return build_failure(
            "Not run: the paths lie in different folders of the workspace. Name those of one folder."
        )
    return root, names


GIT_TOOLS = (
    Tool(
        "git/status", "read", StatusArgs, status, parallel=True,
        face=Face("source-control", Label("Git status", "Git の状態"), answer="size"),
        description="Show the branch and which files are staged, changed or untracked.",
    ),
    Tool(
        "git/diff", "read", DiffArgs, diff, parallel=True,
        face=Face("diff-multiple", Label("Git diff", "Git の差分"), "{paths|ref}", answer="size"),
        description="Show changes as a diff; of the working tree where nothing else is said.",
    ),
    Tool(
        "git/log", "read", LogArgs, log, parallel=True,
        face=Face("history", Label("Git log", "Git の履歴"), "{paths|ref}", answer="size"),
        description="List commits, the newest first, with their authors and dates.",
    ),
)  # fmt: skip


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
