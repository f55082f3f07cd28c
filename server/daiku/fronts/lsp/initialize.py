"""The params and result of `initialize` in plain JSON, without heavy imports."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from daiku.dataclass import dataclass
from daiku.fronts.lsp.methodnames import METHODS
from daiku.version import COMMANDS, PROTOCOL, __version__

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | int | float | bool | None"
ENCODINGS = ("utf-16", "utf-8", "utf-32")
FIX, REWRITE, SOURCE = "quickfix", "refactor.rewrite", "source"
"""Kinds of our code actions."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Capabilities of the client; everything unspecified is False."""

    encoding: str = "utf-16"
    process_id: int | None = None
    folders: tuple[str, ...] = ()
    """Paths of the workspace folders."""
    settings: Json = None
    trusted: bool | None = None
    """None if the client does not say whether it trusts the workspace."""
    locale: str = "en"
    approvals: bool = False
    language_model: bool = False
    editor: bool = False
    commands: bool = False
    configuration: bool = False
    apply_edit: bool = False
    document_changes: bool = False
    resources: frozenset[str] = frozenset()
    """Supported resource operations in documentChanges: `create`, `rename`, `delete`."""
    annotations: bool = False
    metadata: bool = False
    progress: bool = False
    action_literals: bool = False
    """True if the client supports code action literals; else it gets plain commands."""
    lazy_actions: bool = False
    """True if the client resolves the command of a code action on selection."""


def find_problems(params: Json) -> list[str]:
    """Return all problems of the params of `initialize`; empty if they are valid."""
    if not isinstance(params, dict):
        return [f"params must be an object, not {_kind(params)}"]
    expected: tuple[tuple[str, tuple[type, ...]], ...] = (
        ("processId", (int, type(None))),
        ("rootPath", (str, type(None))),
        ("rootUri", (str, type(None))),
        ("locale", (str, type(None))),
        ("capabilities", (dict, type(None))),
        ("initializationOptions", (dict, list, str, int, float, type(None))),
        ("workspaceFolders", (list, type(None))),
    )
    messages = [
        f"{name} has the wrong type: {_kind(params[name])}"
        for name, types in expected
        if name in params and (not isinstance(params[name], types) or isinstance(params[name], bool))
    ]
    folders = params.get("workspaceFolders")
    for index, folder in enumerate(folders if isinstance(folders, list) else ()):
        if not isinstance(folder, dict) or not isinstance(folder.get("uri"), str):
            messages.append(f"workspaceFolders[{index}] must be an object with a uri")
    if isinstance(options := params.get("initializationOptions"), dict):
        messages += _option_problems(options)
    return messages


def _option_problems(options: Mapping[str, Json]) -> list[str]:
    trusted = options.get("trusted")
    if trusted is not None and not isinstance(trusted, bool):
        return [f"initializationOptions.trusted must be true or false, not {_kind(trusted)}"]
    client = options.get("client")
    if client is not None and not isinstance(client, dict):
        return [f"initializationOptions.client must be an object, not {_kind(client)}"]
    return [
        f"initializationOptions.client.{name} must be true or false, not {_kind(client[name])}"
        for name in ("approvals", "languageModel", "editor", "commands")
        if client and name in client and not isinstance(client[name], bool)
    ]


def read_offer(params: Mapping[str, Json]) -> Offer:
    """Return the client's capabilities. `params` must have no problems."""
    options = _dict(params.get("initializationOptions"))
    client = _dict(options.get("client"))
    capabilities = _dict(params.get("capabilities"))
    workspace = _dict(capabilities.get("workspace"))
    window = _dict(capabilities.get("window"))
    edit = _dict(workspace.get("workspaceEdit"))
    resources = edit.get("resourceOperations")
    action = _dict(_dict(capabilities.get("textDocument")).get("codeAction"))
    resolved = _dict(action.get("resolveSupport")).get("properties")
    locale = client.get("locale") or params.get("locale")
    return Offer(
        encoding=_encoding(capabilities),
        process_id=pid if isinstance(pid := params.get("processId"), int) else None,
        folders=_folders(params),
        settings=options.get("settings"),
        trusted=trusted if isinstance(trusted := options.get("trusted"), bool) else None,
        locale=locale if isinstance(locale, str) else "en",
        approvals=client.get("approvals") is True,
        language_model=client.get("languageModel") is True,
        editor=client.get("editor") is True,
        commands=client.get("commands") is True,
        configuration=workspace.get("configuration") is True,
        apply_edit=workspace.get("applyEdit") is True,
        document_changes=edit.get("documentChanges") is True,
        resources=frozenset(r for r in resources if isinstance(r, str))
        if isinstance(resources, list)
        else frozenset(),
        annotations=isinstance(edit.get("changeAnnotationSupport"), dict),
        metadata=edit.get("metadataSupport") is True,
        progress=window.get("workDoneProgress") is True,
        action_literals=isinstance(action.get("codeActionLiteralSupport"), dict),
        lazy_actions=action.get("dataSupport") is True
        and isinstance(resolved, list)
        and "command" in resolved,
    )


def initialize_result(offer: Offer) -> Mapping[str, Json]:
    """Return the result of `initialize`; a test checks that it equals what pygls computes."""
    return {
        "capabilities": {
            "positionEncoding": offer.encoding,
            "textDocumentSync": {"openClose": True, "change": 2, "save": False},
            "codeActionProvider": {"codeActionKinds": [FIX, REWRITE, SOURCE], "resolveProvider": True},
            # A client that registers the commands itself must not register them twice.
            "executeCommandProvider": {"commands": [] if offer.commands else list(COMMANDS)},
            "workspace": {
                "workspaceFolders": {"supported": True, "changeNotifications": True},
                "fileOperations": {},
            },
            "experimental": {
                "daiku": {
                    "version": __version__,
                    "protocol": PROTOCOL,
                    "methods": list(METHODS),
                    "commands": list(COMMANDS),
                }
            },
        },
        "serverInfo": {"name": "daiku", "version": __version__},
    }


def to_path(uri: str) -> str | None:
    """Return the path of a `file:` URI or of a bare path; None for other schemes."""
    parts = urlsplit(uri)
    if parts.scheme not in ("file", ""):
        # `C:\\x` parses as scheme `c`
        return uri if os.name == "nt" and len(parts.scheme) == 1 else None
    path = unquote(parts.path if parts.scheme else uri)
    if parts.netloc and parts.netloc != "localhost":
        path = f"//{parts.netloc}{path}"
    elif os.name == "nt" and len(path) > 2 and path[0] == "/" and path[2] == ":":
        path = path[1:]
    return path


def _folders(params: Mapping[str, Json]) -> tuple[str, ...]:
    folders = params.get("workspaceFolders")
    uris = [_dict(f).get("uri") for f in folders] if isinstance(folders, list) else []
    uris = uris or [params.get("rootUri") or params.get("rootPath")]
    return tuple(path for uri in uris if isinstance(uri, str) and uri and (path := to_path(uri)))


def _encoding(capabilities: Mapping[str, Json]) -> str:
    requested = _dict(capabilities.get("general")).get("positionEncodings")
    supported = [e for e in ENCODINGS if e in requested] if isinstance(requested, list) else []
    return min(supported, key=requested.index) if supported and isinstance(requested, list) else "utf-16"


def _dict(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _kind(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"
