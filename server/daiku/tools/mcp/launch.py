"""How one configured server is started or reached: checked, described for consent, opened; no SDK here."""

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


class McpServerError(Exception):  # expected; every caller turns it into words for the model or the person
    """A server could not be reached, ended, or answered with an error; `str` says what, for people."""

    def __init__(self, why: Text, *, gone: bool) -> None:
        super().__init__(why)
        self.why = why
        self.gone = gone
        """The connection is of no more use."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A server as its settings say. `problem` says why it cannot be used at all; `digest` stands for
    all that is started or reached, so that a change of it is seen."""

    settings: MCPServerSettings
    roots: tuple[Path, ...]
    problem: Text = NO_TEXT
    folder: Path | None = None
    """Where it starts when no folder is open; None: in the person's home."""

    @property
    def name(self) -> str:
        return self.settings.mcp_server_name

    @property
    def digest(self) -> str:
        from daiku.tools.mcp.definitions import digest_of  # when used

        s = self.settings
        return digest_of(
            json.dumps([s.command, s.url, s.env, s.headers, s.oauth.model_dump()], sort_keys=True)
        )

    @property
    def cwd(self) -> Path:
        return self.roots[0] if self.roots else self.folder or Path.home()

    @property
    def preview(self) -> Text:
        """Exactly what will be started or reached, for the person who is to allow it."""
        s = self.settings
        if s.url:
            lines = [text("mcp.connect"), f"  {_plain(s.url)}"]
            scheme, host = _scheme_and_host(s.url)
            if scheme == "http" and host not in ("localhost", "127.0.0.1", "::1"):
                lines.append(text("mcp.unencrypted"))
            if s.headers:
                lines.append(text("mcp.with_headers", names=", ".join(map(_plain, sorted(s.headers)))))
            return joined("lines", lines)
        lines = [
            text("mcp.start"),
            f"  {_plain(shlex.join(s.command))}",
            text("mcp.in_folder", folder=str(self.cwd)),
        ]
        if s.env:
            lines.append(text("mcp.with_environment", names=", ".join(map(_plain, sorted(s.env)))))
        return joined("lines", lines)

    def argv(self, environ: Mapping[str, str]) -> list[str]:
        """The command with its program found: on PATH without the workspace's folders, or by its path.
        Raises Broken."""
        from daiku.workspace.programs import find_configured_program  # when used

        program, *rest = self.settings.command
        if "/" in program or os.sep in program:
            place = Path(program).expanduser()
            return [str(place if place.is_absolute() else self.cwd / place), *rest]
        found = find_configured_program(program, self.roots, environ.get("PATH") or os.defpath)
        if not found:
            raise McpServerError(text("mcp.no_program", name=repr(program)), gone=True)
        return [found, *rest]

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """What the program is given: no keys of ours, and what its settings name."""
        from daiku.tools.shell.environment import child_environment  # when used

        own = {name: expand_env(value, environ) for name, value in self.settings.env.items()}
        return {**child_environment(environ, self.roots, network=True), **own}

    def headers(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The headers of every request to the server."""
        return {name: expand_env(value, environ) for name, value in self.settings.headers.items()}


def launches(
    servers: tuple[MCPServerSettings, ...], roots: tuple[Path, ...], folder: Path | None = None
) -> tuple[Launch, ...]:
    """Every configured server, checked; the second of a name cannot be used. `folder` is where they start when no
    folder is open."""
    found: list[Launch] = []
    for settings in servers:
        seen = any(other.name == settings.mcp_server_name for other in found)
        problem = text("mcp.name_taken") if seen else _problem(settings)
        found.append(Launch(settings, roots, problem, folder))
    return tuple(found)


def token_file(home: Path, url: str) -> Path:
    """Where the sign-in to `url` is kept."""
    from daiku.tools.mcp.definitions import digest_of  # when used

    return home / "mcp" / f"{digest_of(url)}.json"


def expand_env(value: str, environ: Mapping[str, str]) -> str:
    """`value` with `${NAME}` taken from the environment, so that no secret need stand in a file; a name
    that is not set is the empty text."""
    return _REFERENCE.sub(lambda found: environ.get(found[1], ""), value)


def _scheme_and_host(url: str) -> tuple[str, str]:
    """Both empty where `url` is no address."""
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname or ""
    except ValueError:
        return "", ""


def _problem(settings: MCPServerSettings) -> Text:
    from daiku.tools.mcp.definitions import RESERVED, SERVER_NAME  # when used

    name = settings.mcp_server_name
    if not SERVER_NAME.fullmatch(name) or name in RESERVED:
        return text("mcp.wrong_name")
    if bool(settings.command) == bool(settings.url):
        return text("mcp.command_or_url")
    scheme, host = _scheme_and_host(settings.url)
    if settings.url and (scheme not in ("http", "https") or not host):
        return text("mcp.wrong_url")
    if settings.command and not settings.command[0].strip():
        return text("mcp.empty_command")
    return NO_TEXT


def _plain(text: str) -> str:
    """Nothing hidden: characters that cannot be seen are escaped."""
    from daiku.tools.mcp.definitions import visible  # when used

    return "".join(
        c if visible(c) == c and c not in "\n\t" else c.encode("unicode_escape").decode() for c in text
    )
