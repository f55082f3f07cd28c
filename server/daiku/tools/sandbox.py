"""Where commands run: bubblewrap when it works here, with what they may write, see and reach."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from daiku.core.guard import SandboxState
from daiku.core.protected import holds_secrets
from daiku.domain.config import SandboxSettings

PROBE_SECONDS = 10
_KEPT_CAPABILITIES = (
    "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_NET_BIND_SERVICE",
)  # fmt: skip
SECRET_PLACES = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh", ".config/glab-cli", ".config/hub",
    ".config/op", ".config/rclone", ".config/doctl", ".config/heroku", ".config/google-chrome", ".config/chromium",
    ".config/Code/User/globalStorage", ".mozilla", ".thunderbird", ".password-store", ".local/share/keyrings", ".netrc",
    ".git-credentials", ".pypirc", ".pgpass", ".my.cnf", ".vault-token", ".terraform.d", ".cargo/credentials.toml", ".codex",
    ".claude", ".gemini", ".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history",
)  # fmt: skip
# What in a workspace changes what tools do later.
PROTECTED_PLACES = (
    ".git/hooks", ".git/config", ".git/config.worktree", ".git/info/attributes", ".vscode", ".idea", ".zed", ".daiku", ".claude",
    ".codex", ".cursor", ".gemini", ".husky", ".githooks", ".devcontainer", ".github/workflows", ".github/actions",
    ".github/copilot-instructions.md", ".gitlab-ci.yml", ".circleci", "AGENTS.md", "CLAUDE.md", "GEMINI.md", ".cursorrules",
    ".mcp.json", ".envrc", ".npmrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pre-commit-config.yaml", "lefthook.yml", ".gitattributes",
    ".gitmodules", ".daikuignore",
)  # fmt: skip
_RESOLVER = (
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
    "/run/current-system",
    "/run/opengl-driver",
)
LOOKED_AT = 4000


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a command may do. `writable` folders; `network`; `read_only`: nothing is written at all;
    `protected`: the protected places in the writable folders stay as they are; `git`: the repository's
    own settings may change, as git does when it makes a branch."""

    roots: tuple[Path, ...]
    writable: tuple[Path, ...] = ()
    network: bool = False
    read_only: bool = False
    protected: bool = True
    git: bool = False


def sandbox_state(settings: SandboxSettings) -> SandboxState:
    """What the guard needs to know: is there a sandbox, and is that as the person wants it."""
    if settings.mode == "off":
        return "off"
    if bubblewrap():
        return "on"
    return "refused" if settings.mode == "strict" else "missing"


def bubblewrap() -> str:
    """The path of a bubblewrap that works here, really tried; empty where there is none."""
    found = shutil.which("bwrap", path=safe_path(os.environ.get("PATH", os.defpath), ()))
    return found if found and _works(found) else ""


@cache
def _works(bwrap: str) -> bool:
    try:
        with tempfile.TemporaryDirectory(prefix="daiku-") as folder:
            bounds = Bounds(roots=(Path(folder),))
            argv = [
                *_arguments(bwrap, bounds, Path(folder), Path(folder)),
                "sh",
                "-c",
                "echo > probe && ! touch /probe 2>&-",
            ]
            done = subprocess.run(
                argv,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PROBE_SECONDS,
                check=False,
            )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


@cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    # One for the server's life: what one command leaves in /tmp the next one finds; it goes when the server ends.
    return tempfile.TemporaryDirectory(prefix="daiku-tmp-")


def contained(argv: list[str], bounds: Bounds, cwd: Path) -> list[str]:
    """`argv` inside the sandbox. Raises OSError when there is no temporary folder."""
    return [*_arguments(bubblewrap(), bounds, cwd, Path(_scratch().name)), *argv]


