"""The environment of a command: what programs need by name, and nothing else of the person's."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from daiku.core.commands.readonly import PROGRAMS
from daiku.core.commands.wrappers import SHELLS
from daiku.core.guard.redact import Redactor
from daiku.core.text.patterns import lazy
from daiku.tools.shell.gitsettings import FOR_COMMANDS, git_settings
from daiku.workspace.programs import safe_path

# What passes, where its value holds no secret: the person, the language, the terminal, and where tools lie.
_PASSES = lazy(
    r"PATH|HOME|USER|LOGNAME|SHELL|PWD|TZ|LANG|LANGUAGE|LC_[A-Z]+|TERM|COLORTERM|NO_COLOR|COLUMNS|LINES|HOSTNAME|EDITOR|TMPDIR"
    r"|XDG_(?:CACHE|CONFIG|DATA|STATE)_HOME|XDG_(?:DATA|CONFIG)_DIRS|SSL_CERT_(?:FILE|DIR)|CURL_CA_BUNDLE|REQUESTS_CA_BUNDLE"
    r"|NODE_EXTRA_CA_CERTS|PIP_CERT|NIX_SSL_CERT_FILE|NIX_PATH|NIX_PROFILES|LOCALE_ARCHIVE|LD_LIBRARY_PATH|LIBRARY_PATH|CPATH"
    r"|C_INCLUDE_PATH|CPLUS_INCLUDE_PATH|PKG_CONFIG_PATH|CMAKE_PREFIX_PATH|CMAKE_GENERATOR|MANPATH|INFOPATH|ACLOCAL_PATH"
    r"|CC|CXX|CPP|LD|AR|AS|NM|RANLIB|STRIP|FC|CFLAGS|CXXFLAGS|CPPFLAGS|LDFLAGS|MAKEFLAGS|ARCHFLAGS|MACOSX_DEPLOYMENT_TARGET|SDKROOT"
    r"|DEVELOPER_DIR|CCACHE_DIR|SCCACHE_DIR|CI|DEBUG|VERBOSE|OMP_NUM_THREADS|CUDA_HOME|CUDA_PATH|CUDA_VISIBLE_DEVICES|ROCM_PATH"
    r"|JAVA_HOME|JDK_HOME|M2_HOME|MAVEN_HOME|GRADLE_HOME|GRADLE_USER_HOME|KOTLIN_HOME|SCALA_HOME|SBT_HOME|ANT_HOME|ANDROID_HOME"
    r"|ANDROID_SDK_ROOT|ANDROID_NDK_(?:HOME|ROOT)|GOPATH|GOROOT|GOBIN|GOCACHE|GOMODCACHE|GOFLAGS|GOOS|GOARCH|GOPROXY|GONOSUMDB"
    r"|GOSUMDB|GOTOOLCHAIN|GO111MODULE|CGO_ENABLED|CARGO_HOME|CARGO_TARGET_DIR|CARGO_BUILD_JOBS|CARGO_INCREMENTAL|RUSTUP_HOME"
    r"|RUSTUP_TOOLCHAIN|RUSTFLAGS|RUSTC|RUST_BACKTRACE|RUST_LOG|NODE_ENV|NODE_PATH|NVM_DIR|NVM_BIN|NVM_INC|FNM_[A-Z_]+|VOLTA_HOME"
    r"|N_PREFIX|PNPM_HOME|BUN_INSTALL|DENO_DIR|DENO_INSTALL|COREPACK_HOME|YARN_CACHE_FOLDER|NPM_CONFIG_(?:PREFIX|CACHE|REGISTRY)"
    r"|npm_config_(?:prefix|cache|registry)|PLAYWRIGHT_BROWSERS_PATH|PUPPETEER_(?:CACHE_DIR|EXECUTABLE_PATH)|CHROME_(?:BIN|PATH)"
    r"|CYPRESS_CACHE_FOLDER|ELECTRON_CACHE|PYENV_ROOT|PYENV_VERSION|PYTHONIOENCODING|PYTHONUTF8|PYTHONDONTWRITEBYTECODE"
    r"|PYTHONHASHSEED|PYTHONWARNINGS|CONDA_(?:PREFIX|DEFAULT_ENV|EXE|PYTHON_EXE|SHLVL)|MAMBA_ROOT_PREFIX|PIXI_HOME|PIPX_HOME"
    r"|PIPX_BIN_DIR|PIP_(?:CACHE_DIR|INDEX_URL)|POETRY_(?:HOME|CACHE_DIR)|PIPENV_[A-Z_]+|WORKON_HOME|UV_(?:CACHE_DIR|PYTHON|PYTHON_"
    r"INSTALL_DIR|INDEX_URL|PYTHON_PREFERENCE)|RBENV_ROOT|RBENV_VERSION|GEM_HOME|GEM_PATH|BUNDLE_PATH|RVM_PATH|rvm_path|SDKMAN_DIR"
    r"|ASDF_[A-Z_]+|MISE_[A-Z_]+|DOTNET_[A-Za-z_]+|NUGET_PACKAGES|MSBUILD[A-Za-z_]*|COMPOSER_HOME|PHPRC|ERL_LIBS|MIX_HOME|HEX_HOME"
    r"|MIX_ENV|OPAM[A-Z_]*|GHCUP_[A-Z_]+|STACK_ROOT|JULIA_DEPOT_PATH|R_HOME|R_LIBS(?:_USER)?|FLUTTER_ROOT|PUB_CACHE|HF_HOME"
    r"|HF_HUB_OFFLINE|TRANSFORMERS_CACHE|TORCH_HOME|SOURCE_DATE_EPOCH|RAILS_ENV|RACK_ENV|APP_ENV|DJANGO_SETTINGS_MODULE|FLASK_APP"
    r"|FLASK_ENV|ZDOTDIR|DEVCONTAINER|CODESPACES|WSL_DISTRO_NAME|GIT_(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL)|GIT_SSL_CAINFO"
    r"|SYSTEMROOT|SYSTEMDRIVE|WINDIR|COMSPEC|PATHEXT|TEMP|TMP|USERPROFILE|APPDATA|LOCALAPPDATA|PROGRAM(?:DATA|FILES|FILES\(X86\)|W6432)"
    r"|OS|PROCESSOR_ARCHITECTURE|NUMBER_OF_PROCESSORS"
)
SYSTEM_TOOLS = (frozenset(PROGRAMS) - {"rg", "fd", "fdfind", "jq", "tree"}) | (SHELLS - {"xonsh"}) | {
    "env", "sudo", "xargs", "nice", "timeout", "rm", "cp", "mv", "ln", "mkdir", "rmdir", "touch", "tee", "chmod", "curl", "wget",
    "ssh", "scp", "awk", "perl", "make", "tar",
}  # fmt: skip
"""Names that mean a tool of the system. Packages of Python bring others (rg, jq, cmake), but none of these."""
_LOCALE = lazy(r"LANG|LC_[A-Z]+")
_PLAIN_LOCALE = "C.UTF-8"
_PROXY = lazy(r"(?:https?|all|no|ftp)_proxy", re.IGNORECASE)
_LOGIN = lazy(r"://[^/\s@]*@")
_FIXED = {
    "TERM": "dumb",
    "PAGER": "cat",
    "MANPAGER": "cat",
    "GIT_PAGER": "cat",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PYTHONUNBUFFERED": "1",
}


def child_environment(
    environ: Mapping[str, str],
    roots: tuple[Path, ...],
    *,
    network: bool,
    venv: Path | None = None,
    named: tuple[str, ...] = (),
) -> dict[str, str]:
    """What a command is given of `environ`. `venv`: a Python environment that comes first on PATH. `named`: variables that the person's settings pass on, whatever they hold."""
    looks_secret = Redactor(())
    kept: dict[str, str] = {}
    for name, value in environ.items():
        if name in named:
            kept[name] = value
            continue
        proxy = _PROXY.fullmatch(name) is not None
        if not proxy and (_PASSES.fullmatch(name) is None or looks_secret(value) != value):
            continue
        if _LOGIN.search(value) and not (network and proxy):
            continue
        if _LOCALE.fullmatch(name) and not is_locale(value):
            # A shell warns of it in the output of every command.
            if not is_locale(_PLAIN_LOCALE):
                continue
            value = _PLAIN_LOCALE
        kept[name] = value
    kept.update(_FIXED)
    path = safe_path(_without_ours(environ.get("PATH") or os.defpath), roots)
    if venv is not None:
        kept["VIRTUAL_ENV"] = str(venv)
        path = f"{venv / 'bin'}{os.pathsep}{path}"
    kept["PATH"] = path
    kept["TMPDIR"] = "/tmp"  # noqa: S108  # inside the sandbox it is the command's own
    return {**kept, **git_settings(FOR_COMMANDS)}


