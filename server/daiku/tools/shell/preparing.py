"""Prepare a command: check it, choose its sandbox, and build its environment."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from daiku.dataclass import dataclass, replace
from daiku.domain.base import JsonObject
from daiku.domain.errors import DaikuError
from daiku.domain.tools import ToolResult
from daiku.guard.rules.commands.bash import SimpleCommand, read_script
from daiku.guard.rules.commands.dangers import is_installation
from daiku.guard.rules.commands.judge import (
    CommandRules,
    Judgement,
    changes_folder,
    judge,
    prints_history,
    strip_cd,
    why_not_visible,
)
from daiku.guard.rules.commands.wrappers import program_name
from daiku.guard.rules.policy import SandboxState
from daiku.guard.sandbox import Bounds, sandbox_argv, sandbox_state
from daiku.guard.sandbox.aside import Before, before
from daiku.guard.sandbox.links import find_closed, find_linked
from daiku.tools.shell.environment import build_environment, find_environment
from daiku.tools.shell.gitsettings import (
    FOR_COMMANDS,
    NO_HOOKS,
    SIZE_AND_TIME,
    find_hidden_object,
    read_effective_settings,
    to_git_env,
)
from daiku.tools.shell.process import wrap_in_reaper
from daiku.tools.tool import Args, ToolContext
from daiku.workspace.paths import is_within
from daiku.workspace.programs import find_program
from daiku.workspace.repository import GitPlaces, find_git_places

if TYPE_CHECKING:
    from daiku.guard.sandbox.overlay import Layer

DEFAULT_SECONDS = 120.0
"""Seconds of the default timeout."""
MAX_SECONDS = 3600.0
"""Seconds of the longest timeout."""
DEFAULT_OUTPUT = 10_000
"""Tokens of output that a call gets by default."""
MAX_OUTPUT = 50_000
"""Tokens of output that a call can request."""
REFUSED = 126
"""Exit code of a command that was not started."""
NO_CD = (
    "Not run: `cd` is not allowed here, every command works in the project's folder. Name paths relative to it,"
    " or use the program's own option for a folder (`make -C sub`, `npm --prefix sub`, `git -C sub`)."
)


class RunArgs(Args):
    """A command line and its needs. `background`: do not wait for it."""

    command: str = Field(description="for bash")
    timeout: float = Field(default=DEFAULT_SECONDS, gt=0, le=MAX_SECONDS, description="seconds; else 120")
    background: bool = Field(default=False, description="go on without it; see shell__output")
    stdin: SkipJsonSchema[str | None] = Field(default=None, description="text that the program reads")
    network: bool = Field(default=False, description="internet; is asked about")
    terminal: bool = Field(default=False, description="it needs one")
    sandbox: bool = Field(default=True, description="false: all rights; is asked about")
    max_output: int = Field(default=DEFAULT_OUTPUT, ge=200, le=MAX_OUTPUT, description="tokens; else 10000")


@dataclass(frozen=True, slots=True)
class PreparedCommand:
    """A command ready to start.

    `argv`: as outside a sandbox. `bounds`: those of its sandbox (None: without). `guards`: changes to
    protected files were not approved. `masked`: files of secrets are hidden. `impostors`: programs that keep
    the project's Python environment off PATH. `history`: git folders that may contain the text of closed
    files.
    """

    command: str
    folder: Path
    argv: list[str]
    env: dict[str, str]
    state: SandboxState
    bounds: Bounds | None
    roots: tuple[Path, ...]
    guards: bool = True
    masked: bool = False
    impostors: tuple[str, ...] = ()
    history: tuple[Path, ...] = ()
    hides_history: bool = False
    """True to hide `history` if any files are closed."""


def build_refusal(text: str) -> ToolResult:
    """Return the result of a command that was not started, with the reason."""
    data: JsonObject = {"exitCode": REFUSED, "output": text, "durationMs": 0, "started": False}
    return ToolResult(ok=False, text=text, data=data)


def prepare(args: RunArgs, context: ToolContext) -> PreparedCommand | ToolResult:
    """Check the command and decide how it runs; a failing result says why it cannot run."""
    if reason := why_not_visible(args.command):
        return build_refusal(f"Not run: {reason}.")
    stripped = strip_cd(args.command)
    if stripped.refusal and not context.may_cd:
        return build_refusal(NO_CD)
    if stripped.refusal:
        return build_refusal(
            f"Not run: {stripped.refusal}. Run it from there with a path, or as `cd FOLDER && …`."
        )
    roots = context.workspace.roots
    if not roots:
        return build_refusal("Not run: no folder is open, so there is nowhere to run a command.")
    try:
        folder = context.workspace.locate(stripped.folder) if stripped.folder else roots[0]
    except DaikuError as error:
        return build_refusal(f"Not run: {error.failure.message}")
    if not folder.is_dir():
        return build_refusal(f"Not run: there is no folder {stripped.folder!r} in the workspace.")
    if not context.may_cd and (folder != roots[0] or changes_folder(stripped.command)):
        return build_refusal(NO_CD)
    state = sandbox_state(context.config.sandbox)
    if state == "refused" or (not args.sandbox and context.config.sandbox.mode == "strict"):
        return build_refusal(
            "Not run: the sandbox is set to strict, and there is none here. Install bubblewrap, or set sandbox.mode."
        )
    return _build_prepared(args, stripped.command, folder, state if args.sandbox else "off", context)


def _build_prepared(
    args: RunArgs, command: str, folder: Path, state: SandboxState, context: ToolContext
) -> PreparedCommand | ToolResult:
    roots = context.workspace.roots
    judgement = judge(command, build_rules(context, folder))
    network = args.network or judgement.network or context.config.sandbox.network
    # A command that only reads runs without approval, and needs no variables from the settings.
    passed_names = () if judgement.read_only else context.config.sandbox.environment
    venv, impostors = (None, ()) if judgement.read_only else find_environment(roots)
    env = build_environment(os.environ, roots, network=network, venv=venv, passed_names=passed_names)
    shell = find_program("bash", roots) or find_program("sh", roots)
    if not shell:
        return build_refusal("Not run: there is neither bash nor sh on PATH.")
    argv = [shell, *(("--noprofile", "--norc") if shell.endswith("bash") else ()), "-c", command]
    repository = find_git_places(folder, roots, objects=state != "on")
    settings = (*FOR_COMMANDS, *NO_HOOKS, *SIZE_AND_TIME) if judgement.read_only else FOR_COMMANDS
    if not isinstance(repository, str):
        git_config = read_effective_settings(folder, repository.common if repository else None, env)
        if git_config is None:
            return build_refusal("Not run: git does not come to the end of the settings of this repository.")
        # A sandbox hides the settings in the home folder, so the committer is passed as a value.
        settings = (*settings, *git_config.off, *(git_config.who if state == "on" else ()))
    env |= to_git_env(settings)
    if judgement.read_only and (refusal := _refuse_hidden_object(command, folder, repository, env, context)):
        return refusal
    if state != "on":
        env["TMPDIR"] = os.environ.get("TMPDIR", "/tmp")  # noqa: S108  # the system's own folder
        guards = not (judgement.protected or judgement.read_only)
        return PreparedCommand(
            *(command, folder, wrap_in_reaper(argv), env, state, None, roots, guards), impostors=impostors
        )
    bounds = _add_repository(
        Bounds(
            roots=roots,
            writable=tuple(Path(p).expanduser() for p in context.config.sandbox.write),
            network=network and not judgement.read_only,
            read_only=judgement.read_only,
            session=context.session,
        ),
        repository if isinstance(repository, GitPlaces) else None,
        judgement,
        command,
    )
    return PreparedCommand(
        *(command, folder, argv, env, state, bounds, roots, not judgement.protected, context.masked),
        impostors=impostors,
        history=_find_history(repository, judgement),
        hides_history=context.masked or (context.unseen and prints_history(command)),
    )


def _refuse_hidden_object(
    command: str, folder: Path, place: GitPlaces | str | None, env: dict[str, str], context: ToolContext
) -> ToolResult | None:
    if not isinstance(place, GitPlaces):
        return None

    def is_closed(path: Path) -> bool:
        return not context.consented and context.workspace.closed(path)

    word = find_hidden_object(command, folder, place.top, env, is_closed)
    if not word:
        return None
    return build_refusal(
        f"Not run: {word} names a file that .daikuignore closes, or the content of files without their path. Name a"
        " commit and the path of an open file, as in `git show HEAD:src/main.py` or `git diff HEAD~1 -- src`."
    )


_HIDDEN_HISTORY = (
    "Not run: this command of git may print files that .daikuignore closes. Commands that print no text of files work, such as"
    " add, commit, log --oneline, restore, stash, and push. For another, call again with sandbox: false; the person is asked."
)


def _find_history(place: GitPlaces | str | None, judged: Judgement) -> tuple[Path, ...]:
    if not isinstance(place, GitPlaces) or judged.read_only or judged.records:
        return ()
    # Without HEAD git fails at once. Otherwise it would delete a file before it misses the new content.
    parts = (place.folder / "HEAD", place.common / "objects", place.common / "modules")
    return tuple(part for part in parts if part.exists())


def _add_repository(bounds: Bounds, place: GitPlaces | None, judgement: Judgement, command: str) -> Bounds:
    """Add the parts of the workspace's repository outside the roots to `bounds`."""
    if place is None:
        return bounds
    real_roots = tuple(root.resolve() for root in bounds.roots)
    outside = place.outside(real_roots)
    is_above = not any(is_within(place.top, root) for root in real_roots)
    if not names_git(command):
        return replace(bounds, readable=() if judgement.read_only else outside)
    if not judgement.read_only and not place.shared:
        return replace(
            bounds, readable=(place.top,) if is_above else (), writable=(*bounds.writable, *outside)
        )
    if not judgement.read_only:
        return replace(bounds, readable=outside)
    top_folders = (
        (place.top,) if is_above and all(map(_only_reads_git, read_script(command).commands)) else ()
    )
    return replace(bounds, attributes=place.common / "info", readable=(*top_folders, *outside))