def _arguments(bwrap: str, bounds: Bounds, cwd: Path, scratch: Path) -> list[str]:
    roots = [root.resolve() for root in bounds.roots]
    hidden = [place for place in _secret_places() if not any(_within(place, w) for w in bounds.writable)]
    around = [place for place in hidden if any(_within(root, place) for root in roots)]
    options = [bwrap, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run"]
    for place in _RESOLVER:
        options += ["--ro-bind-try", place, place]
    if Path("/dev/shm").is_dir():  # noqa: S108  # a mount point, not a file of ours
        options += ["--tmpfs", "/dev/shm"]  # noqa: S108  # likewise
    options += ["--bind", str(scratch), "/tmp"]  # noqa: S108  # likewise
    options += _hide(around)
    bind = "--ro-bind" if bounds.read_only else "--bind"
    for place in dict.fromkeys((*roots, *(w.resolve() for w in bounds.writable))):
        if place.exists() and str(place) != "/tmp":  # noqa: S108  # likewise
            options += [bind, str(place), str(place)]
    options += _hide(place for place in hidden if place not in around)
    if bounds.read_only:
        options += _hide(_secrets_inside(roots))
    elif bounds.protected:
        options += _keep(roots, git=bounds.git)
    options += ["--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--chdir", str(cwd)]
    if not bounds.network or bounds.read_only:
        options.append("--unshare-net")
    if os.geteuid() == 0:
        options += ["--cap-drop", "ALL"]
        for capability in _KEPT_CAPABILITIES:
            options += ["--cap-add", capability]
    return [*options, "--"]


def _within(place: Path, folder: Path) -> bool:
    return place == folder or folder in place.parents


def _secret_places() -> list[Path]:
    home = Path.home()
    places = [home / name for name in SECRET_PLACES]
    if own := os.environ.get("DAIKU_HOME"):
        places.append(Path(own))
    data = os.environ.get("XDG_DATA_HOME") or str(home / ".local/share")
    config = os.environ.get("XDG_CONFIG_HOME") or str(home / ".config")
    state = os.environ.get("XDG_STATE_HOME") or str(home / ".local/state")
    places += [Path(data) / "daiku", Path(config) / "daiku", Path(state) / "daiku"]
    return [real for place in places if place.exists() for real in (place.resolve(),)]


def _hide(places: Iterable[Path]) -> Iterator[str]:
    for place in places:
        if place.is_dir():
            yield from ("--tmpfs", str(place))
        else:
            yield from ("--ro-bind", "/dev/null", str(place))


def _keep(roots: list[Path], *, git: bool) -> Iterator[str]:
    for root in roots:
        places = existing_protected(root)
        # A folder that is a mount point cannot be moved away and put up anew around what it protects.
        for folder in dict.fromkeys(place.parent for place in places if place.parent != root):
            yield from ("--bind", str(folder), str(folder))
        for place in places:
            if not (git and place.parent.name == ".git" and place.name.startswith("config")):
                yield from ("--ro-bind", str(place), str(place))


def existing_protected(root: Path) -> list[Path]:
    """The protected places of a workspace folder that are there, links left out."""
    places = [root / name for name in PROTECTED_PLACES]
    places += root.glob("*.code-workspace")
    return [place for place in places if place.exists() and place.resolve() == place]


def _secrets_inside(roots: list[Path]) -> Iterator[Path]:
    """Files of secrets near the top of the workspace: what only reads has no business with them."""
    looked = 0
    for root in roots:
        for folder, folders, files in os.walk(root):
            here = Path(folder)
            depth = len(here.relative_to(root).parts)
            folders[:] = (
                [f for f in folders if f not in ("node_modules", ".git", ".venv", "venv")]
                if depth < 2
                else []
            )
            for name in files:
                looked += 1
                if looked > LOOKED_AT:
                    return
                if holds_secrets(name) and not (here / name).is_symlink():
                    yield here / name


def safe_path(path: str, roots: tuple[Path, ...]) -> str:
    """`path` (as of PATH) without relative folders and without folders of the workspace."""
    kept: list[str] = []
    for entry in path.split(os.pathsep):
        folder = Path(entry)
        if not entry or not folder.is_absolute():
            continue
        real = folder.resolve()
        if not any(_within(real, root.resolve()) or _within(folder, root) for root in roots):
            kept.append(entry)
    return os.pathsep.join(dict.fromkeys(kept))
