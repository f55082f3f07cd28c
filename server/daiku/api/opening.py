"""What client and server tell each other at `initialize`."""

from __future__ import annotations

from daiku.domain.base import JsonObject, Wire


class ClientOffer(Wire):
    """`initializationOptions.client`: what the client does itself."""

    approvals: bool = False
    language_model: bool = False
    editor: bool = False
    commands: bool = False
    """True: the client registers the commands itself; the server does not announce them a second time."""
    locale: str | None = None


class InitializationOptions(Wire):
    """`settings` has the shape of the TOML file (PROTOCOL 2)."""

    settings: JsonObject | None = None
    client: ClientOffer | None = None
    trusted: bool | None = None
    """False: the workspace is not trusted, its own settings file may loosen nothing. Absent: as in the
    terminal, only the settings file of a folder that was trusted by `daiku config trust` may."""


class ServerOffer(Wire):
    """`capabilities.experimental.daiku` of the initialize answer."""

    version: str
    protocol: int
    methods: tuple[str, ...]
    commands: tuple[str, ...]