# Programs that usually follow git in a pipe and read its output.
_PIPE_PROGRAMS = frozenset(
    {"git", "head", "tail", "wc", "sort", "uniq", "cut", "tr", "cat", "grep", "nl", "echo", "true", "sed"}
)


def _only_reads_git(simple: SimpleCommand) -> bool:
    """Return True if the command only reads what git prints; then the parent repository may be readable.

    It must not reach other files by a link, a glob, or a recursive search.
    """
    if program_name(simple.words) == "git":
        return True
    searches = any(w.glob or re.match(r"-(?!-).*[rR]|--(?:rec|deref|dir)", w.text) for w in simple.words[1:])
    return program_name(simple.words) in _PIPE_PROGRAMS and not searches


def wrap_in_trial(prepared: PreparedCommand, layers: tuple[Layer, ...]) -> tuple[list[str], bool]:
    """Return the argv in a sandbox that discards writes, and True if files are hidden from the command.

    Blocks. Raises OSError.
    """
    from daiku.guard.sandbox.overlay import make_mount_points, trial_argv  # when used

    bounds = prepared.bounds
    assert bounds is not None, "a trial needs a sandbox"
    snapshot = before(bounds.roots)
    secrets = snapshot.list_places("secret")
    closed = find_closed(tuple(root.resolve() for root in bounds.roots), snapshot.marks["protected"])
    masked = bool(closed or secrets)
    bounds = replace(
        bounds,
        kept=snapshot.kept,
        sockets=snapshot.list_places("socket"),
        masked=secrets,
        closed=(*closed, *(prepared.history if masked else ())),
        network=False,
        writable=(),
        readable=(*bounds.readable, *bounds.writable),
    )
    make_mount_points(bounds, prepared.folder)
    return trial_argv(prepared.argv, bounds, prepared.folder, layers), masked


