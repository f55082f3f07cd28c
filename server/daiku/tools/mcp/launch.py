"""Start or reach a configured server: checks, description for consent, environment (without the MCP SDK)."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from daiku.dataclass import dataclass
from daiku.domain.config import MCPServerSettings
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import NO_TEXT, Text, joined, text

_REFERENCE = lazy(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class McpServerError(Exception):  # expected; each caller reports it to the model or the user
    """A server could not be reached, ended, or returned an error; `str` is a message for the user."""

    def __init__(self, message: Text, *, is_lost: bool) -> None:
        super().__init__(message)
        self.message = message
        self.is_lost = is_lost
        """True if the connection can no longer be used."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A server as configured. `problem`: why it is unusable; `digest`: a hash of what is started or reached."""

    settings: MCPServerSettings
    roots: tuple[Path, ...]
    problem: Text = NO_TEXT
    folder: Path | None = None
    """Working folder if no folder is open; None: the home folder."""

    @property
    def name(self) -> str:
        return self.settings.mcp_server_name

    @property
    def digest(self) -> str:
        from daiku.tools.mcp.definitions import hash_text  # when used

        s = self.settings
        return hash_text(
            json.dumps([s.command, s.url, s.env, s.headers, s.oauth.model_dump()], sort_keys=True)
        )

    @property
    def cwd(self) -> Path:
        return self.roots[0] if self.roots else self.folder or Path.home()

    @property
    def preview(self) -> Text:
        """Exactly what will be started or reached, for the user's consent."""
        s = self.settings
        if s.url:
            lines = [text("mcp.connect"), f"  {_escape_hidden(s.url)}"]
            scheme, host = _split_url(s.url)
            if scheme == "http" and host not in ("localhost", "127.0.0.1", "::1"):
                lines.append(text("mcp.unencrypted"))
            if s.headers:
                lines.append(
                    text("mcp.with_headers", names=", ".join(map(_escape_hidden, sorted(s.headers))))
                )
            return joined("lines", lines)
        lines = [
            text("mcp.start"),
            f"  {_escape_hidden(shlex.join(s.command))}",
            text("mcp.in_folder", folder=str(self.cwd)),
        ]
        if s.env:
            lines.append(text("mcp.with_environment", names=", ".join(map(_escape_hidden, sorted(s.env)))))
        return joined("lines", lines)

    def build_argv(self, environ: Mapping[str, str]) -> list[str]:
        """Return the command with its program's full path, found on PATH without the workspace's folders."""
        from daiku.workspace.programs import find_configured_program  # when used

        program, *arguments = self.settings.command
        if "/" in program or os.sep in program:
            place = Path(program).expanduser()
            return [str(place if place.is_absolute() else self.cwd / place), *arguments]
        path = find_configured_program(program, self.roots, environ.get("PATH") or os.defpath)
        if not path:
            raise McpServerError(text("mcp.no_program", name=repr(program)), is_lost=True)
        return [path, *arguments]

    def build_environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Build the environment of the program: the variables that its settings name, and no keys of ours."""
        from daiku.tools.shell.environment import build_environment  # when used

        configured = {name: expand_env(value, environ) for name, value in self.settings.env.items()}
        return {**build_environment(environ, self.roots, network=True), **configured}

    def build_headers(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Build the headers of every request to the server."""
        return {name: expand_env(value, environ) for name, value in self.settings.headers.items()}


def build_launches(
    servers: tuple[MCPServerSettings, ...], roots: tuple[Path, ...], folder: Path | None = None
) -> tuple[Launch, ...]:
    """Check the configured servers. A second one of the same name is unusable.

    `folder`: the working folder if no folder is open.
    """
    checked: list[Launch] = []
    for settings in servers:
        is_duplicate = any(other.name == settings.mcp_server_name for other in checked)
        problem = text("mcp.name_taken") if is_duplicate else _find_problem(settings)
        checked.append(Launch(settings, roots, problem, folder))
    return tuple(checked)


def find_token_path(home: Path, url: str) -> Path:
    """Return the path of the stored sign-in to `url`."""
    from daiku.tools.mcp.definitions import hash_text  # when used

    return home / "mcp" / f"{hash_text(url)}.json"


def expand_env(value: str, environ: Mapping[str, str]) -> str:
    """Replace `${NAME}` by the environment variable, empty if unset. Secrets need not be in a file."""
    return _REFERENCE.sub(lambda match: environ.get(match[1], ""), value)


def _split_url(url: str) -> tuple[str, str]:
    """Return the scheme and host; both empty if `url` is invalid."""
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname or ""
    except ValueError:
        return "", ""


def _find_problem(settings: MCPServerSettings) -> Text:
    from daiku.tools.mcp.definitions import RESERVED, SERVER_NAME  # when used

    name = settings.mcp_server_name
    if not SERVER_NAME.fullmatch(name) or name in RESERVED:
        return text("mcp.wrong_name")
    if bool(settings.command) == bool(settings.url):
        return text("mcp.command_or_url")
    scheme, host = _split_url(settings.url)
    if settings.url and (scheme not in ("http", "https") or not host):
        return text("mcp.wrong_url")
    if settings.command and not settings.command[0].strip():
        return text("mcp.empty_command")
    return NO_TEXT


def _escape_hidden(text: str) -> str:
    """Escape invisible characters."""
    from daiku.tools.mcp.definitions import remove_hidden  # when used

    return "".join(
        c if remove_hidden(c) == c and c not in "\n\t" else c.encode("unicode_escape").decode() for c in text
    )
