"""Modules that a workspace's manifests declare: npm packages, path aliases, Go modules, Rust crates."""

from __future__ import annotations

import json
import posixpath
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import cast

from daiku.dataclass import dataclass, field

_MANIFEST = re.compile(r"(?:^|/)(?:package\.json|[jt]sconfig(?:\.[\w.-]+)?\.json|go\.mod|Cargo\.toml)$")
_GO_MODULE = re.compile(r"^module\s+(\S+)", re.MULTILINE)
_COMMENTS = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])', re.DOTALL)


def is_manifest(path: str) -> bool:
    """Return True if a file of this name declares modules."""
    return _MANIFEST.search(path) is not None


def folder_of(path: str) -> str:
    """Return the folder of `path`; the root is an empty string."""
    return path.rpartition("/")[0]


def join_path(folder: str, *names: str) -> str:
    """Join path parts and resolve `..`; the root is an empty string."""
    joined = posixpath.normpath(posixpath.join(folder, *names))
    return "" if joined == "." else joined


def _parse_object(text: str) -> Mapping[str, object]:
    """Parse a JSON object with comments and trailing commas; empty for anything else."""
    try:
        parsed: object = json.loads(_COMMENTS.sub(lambda match: match[1] or "", text))
    except (ValueError, RecursionError):
        return {}
    return cast("Mapping[str, object]", parsed) if isinstance(parsed, dict) else {}


def _read_object(value: object, key: str) -> Mapping[str, object]:
    """Return the object under `key`; empty if there is none."""
    inner = cast("Mapping[str, object]", value).get(key) if isinstance(value, dict) else None
    return cast("Mapping[str, object]", inner) if isinstance(inner, dict) else {}


def _read_text(value: Mapping[str, object], key: str) -> str:
    inner = value.get(key)
    return inner if isinstance(inner, str) else ""


@dataclass(frozen=True)
class Manifests:
    """The declarations in a workspace's manifests (texts by path). Unreadable ones are ignored."""

    texts: Mapping[str, str] = field(default_factory=dict[str, str])

    @cached_property
    def packages(self) -> Mapping[str, tuple[str, Mapping[str, object]]]:
        """The folder and manifest of each npm package of the workspace, by name."""
        parsed = (
            (folder_of(path), _parse_object(text)) for path, text in self._iterate_named("package.json")
        )
        return {
            name: (folder, manifest) for folder, manifest in parsed if (name := _read_text(manifest, "name"))
        }

    @cached_property
    def go_modules(self) -> tuple[tuple[str, str], ...]:
        """The import path and folder of each Go module, the longest first."""
        read = ((_GO_MODULE.search(text), folder_of(path)) for path, text in self._iterate_named("go.mod"))
        return tuple(
            sorted(((m[1], folder) for m, folder in read if m is not None), key=lambda each: -len(each[0]))
        )

    @cached_property
    def crates(self) -> Mapping[str, str]:
        """The folder of each Rust crate, by its name in `use`."""
        folders: dict[str, str] = {}
        for path, text in self._iterate_named("Cargo.toml"):
            try:
                crate_name = _read_text(_read_object(tomllib.loads(text), "package"), "name")
            except ValueError:
                continue
            if crate_name:
                folders[crate_name.replace("-", "_")] = folder_of(path)
        return folders

    @cached_property
    def aliases(self) -> Mapping[str, tuple[tuple[str, str], ...]]:
        """The module patterns and their paths, by each folder with a tsconfig.json or jsconfig.json."""
        configs = {
            path: _parse_object(text)
            for path, text in self.texts.items()
            if "sconfig" in path.rpartition("/")[2]
        }
        patterns: dict[str, tuple[tuple[str, str], ...]] = {}
        for path in sorted(configs, key=len):  # tsconfig.json before tsconfig.app.json in the same folder
            patterns[folder_of(path)] = (
                *patterns.get(folder_of(path), ()),
                *self._iterate_aliases(path, configs, 0),
            )
        return patterns

    def _iterate_aliases(
        self, path: str, configs: Mapping[str, Mapping[str, object]], depth: int
    ) -> Iterator[tuple[str, str]]:
        config = configs.get(path)
        if config is None or depth > 4:
            return
        options = _read_object(config, "compilerOptions")
        base = join_path(folder_of(path), _read_text(options, "baseUrl"))
        for pattern, places in _read_object(options, "paths").items():
            for place in cast("list[object]", places) if isinstance(places, list) else []:
                if isinstance(place, str):
                    yield pattern, join_path(base, place)
        if "baseUrl" in options:
            yield "*", join_path(base, "*")
        parent_config = _read_text(config, "extends")
        if parent_config.startswith("."):
            parent_path = parent_config if parent_config.endswith(".json") else f"{parent_config}.json"
            yield from self._iterate_aliases(join_path(folder_of(path), parent_path), configs, depth + 1)

    def _iterate_named(self, name: str) -> Iterator[tuple[str, str]]:
        return ((path, text) for path, text in self.texts.items() if path.rpartition("/")[2] == name)


def list_declared_paths(manifest: Mapping[str, object], inside: str) -> Iterator[str]:
    """Yield where a package declares its module `inside` (empty: the package's main file)."""
    exports: object = manifest.get("exports")
    declared: object = exports if not inside else None
    if isinstance(exports, dict):
        declared = cast("Mapping[str, object]", exports).get(f"./{inside}" if inside else ".")
    pending = [declared]
    while pending:
        value = pending.pop(0)
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            pending += cast("Mapping[str, object]", value).values()
    if not inside:
        yield from (
            place for key in ("source", "types", "module", "main") if (place := _read_text(manifest, key))
        )