def wrap_in_sandbox(prepared: PreparedCommand) -> tuple[list[str], Before | None] | ToolResult:
    """Return the argv in its sandbox, and the state of protected files before the run; or the refusal.

    The state is None if they are not compared afterwards. Blocks briefly. Raises OSError.
    """
    bounds = prepared.bounds
    if bounds is None:
        return prepared.argv, before(prepared.roots) if prepared.guards else None
    earlier: Before | None = None
    if bounds.read_only:
        trees = [folder for folder in bounds.readable if not (folder / "HEAD").is_file()]
        snapshot = before((*bounds.roots, *trees))
        bounds = replace(bounds, masked=(*snapshot.list_places("secret"), *snapshot.list_places("socket")))
    elif prepared.guards:
        repositories = tuple(place for place in bounds.writable if (place / "HEAD").is_file())
        snapshot = earlier = before(bounds.roots, repositories)
        masked = earlier.list_places("secret") if prepared.masked else ()
        bounds = replace(bounds, kept=earlier.kept, sockets=earlier.list_places("socket"), masked=masked)
    else:
        snapshot = before(bounds.roots)
    roots = tuple(root.resolve() for root in bounds.roots)
    if not bounds.read_only:
        bounds = replace(
            bounds, linked=() if _only_installs(prepared.command, bounds) else find_linked(roots)
        )
    closed = find_closed(roots, snapshot.marks["protected"])
    if closed and prepared.hides_history:
        if prepared.history and prints_history(prepared.command):
            return build_refusal(_HIDDEN_HISTORY)
        closed = (*closed, *prepared.history)
    bounds = replace(bounds, closed=closed)
    return sandbox_argv(prepared.argv, bounds, prepared.folder), earlier


def _only_installs(command: str, bounds: Bounds) -> bool:
    """Return True if the command only installs packages, with network; an installation replaces hard links."""
    script = read_script(command)
    return bounds.network and not script.writes and all(is_installation((s,)) for s in script.commands)


def names_git(command: str) -> bool:
    """Return True if the line runs git."""
    return any(program_name(simple.words) == "git" for simple in read_script(command).commands)


def find_own_programs(prepared: PreparedCommand) -> tuple[str, ...]:
    """Return the paths of the programs that the command runs from the project's own environment."""
    environment = prepared.env.get("VIRTUAL_ENV")
    if environment is None:
        return ()
    names = dict.fromkeys(s.words[0].text for s in read_script(prepared.command).commands if s.words)
    places = (Path(environment) / "bin" / name for name in names if "/" not in name)
    return tuple(str(place) for place in places if place.is_file())


def build_rules(context: ToolContext, folder: Path) -> CommandRules:
    """Build the rules to judge a command in its context."""

    def resolve(path: str) -> str | None:
        try:
            return context.workspace.relative(context.workspace.locate(str(folder / path)))
        except (DaikuError, OSError, ValueError):
            return None

    return CommandRules(
        resolve=resolve,
        roots=(str(folder), *map(str, context.workspace.roots)),
        home=str(Path.home()),
        contained=True,
    )
