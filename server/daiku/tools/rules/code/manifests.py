"""What the manifests of a workspace say of its modules: npm packages, path aliases, Go modules, Rust crates."""

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
    """Whether a file of this name tells what modules are called."""
    return _MANIFEST.search(path) is not None


def folder_of(path: str) -> str:
    """The folder that `path` is in; the root is an empty string."""
    return path.rpartition("/")[0]


def path_in(folder: str, *names: str) -> str:
    """One path of several parts, `..` resolved; the root is an empty string."""
    found = posixpath.normpath(posixpath.join(folder, *names))
    return "" if found == "." else found


def _object(text: str) -> Mapping[str, object]:
    """A JSON object, comments and trailing commas left out; empty for anything else."""
    try:
        found: object = json.loads(_COMMENTS.sub(lambda match: match[1] or "", text))
    except (ValueError, RecursionError):
        return {}
    return cast("Mapping[str, object]", found) if isinstance(found, dict) else {}


def _part(value: object, key: str) -> Mapping[str, object]:
    """The object under `key`; empty where there is none."""
    inner = cast("Mapping[str, object]", value).get(key) if isinstance(value, dict) else None
    return cast("Mapping[str, object]", inner) if isinstance(inner, dict) else {}


def _word(value: Mapping[str, object], key: str) -> str:
    inner = value.get(key)
    return inner if isinstance(inner, str) else ""


@dataclass(frozen=True)
class Manifests:
    """What the texts (by path) of the manifests of a workspace say; unreadable ones say nothing."""

    texts: Mapping[str, str] = field(default_factory=dict[str, str])

    @cached_property
    def packages(self) -> Mapping[str, tuple[str, Mapping[str, object]]]:
        """The folder and manifest of each npm package of the workspace, by its name."""
        read = ((folder_of(path), _object(text)) for path, text in self._called("package.json"))
        return {name: (folder, found) for folder, found in read if (name := _word(found, "name"))}

    @cached_property
    def go_modules(self) -> tuple[tuple[str, str], ...]:
        """The import path and folder of each Go module, the longest first."""
        read = ((_GO_MODULE.search(text), folder_of(path)) for path, text in self._called("go.mod"))
        return tuple(
            sorted(((m[1], folder) for m, folder in read if m is not None), key=lambda each: -len(each[0]))
        )

    @cached_property
    def crates(self) -> Mapping[str, str]:
        """The folder of each Rust crate, by its name as it is written in `use`."""
        found: dict[str, str] = {}
        for path, text in self._called("Cargo.toml"):
            try:
                named = _word(_part(tomllib.loads(text), "package"), "name")
            except ValueError:
                continue
            if named:
                found[named.replace("-", "_")] = folder_of(path)
        return found

    @cached_property
    def aliases(self) -> Mapping[str, tuple[tuple[str, str], ...]]:
        """For each folder with a tsconfig.json or jsconfig.json: patterns of modules, and where they are."""
        configs = {
            path: _object(text) for path, text in self.texts.items() if "sconfig" in path.rpartition("/")[2]
        }
        found: dict[str, tuple[tuple[str, str], ...]] = {}
        for path in sorted(configs, key=len):  # tsconfig.json before tsconfig.app.json beside it
            found[folder_of(path)] = (*found.get(folder_of(path), ()), *self._of_config(path, configs, 0))
        return found

    def _of_config(
        self, path: str, configs: Mapping[str, Mapping[str, object]], depth: int
    ) -> Iterator[tuple[str, str]]:
        found = configs.get(path)
        if found is None or depth > 4:
            return
        options = _part(found, "compilerOptions")
        base = path_in(folder_of(path), _word(options, "baseUrl"))
        for pattern, places in _part(options, "paths").items():
            for place in cast("list[object]", places) if isinstance(places, list) else []:
                if isinstance(place, str):
                    yield pattern, path_in(base, place)
        if "baseUrl" in options:
            yield "*", path_in(base, "*")
        above = _word(found, "extends")
        if above.startswith("."):
            ends = above if above.endswith(".json") else f"{above}.json"
            yield from self._of_config(path_in(folder_of(path), ends), configs, depth + 1)

    def _called(self, name: str) -> Iterator[tuple[str, str]]:
        return ((path, text) for path, text in self.texts.items() if path.rpartition("/")[2] == name)


def told_places(manifest: Mapping[str, object], inside: str) -> Iterator[str]:
    """Where a package says that its module `inside` is; its own file where that is empty."""
    exports: object = manifest.get("exports")
    told: object = exports if not inside else None
    if isinstance(exports, dict):
        told = cast("Mapping[str, object]", exports).get(f"./{inside}" if inside else ".")
    pending = [told]
    while pending:
        value = pending.pop(0)
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            pending += cast("Mapping[str, object]", value).values()
    if not inside:
        yield from (place for key in ("source", "types", "module", "main") if (place := _word(manifest, key)))