@cache
def is_locale(name: str) -> bool:
    """Whether this machine has the locale `name`; True where that cannot be told."""
    if sys.platform != "linux":
        return True
    try:
        libc = ctypes.CDLL(None)
        libc.newlocale.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
        libc.newlocale.restype = ctypes.c_void_p
        libc.freelocale.argtypes = (ctypes.c_void_p,)
        made = libc.newlocale(1, os.fsencode(name), None)  # 1: the characters (LC_CTYPE)
    except (AttributeError, OSError, ValueError):
        return True
    if made:
        libc.freelocale(made)
    return bool(made)


def _without_ours(path: str) -> str:
    # The server's private Python environment is not the project's.
    if sys.prefix == sys.base_prefix:
        return path
    own = str(Path(sys.prefix) / "bin")
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if entry.rstrip("/") != own)


def own_environment(roots: tuple[Path, ...]) -> tuple[Path | None, tuple[str, ...]]:
    """Return the project's Python environment, None if unusable, and the programs because of which it is.
    These have names of system tools: whoever allows a command by such a name means another program."""
    found = next((v for root in roots for v in (root / ".venv", root / "venv") if is_environment(v)), None)
    try:
        names = os.listdir(found / "bin") if found else ()  # noqa: PTH208  # names
    except OSError:
        names = ()
    impostors = tuple(sorted(name for name in names if name.casefold() in SYSTEM_TOOLS))
    return None if impostors else found, impostors


def is_environment(folder: Path) -> bool:
    """True where `folder` is a Python environment."""
    return (folder / "pyvenv.cfg").is_file() and (folder / "bin" / "python").exists()
