"""Settings, read and checked once: command line, environment, editor, workspace, user, defaults."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

from daiku.dataclass import dataclass, replace
from daiku.domain.base import JsonObject
from daiku.domain.errors import Failure, UsageError
from daiku.models.table import PROVIDERS
from daiku.settings.config import Config
from daiku.settings.environment import (
    FROM_ENVIRONMENT,
    MODELS,
    check_values,
    dotted,
    from_environment,
    known_keys,
    leaves,
    normalize_keys,
    secrets_of,
    set_value,
    with_keys,
)
from daiku.settings.trust import restrict_layer
from daiku.texts.text import Text, joined, text

__all__ = [
    "Loaded",
    "from_mapping",
    "home",
    "load",
    "private_file",
    "secrets_of",
    "user_file",
    "workspace_file",
]

MAX_FILE = 1_000_000
MOST_TOLD = 4
"""Problems that are told one by one; of the others the count."""
FOLDERS = ("logs", "traces", "checkpoints", "contexts")


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings, where each that is not a default comes from, and what to tell the person."""

    config: Config
    origins: Mapping[str, str]
    """Dotted key -> "command line", "environment NAME", "editor" or a file."""
    notices: tuple[Text, ...] = ()
    ignored: tuple[str, ...] = ()
    """Keys of the workspace's file that were left out because it is not trusted."""


def load(
    *,
    workspace: Path | None,
    trusted: bool,
    environ: Mapping[str, str],
    editor: JsonObject | None = None,
    overrides: JsonObject | None = None,
    asks_model: bool = True,
) -> Loaded:
    """Merge every layer. `editor` and `overrides` have the shape of the TOML file.

    Raises UsageError with every wrong key and value. Without `asks_model`, mistakes in `llm` are a notice, and choosing
    a model raises them. A project's `.env` is never read.
    """
    of_models, problems = list[Text](), list[Text]()
    origins: dict[str, str] = {}
    notices: list[Text] = []
    ignored: tuple[str, ...] = ()
    merged = _names_of_keys()

    def add(layer: JsonObject | None, where: str, names: Mapping[str, str] | None = None) -> None:
        _merge(merged, layer or {})
        for key, _ in leaves(layer or {}):
            origins[dotted(key)] = _variable(names[dotted(key)]) if names else where

    def check(data: JsonObject, where: str) -> JsonObject | None:
        return _check_layer(data, where, problems, of_models)

    user = user_file(environ)
    if (layer := check(_read_toml(user, problems), str(user))) is not None:
        of_models.extend(_keys_in_file(layer, user))
        add(layer, str(user))
    own = workspace_file(workspace)
    if own is not None and not problems and _stays_inside(own, workspace, notices):
        layer = check(_read_toml(own, problems), str(own))
        if layer is not None:
            layer, ignored = restrict_layer(layer, Config.model_validate(merged), trusted=trusted)
            notices.extend(_about_ignored(own, ignored, trusted))
            add(layer, str(own))
    add(check(_without_blanks(editor or {}), text("settings.from_editor")), "editor")
    layer, names = from_environment(environ, problems, of_models)
    add(check(layer, FROM_ENVIRONMENT), "environment", names)
    add(check(overrides or {}, text("settings.from_command_line")), "command line")
    if problems or (of_models and asks_model):
        raise _usage_error([*of_models, *problems])
    config, keys = with_keys(Config.model_validate(merged), environ)
    origins.update({key: _variable(name) for key, name in keys.items()})
    _check_together(config, origins)
    loaded = Loaded(config, origins, tuple(notices), ignored)
    return _refuse_models(loaded, of_models) if of_models else loaded


def _refuse_models(loaded: Loaded, problems: list[Text]) -> Loaded:
    """Return the settings with a notice of the problems, which every choice of a model raises."""
    mistake = _usage_error(problems).failure
    config = loaded.config.model_copy(update={MODELS: loaded.config.llm.refusing(mistake)})
    return replace(loaded, config=config, notices=(*loaded.notices, mistake.message))


def from_mapping(given: JsonObject, environ: Mapping[str, str]) -> Config:
    """Return the settings of a program that passes them itself, in the shape of the TOML file.

    No file is read, and of `environ` only the variables of models. Raises UsageError with every wrong key and value.
    """
    problems: list[Text] = []
    merged = _names_of_keys()
    addresses = {entry.address_env for entry in PROVIDERS.values()}
    of_models = {k: v for k, v in environ.items() if k in addresses or k.startswith("DAIKU_LLM__")}
    layer, _ = from_environment(of_models, problems, problems)
    _merge(merged, layer)
    if (checked := _check_layer(given, text("settings.from_program"), problems, problems)) is not None:
        _merge(merged, checked)
    if problems:
        raise _usage_error(problems)
    config, _ = with_keys(Config.model_validate(merged), environ)
    _check_together(config, {})
    return config


def _variable(name: str) -> Text:
    """Return the origin of a setting from an environment variable."""
    return text("settings.variable", name=name)


def home(environ: Mapping[str, str]) -> Path:
    """Create the folder of all state with its subfolders, readable by its owner only, and return it.

    Raises UsageError when it cannot be made.
    """
    import platformdirs  # when used

    named = environ.get("DAIKU_HOME", "").strip()
    folder = Path(named).expanduser() if named else platformdirs.user_data_path("daiku", appauthor=False)
    folder = Path(os.path.abspath(folder))  # noqa: PTH100  # resolve() would follow a link that we then chmod away from
    try:
        for path in (folder, *(folder / name for name in FOLDERS)):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) != 0o700:
                path.chmod(0o700)
    except OSError as wrong:
        raise UsageError(
            Failure(
                kind="usage",
                message=text("settings.home", folder=str(folder), what=wrong.strerror or ""),
                hint=text("settings.home.hint"),
            )
        ) from wrong
    return folder


