"""Which paths change what tools do later (protected), and which hold secrets, however they are spelled."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from itertools import pairwise
from urllib.parse import unquote

PROTECTED_FOLDERS: dict[str, str] = {
    ".git": "git's own files: hooks and settings in it run programs",
    ".hg": "Mercurial's own files: hooks in it run programs",
    ".svn": "Subversion's own files",
    ".vscode": "editor settings and tasks: they can run programs and grant approvals",
    ".idea": "editor settings and run configurations",
    ".zed": "editor settings and tasks",
    ".vs": "editor settings",
    ".daiku": "Daiku's own settings and rules",
    ".claude": "rules and hooks of an agent",
    ".codex": "rules and settings of an agent",
    ".cursor": "rules and settings of an agent",
    ".gemini": "rules and settings of an agent",
    ".continue": "rules and settings of an agent",
    ".roo": "rules and settings of an agent",
    ".clinerules": "rules of an agent",
    ".windsurf": "rules and settings of an agent",
    ".agents": "rules and settings of an agent",
    ".kiro": "rules and settings of an agent",
    ".husky": "hooks that git runs",
    ".githooks": "hooks that git runs",
    ".devcontainer": "what a container runs when the folder is opened",
    ".trae": "rules and settings of an agent",
    ".junie": "rules and settings of an agent",
    ".amazonq": "rules and settings of an agent",
    ".augment": "rules and settings of an agent",
    ".opencode": "rules and settings of an agent",
    ".qwen": "rules and settings of an agent",
    ".kilocode": "rules and settings of an agent",
    ".aiassistant": "rules and settings of an agent",
    ".cline": "rules and settings of an agent",
    ".mvn": "settings of a build tool: they can run programs",
    ".woodpecker": "continuous integration: it runs with the project's secrets",
    ".circleci": "continuous integration: it runs with the project's secrets",
    ".buildkite": "continuous integration: it runs with the project's secrets",
    ".ssh": "keys and settings of SSH",
    ".gnupg": "keys",
    ".aws": "credentials",
    ".azure": "credentials",
    ".kube": "credentials",
    ".docker": "credentials",
}
# The folder's parent matters: `workflows` alone is a common name.
PROTECTED_PAIRS: dict[tuple[str, str], str] = {
    (".github", "workflows"): "continuous integration: it runs with the project's secrets",
    (".github", "actions"): "continuous integration: it runs with the project's secrets",
    (".github", "instructions"): "rules of an agent",
    (".github", "prompts"): "prompts of an agent",
    (".github", "agents"): "rules of an agent",
    (".github", "chatmodes"): "rules of an agent",
    (".github", "hooks"): "hooks of an agent",
    (".gitlab", "ci"): "continuous integration: it runs with the project's secrets",
    (".github", "dependabot.yml"): "what a bot changes by itself",
    (".github", "dependabot.yaml"): "what a bot changes by itself",
    (".yarn", "releases"): "a package manager that the project brings along: it runs at every call",
    (".yarn", "plugins"): "a package manager that the project brings along: it runs at every call",
    ("gradle", "wrapper"): "settings of a build tool: they can run programs",
    (".cargo", "config.toml"): "settings of a build tool: they can run programs",
    (".cargo", "config"): "settings of a build tool: they can run programs",
    (".bundle", "config"): "settings of a package manager: they can run programs",
    (".config", "code"): "editor settings and tasks: they can run programs and grant approvals",
    (".config", "code - insiders"): "editor settings and tasks: they can run programs and grant approvals",
    (".config", "vscodium"): "editor settings and tasks: they can run programs and grant approvals",
    (".config", "cursor"): "editor settings and tasks: they can run programs and grant approvals",
    (".config", "windsurf"): "editor settings and tasks: they can run programs and grant approvals",
    ("application support", "code"): "editor settings and tasks: they can run programs and grant approvals",
    (
        "application support",
        "code - insiders",
    ): "editor settings and tasks: they can run programs and grant approvals",
    (
        "application support",
        "vscodium",
    ): "editor settings and tasks: they can run programs and grant approvals",
    ("application support", "cursor"): "editor settings and tasks: they can run programs and grant approvals",
    (
        "application support",
        "windsurf",
    ): "editor settings and tasks: they can run programs and grant approvals",
    ("roaming", "code"): "editor settings and tasks: they can run programs and grant approvals",
    ("roaming", "code - insiders"): "editor settings and tasks: they can run programs and grant approvals",
    ("roaming", "vscodium"): "editor settings and tasks: they can run programs and grant approvals",
    ("roaming", "cursor"): "editor settings and tasks: they can run programs and grant approvals",
    ("roaming", "windsurf"): "editor settings and tasks: they can run programs and grant approvals",
    (".vscode-server", "data"): "editor settings and tasks: they can run programs and grant approvals",
    (".config", "nvim"): "a start-up file of an editor",
    (".config", "direnv"): "a start-up file of the shell",
    (".forgejo", "workflows"): "continuous integration: it runs with the project's secrets",
    (".gitea", "workflows"): "continuous integration: it runs with the project's secrets",
    (".config", "git"): "git's settings: they run programs",
    (".config", "fish"): "a start-up file of the shell",
    (".config", "systemd"): "services that start by themselves",
    (".config", "autostart"): "programs that start by themselves",
}
_CI = "continuous integration: it runs with the project's secrets"
_AGENT = "rules that agents follow"
_SHELL = "a start-up file of the shell"
_PACKAGES = "settings of a package manager: they can run programs"
_HOOKS = "hooks that git runs"
PROTECTED_FILES: dict[str, str] = {
    "*.code-workspace": "a workspace file of the editor: its settings can run programs",
    "tasks.json": "tasks that the editor runs",
    "launch.json": "programs that the editor starts",
    "agents.md": _AGENT,
    "agents.override.md": _AGENT,
    "claude.md": _AGENT,
    "claude.local.md": _AGENT,
    "gemini.md": _AGENT,
    "qwen.md": _AGENT,
    "warp.md": _AGENT,
    "crush.md": _AGENT,
    "agent.md": _AGENT,
    "opencode.json*": _AGENT,
    ".aider.conf.y*ml": _AGENT,
    ".kilocoderules": _AGENT,
    "copilot-instructions.md": _AGENT,
    "*.instructions.md": _AGENT,
    ".cursorrules": _AGENT,
    ".windsurfrules": _AGENT,
    ".clinerules": _AGENT,
    ".roorules*": _AGENT,
    ".goosehints": _AGENT,
    ".rules": _AGENT,
    ".mcp.json": "MCP servers: programs that an agent starts",
    "mcp.json": "MCP servers: programs that an agent starts",
    "mcp_config.json": "MCP servers: programs that an agent starts",
    "cline_mcp_settings.json": "MCP servers: programs that an agent starts",
    ".daikuignore": "what is hidden from the agent",
    ".gitlab-ci.yml": _CI,
    ".gitlab-ci.yaml": _CI,
    "*.gitlab-ci.yml": _CI,
    "jenkinsfile": _CI,
    "azure-pipelines.y*ml": _CI,
    "bitbucket-pipelines.yml": _CI,
    ".travis.yml": _CI,
    ".drone.y*ml": _CI,
    ".appveyor.yml": _CI,
    "appveyor.yml": _CI,
    ".woodpecker.y*ml": _CI,
    "cloudbuild.y*ml": _CI,
    ".bashrc": _SHELL,
    ".bash_profile": _SHELL,
    ".bash_login": _SHELL,
    ".bash_logout": _SHELL,
    ".bash_aliases": _SHELL,
    ".profile": _SHELL,
    ".zshrc": _SHELL,
    ".zshenv": _SHELL,
    ".zprofile": _SHELL,
    ".zlogin": _SHELL,
    ".zlogout": _SHELL,
    ".kshrc": _SHELL,
    ".cshrc": _SHELL,
    ".tcshrc": _SHELL,
    ".inputrc": _SHELL,
    "config.fish": _SHELL,
    ".envrc": _SHELL,
    ".gdbinit": "a start-up file of a debugger",
    ".lldbinit": "a start-up file of a debugger",
    ".bazelrc": "settings of a build tool: they can run programs",
    ".bazeliskrc": "settings of a build tool: they can run programs",
    "gradle-wrapper.properties": "settings of a build tool: they can run programs",
    "gradle-wrapper.jar": "settings of a build tool: they can run programs",
    "init.gradle*": "settings of a build tool: they can run programs",
    "nuget.config": _PACKAGES,
    "codeowners": "who has to agree to a change",
    "renovate.json*": "what a bot changes by itself",
    ".renovaterc*": "what a bot changes by itself",
    ".gitpod.yml": "what a container runs when the folder is opened",
    ".vimrc": "a start-up file of an editor",
    ".exrc": "a start-up file of an editor",
    ".nvimrc": "a start-up file of an editor",
    ".nvim.lua": "a start-up file of an editor",
    ".dir-locals.el": "a start-up file of an editor",
    ".emacs": "a start-up file of an editor",
    ".gitconfig": "git's settings: they run programs",
    ".gitmodules": "git's submodules: where code is fetched from",
    ".gitattributes": "which programs git passes files through",
    ".hgrc": "Mercurial's settings: they run programs",
    ".npmrc": _PACKAGES,
    ".yarnrc": _PACKAGES,
    ".yarnrc.yml": _PACKAGES,
    ".pnpmfile.cjs": _PACKAGES,
    ".pnpmfile.mjs": _PACKAGES,
    "bunfig.toml": _PACKAGES,
    "pip.conf": _PACKAGES,
    "pip.ini": _PACKAGES,
    ".pypirc": _PACKAGES,
    ".condarc": _PACKAGES,
    "sitecustomize.py": "Python runs it at every start",
    "usercustomize.py": "Python runs it at every start",
    "*.pth": "Python runs it at every start",
    ".pre-commit-config.yaml": _HOOKS,
    "lefthook.y*ml": _HOOKS,
    ".lefthook.y*ml": _HOOKS,
    ".huskyrc*": _HOOKS,
    ".lintstagedrc*": _HOOKS,
    ".tool-versions": "which programs are run",
    ".mise.toml": "which programs are run",
    "mise.toml": "which programs are run",
    ".netrc": "credentials",
    ".env": "secrets and settings that programs load",
    ".env.*": "secrets and settings that programs load",
    ".crontab": "programs that run by themselves",
    "authorized_keys": "who may log in",
}
SECRET_FILES = (
    ".env", ".env.*", "*.env", ".envrc", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "identity", "*.pem", "*.key",
    "*.p12", "*.pfx", "*.p8", "*.ppk", "*.jks", "*.keystore", "*.kdbx", "*.ovpn", "*.asc", ".netrc", "_netrc", ".pgpass",
    ".my.cnf", ".pypirc", ".npmrc", ".git-credentials", ".htpasswd", "credentials", "credentials.*", "*credentials*.json",
    "service-account*.json", "service_account*.json", "client_secret*.json", "secrets.*", "secret.*", ".secrets",
    "*.tfvars", "*.tfstate", "terraform.rc", ".terraformrc", ".vault-token", "kubeconfig", ".dockercfg", "token.json",
    "master.key", "*.gpg", ".bash_history", ".zsh_history", ".python_history", "auth.json", "hosts.yml",
)  # fmt: skip
SECRET_SAMPLES = (
    ".env", ".env.local", ".env.production", "id_rsa", "id_ed25519", "server.pem", "server.key", "cert.p12", ".netrc",
    ".npmrc", ".pypirc", ".git-credentials", "credentials", "credentials.json", "secrets.yml", "secrets.json", ".ssh", ".aws",
    "terraform.tfvars", "kubeconfig",
)  # fmt: skip
"""Names that a pattern of a shell must not match for it to be harmless."""
SECRET_FOLDERS = frozenset(
    {".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".gcloud", ".password-store", ".secrets"}
)
PUBLIC_FILES = (
    "*.example",
    "*.sample",
    "*.template",
    "*.dist",
    "*.pub",
    "*.example.*",
    "example.*",
    "*.sample.*",
)
# Names of this shape are source code about secrets more often than secrets.
SOURCE_FILES = (
    "*.py",
    "*.ts",
    "*.tsx",
    "*.js",
    "*.jsx",
    "*.go",
    "*.rs",
    "*.java",
    "*.rb",
    "*.md",
    "*.html",
    "*.css",
)


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(translate(pattern) for pattern in patterns))


_SECRET, _PUBLIC, _SOURCE = _any_of(SECRET_FILES), _any_of(PUBLIC_FILES), _any_of(SOURCE_FILES)
_PROTECTED = _any_of(PROTECTED_FILES)
_SINKS = frozenset(["null", "zero", "full", "random", "urandom", "stdin", "stdout", "stderr", "tty"])
LONGEST_PATH = 4096
_STREAM = re.compile(r":[^/]*$")


@lru_cache(maxsize=2048)
def spellings(path: str) -> tuple[tuple[str, ...], ...]:
    """The folders and name that `path` can mean to some file system, lower-cased; `..` resolved.

    More than one where decoding (%2e, NFKC) changes it: a check has to hold for each.
    """
    if len(path) > LONGEST_PATH:
        return ()  # no file system takes it
    found: list[tuple[str, ...]] = []
    text = _visible(path.strip())
    for _ in range(4):
        parts = _parts(text)
        if parts not in found:
            found.append(parts)
        decoded = _visible(unquote(text))
        if decoded == text:
            break
        text = decoded
    return tuple(found)


def _visible(path: str) -> str:
    text = unicodedata.normalize("NFKC", path)
    return text if text.isascii() and text.isprintable() else "".join(c for c in text if _shows(c))


def _shows(char: str) -> bool:
    return unicodedata.category(char) not in ("Cf", "Cc", "Mn") or char == "\t"


def _parts(path: str) -> tuple[str, ...]:
    text = path.replace("\\", "/").casefold()
    if text.startswith("file:"):
        text = "/" + text.removeprefix("file:").lstrip("/")
    parts: list[str] = []
    for raw in text.split("/"):
        name = _STREAM.sub("", raw).strip()
        stripped = name.rstrip(". ")
        name = stripped or name
        if name in ("", "."):
            continue
        if name == "..":
            if parts:
                parts.pop()
        else:
            parts.append("." + name[:-2] if name in ("git~1", "git~2", "hg~1") else name)
    return tuple(parts)


def why_protected(path: str) -> str:
    """What makes changing `path` a matter for a person, or an empty string."""
    for parts in spellings(path):
        for name in parts:
            if name in PROTECTED_FOLDERS:
                return PROTECTED_FOLDERS[name]
        for pair in pairwise(parts):
            if pair in PROTECTED_PAIRS:
                return PROTECTED_PAIRS[pair]
        if not parts:
            continue
        name = parts[-1]
        if _PUBLIC.match(name):
            continue
        if _PROTECTED.match(name):
            return next(why for pattern, why in PROTECTED_FILES.items() if fnmatchcase(name, pattern))
        if parts[:1] in (("proc",), ("sys",), ("dev",)) and path.startswith("/") and not _is_sink(parts):
            return "the running system itself"
    return ""


def _is_sink(parts: tuple[str, ...]) -> bool:
    """True for the devices that hold nothing: what is written there is thrown away, or shown."""
    return parts[:1] == ("dev",) and len(parts) > 1 and (parts[1] in _SINKS or parts[1:2] == ("fd",))


def holds_secrets(path: str) -> bool:
    """True where `path` is named like a file of keys or passwords."""
    return any(_secret(parts) for parts in spellings(path))


def _secret(parts: tuple[str, ...]) -> bool:
    if not parts:
        return False
    name = parts[-1]
    if parts[:1] == ("proc",) and name in ("environ", "mem", "cmdline"):
        return True
    if _PUBLIC.match(name):
        return False
    if SECRET_FOLDERS & set(parts[:-1]) or name in SECRET_FOLDERS:
        return True
    if _SOURCE.match(name):
        return False
    return bool(_SECRET.match(name))


_SCHEMA = re.compile(r'"\$schema"\s*:\s*"\s*(?P<url>(?:[a-z][a-z0-9+.-]*:)?//[^"]*)"', re.IGNORECASE)
_KNOWN_SCHEMA = re.compile(
    r"https?://(?:json-schema\.org|(?:json|www)\.schemastore\.org|biomejs\.dev|turbo\.build|turborepo\.com|ui\.shadcn\.com)/[\w./-]*#?$",
    re.IGNORECASE,
)
_UNICODE_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
_INSTALL_HOOK = re.compile(
    r'"(?:preinstall|install|postinstall|prepare|preprepare|postprepare|prepublish|prepack|postpack|dependencies:?hook)"\s*:\s*"'
)


def why_content_matters(path: str, text: str) -> str:
    """What in `text`, once written to `path`, would make a tool fetch or run something by itself."""
    text = _UNICODE_ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
    names = {parts[-1] for parts in spellings(path) if parts}
    if any(not _KNOWN_SCHEMA.match(m["url"]) for m in _SCHEMA.finditer(text)):
        return "an editor that opens it would fetch its remote $schema"
    if "package.json" in names and _INSTALL_HOOK.search(text):
        return "the package manager would run its install script"
    return ""