def private_file(path: Path) -> Path:
    """Make sure that `path` exists and only its owner can read it, whatever the umask; the path."""
    handle = os.open(
        path, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0), 0o600
    )
    try:
        if hasattr(os, "fchmod"):
            os.fchmod(handle, 0o600)
    finally:
        os.close(handle)
    return path


def user_file(environ: Mapping[str, str]) -> Path:
    """Return the path of the user's `config.toml`, in the platform's folder for settings."""
    xdg = environ.get("XDG_CONFIG_HOME", "")
    if xdg and Path(xdg).is_absolute() and sys.platform != "win32":
        return Path(xdg) / "daiku" / "config.toml"
    import platformdirs  # when used

    return platformdirs.user_config_path("daiku", appauthor=False) / "config.toml"


def workspace_file(workspace: Path | None) -> Path | None:
    """Return the path of a workspace's settings; None without a workspace."""
    return workspace / ".daiku" / "config.toml" if workspace else None


def _read_toml(path: Path, problems: list[Text]) -> JsonObject:
    """Read a TOML file; empty if there is none. Pipes and huge files are refused unread."""
    import tomllib  # when used

    try:
        info = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as wrong:
        problems.append(text("settings.unread", path=str(path), what=wrong.strerror or ""))
        return {}
    if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_FILE:
        problems.append(text("settings.plain_file", path=str(path), most=MAX_FILE))
        return {}
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as wrong:
        problems.append(text("settings.unread", path=str(path), what=wrong.strerror or ""))
    except UnicodeDecodeError:
        problems.append(text("settings.utf8", path=str(path)))
    except (tomllib.TOMLDecodeError, RecursionError) as wrong:
        problems.append(text("settings.not_toml", path=str(path), what=str(wrong)))
    return {}


def _check_layer(
    data: JsonObject, where: str, problems: list[Text], of_models: list[Text]
) -> JsonObject | None:
    """Return the layer in snake_case, without what is wrong in its `llm`, or None if something else is wrong."""
    before = len(problems)
    rest = {name: value for name, value in data.items() if name != MODELS}
    layer = normalize_keys(rest, problems, where)
    check_values(layer, problems, where)
    models = {MODELS: data[MODELS]} if MODELS in data else {}
    for key, value in leaves(normalize_keys(models, of_models, where)):
        found: list[Text] = []
        alone: JsonObject = {}
        set_value(alone, key, value)
        check_values(alone, found, where)
        of_models += found
        if not found:
            _merge(layer, alone)
    return layer if len(problems) == before else None


def _stays_inside(path: Path, workspace: Path | None, notices: list[Text]) -> bool:
    """Return False, with a notice, if a link leads out of the workspace."""
    if workspace is None or path.resolve().is_relative_to(workspace.resolve()):
        return True
    notices.append(text("settings.leads_out", path=str(path)))
    return False


def _keys_in_file(layer: JsonObject, path: Path) -> list[Text]:
    return [
        text("settings.key_in_file", path=str(path), key=dotted(key))
        for key, _ in leaves(layer)
        if key[-1] == "api_key"
    ]


def _about_ignored(path: Path, ignored: tuple[str, ...], trusted: bool) -> list[Text]:
    if not ignored:
        return []
    names = ", ".join(ignored)
    if trusted:
        return [text("settings.ignored", path=str(path), names=names)]
    return [text("settings.ignored_untrusted", path=str(path), names=names)]


def _without_blanks(data: JsonObject) -> JsonObject:
    """Return the layer without blank values: an editor sends its defaults, which mean "not set here"."""
    return {
        key: _without_blanks(value) if isinstance(value, dict) else value
        for key, value in data.items()
        if value is not None and value != ""
    }


def _names_of_keys() -> JsonObject:
    """Return the default `api_key_env` of each provider, which a table with other keys must not lose."""
    return {"llm": {name: {"api_key_env": entry.settings.api_key_env} for name, entry in PROVIDERS.items()}}


def _merge(into: JsonObject, layer: JsonObject) -> None:
    for name, value in layer.items():
        present = into.get(name)
        if isinstance(present, dict) and isinstance(value, dict):
            _merge(present, value)
        else:
            into[name] = dict(value) if isinstance(value, dict) else value


def _check_together(config: Config, origins: Mapping[str, str]) -> None:
    """Check settings that are valid alone and invalid together."""
    rails = config.guardrails
    if rails.similarity_warn > rails.similarity_block:
        key = "guardrails.similarity_warn"
        where = origins.get(key) or origins.get("guardrails.similarity_block") or text("settings.defaults")
        other = f"guardrails.similarity_block ({rails.similarity_block})"
        raise _usage_error([text("settings.not_above", where=where, name=key, other=other)])
    try:
        config.storage.place(Path())
    except UsageError:  # the address itself is not shown: it may hold a password
        where = origins.get("storage.database_url", text("settings.defaults"))
        raise _usage_error([text("settings.database", where=where)]) from None


def _usage_error(problems: list[Text]) -> UsageError:
    more = [text("settings.more", count=len(problems) - MOST_TOLD)] if len(problems) > MOST_TOLD else []
    told = joined("clauses", [*problems[:MOST_TOLD], *more])
    return UsageError(
        Failure(kind="usage", message=text("settings.wrong", problems=told), hint=text("settings.all"))
    )


def every_key() -> tuple[str, ...]:
    """Return every setting as a dotted name, in the order of PROTOCOL 2."""
    return tuple(dotted(key) for key in known_keys())
