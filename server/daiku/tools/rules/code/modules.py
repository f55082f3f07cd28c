"""Resolve imports to files: relative paths, packages of the workspace, and declarations of manifests."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property

from daiku.dataclass import dataclass, field
from daiku.tools.rules.code.imports import Import
from daiku.tools.rules.code.manifests import Manifests, folder_of, join_path, list_declared_paths

_SCRIPT_ENDINGS = (".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".vue", ".svelte")
_SCRIPT_SUFFIXES = frozenset({f".{end.rpartition('.')[2]}" for end in _SCRIPT_ENDINGS})
_BUILD_FOLDER = re.compile(r"^(?:dist|build|lib|out|es|esm|cjs)/")
MAX_PACKAGE_FILES = 60
"""Files that one import of a folder (Go, Java) can resolve to."""


@dataclass(frozen=True)
class Modules:
    """The files of a workspace as modules. `paths` are relative to the root, with `/`."""

    paths: Collection[str]
    manifests: Manifests = field(default_factory=Manifests)

    @cached_property
    def _by_name(self) -> Mapping[str, list[str]]:
        paths_by_name: dict[str, list[str]] = defaultdict(list)
        for path in sorted(self.paths):
            paths_by_name[path.rpartition("/")[2]].append(path)
        return paths_by_name

    @cached_property
    def _by_folder(self) -> Mapping[str, list[str]]:
        paths_by_folder: dict[str, list[str]] = defaultdict(list)
        for path in sorted(self.paths):
            paths_by_folder[folder_of(path)].append(path)
        return paths_by_folder

    def resolve(self, path: str, statement: Import, suffix: str) -> tuple[str, ...]:
        """Return the files that the import `statement` in `path` refers to; none outside the workspace."""
        resolver = _RESOLVERS.get(suffix) or (
            _resolve_script if suffix in _SCRIPT_SUFFIXES else _resolve_include
        )
        return tuple(dict.fromkeys(target for target in resolver(self, path, statement) if target != path))

    def find_package_files(self, path: str, suffix: str) -> tuple[str, ...]:
        """Return the files of the same package in Go and Java, which need no import."""
        if suffix not in (".go", ".java"):
            return ()
        siblings = self._by_folder.get(folder_of(path), [])
        return tuple(other for other in siblings if other != path and other.endswith(suffix))[
            :MAX_PACKAGE_FILES
        ]

    def find_by_ending(self, tail: str, near: str) -> tuple[str, ...]:
        """Return the file whose path ends with `tail`; of several, the one closest to `near`."""
        candidates = [
            path
            for path in self._by_name.get(tail.rpartition("/")[2], [])
            if path == tail or path.endswith(f"/{tail}")
        ]
        if not candidates:
            return ()
        return (max(candidates, key=lambda path: (_count_shared_folders(path, near), -len(path), path)),)

    def find_folder_by_ending(self, tail: str, near: str) -> str | None:
        """Return the folder whose path ends with `tail`, chosen as in `find_by_ending`."""
        candidates = [folder for folder in self._by_folder if folder == tail or folder.endswith(f"/{tail}")]
        return max(
            candidates,
            key=lambda folder: (_count_shared_folders(f"{folder}/", near), -len(folder), folder),
            default=None,
        )

    def list_files(self, folder: str, suffix: str) -> tuple[str, ...]:
        """Return the files with this suffix directly in `folder`."""
        folder_paths = self._by_folder.get(folder, [])
        return tuple(path for path in folder_paths if path.endswith(suffix))[:MAX_PACKAGE_FILES]

    def find_first(self, stems: Iterator[str] | tuple[str, ...], ends: tuple[str, ...]) -> tuple[str, ...]:
        """Return the first existing file that is one of `stems` with one of `ends`."""
        return next(((stem + end,) for stem in stems for end in ends if stem + end in self.paths), ())


def _count_shared_folders(path: str, near: str) -> int:
    """Return the number of leading folders that two paths share."""
    count = 0
    for one, other in zip(path.split("/")[:-1], near.split("/")[:-1], strict=False):
        if one != other:
            break
        count += 1
    return count


def _iterate_parents(path: str) -> Iterator[str]:
    """Yield the parent folders of `path`, the nearest first; the root is an empty string."""
    folder = folder_of(path)
    while folder:
        yield folder
        folder = folder_of(folder)
    yield ""


# ---- one resolver per language


def _resolve_python(modules: Modules, path: str, statement: Import) -> Iterator[str]:
    dots = len(statement.module) - len(statement.module.lstrip("."))
    inside = statement.module.lstrip(".").replace(".", "/")
    ends = (".py", ".pyi", "/__init__.py")
    if dots:
        base = folder_of(path)
        for _ in range(dots - 1):
            base = folder_of(base)
        stem = join_path(base, inside)
        for name in statement.names:
            yield from modules.find_first((join_path(stem, name),), ends)
        yield from modules.find_first((stem,), ends)
        return
    for name in statement.names:
        yield from _find_python_file(modules, path, f"{inside}/{name}")
    yield from _find_python_file(modules, path, inside)


def _find_python_file(modules: Modules, path: str, inside: str) -> tuple[str, ...]:
    ends = (".py", "/__init__.py", ".pyi")
    stems = (join_path(folder_of(path), inside), inside, f"src/{inside}")
    if "/" not in inside:
        return modules.find_first(stems, ends)
    matches = modules.find_first(stems[:1], ends) or tuple(
        f for end in ends for f in modules.find_by_ending(inside + end, path)
    )
    return matches[:1]


def _resolve_script(modules: Modules, path: str, statement: Import) -> Iterator[str]:
    name = statement.module.partition("?")[0]
    if name.startswith("."):
        yield from _find_script_file(modules, join_path(folder_of(path), name))
        return
    for folder in _iterate_parents(path):
        for pattern, target in modules.manifests.aliases.get(folder, ()):
            before, star, after = pattern.partition("*")
            if name == pattern or (
                star and name.startswith(before) and name.endswith(after) and len(name) > len(before)
            ):
                matches = _find_script_file(
                    modules, target.replace("*", name[len(before) : len(name) - len(after)])
                )
                if matches:
                    yield from matches
                    return
        if folder in modules.manifests.aliases:
            break
    yield from _find_package_file(modules, name)


def _find_script_file(modules: Modules, stem: str) -> tuple[str, ...]:
    if stem in modules.paths:
        return (stem,)
    source_stem = re.sub(r"\.[mc]?jsx?$", "", stem)  # map a compiled name to its source
    return modules.find_first((stem, source_stem, f"{source_stem}/index"), _SCRIPT_ENDINGS)


def _find_package_file(modules: Modules, name: str) -> tuple[str, ...]:
    parts = name.split("/")
    package_name = "/".join(parts[: 2 if name.startswith("@") else 1])
    if package_name not in modules.manifests.packages:
        return ()
    folder, manifest = modules.manifests.packages[package_name]
    inside = "/".join(parts[package_name.count("/") + 1 :])
    source_path = _BUILD_FOLDER.sub("", inside or "index")
    places = [
        *list_declared_paths(manifest, inside),
        f"src/{source_path}",
        source_path,
        inside,
        "src/index" if not inside else source_path,
    ]
    for place in places:
        for candidate in (
            place,
            _BUILD_FOLDER.sub("src/", place.removeprefix("./")),
            _BUILD_FOLDER.sub("", place.removeprefix("./")),
        ):
            if matches := _find_script_file(
                modules, join_path(folder, re.sub(r"\.d\.[mc]?ts$", "", candidate))
            ):
                return matches
    return ()


def _resolve_go(modules: Modules, _path: str, statement: Import) -> Iterator[str]:
    for module, folder in modules.manifests.go_modules:
        if statement.module == module or statement.module.startswith(f"{module}/"):
            yield from modules.list_files(
                join_path(folder, statement.module[len(module) :].strip("/")), ".go"
            )
            return


def _resolve_java(modules: Modules, path: str, statement: Import) -> Iterator[str]:
    inside = statement.module.replace(".", "/")
    if inside.endswith("/*"):
        package_folder = modules.find_folder_by_ending(inside[:-2], path)
        yield from () if package_folder is None else modules.list_files(package_folder, ".java")
        return
    while "/" in inside:  # an inner class is in the file of the outer one
        matches = modules.find_by_ending(f"{inside}.java", path)
        if matches:
            yield from matches
            return
        inside = folder_of(inside)


def _resolve_rust(modules: Modules, path: str, statement: Import) -> Iterator[str]:
    name = path.rpartition("/")[2]
    own_stem = folder_of(path) if name in ("mod.rs", "lib.rs", "main.rs") else path.removesuffix(".rs")
    if statement.module.startswith("mod "):
        yield from modules.find_first((join_path(own_stem, statement.module[4:]),), (".rs", "/mod.rs"))
        return
    parts = [part for part in statement.module.split("::") if part]
    start = own_stem
    match parts[:1]:
        case ["crate"]:
            start, parts = _find_crate_source(path), parts[1:]
        case ["self"]:
            parts = parts[1:]
        case ["super"]:
            while parts[:1] == ["super"]:
                start, parts = folder_of(start), parts[1:]
        case [first] if first in modules.manifests.crates:
            start, parts = join_path(modules.manifests.crates[first], "src"), parts[1:]
        case _:
            pass
    yield from _find_rust_file(modules, start, [*parts, *statement.names])


def _find_crate_source(path: str) -> str:
    """Return the source folder of the crate that contains `path`, by its usual name."""
    folders = path.split("/")[:-1]
    position = max((index for index, name in enumerate(folders) if name == "src"), default=-1)
    return "/".join(folders[: position + 1])


def _find_rust_file(modules: Modules, start: str, parts: list[str]) -> tuple[str, ...]:
    for count in range(len(parts), -1, -1):
        stem = join_path(start, *parts[:count])
        ends = (".rs", "/mod.rs") if count else (".rs", "/mod.rs", "/lib.rs", "/main.rs")
        if matches := modules.find_first((stem,), ends):
            return matches
    return ()


def _resolve_include(modules: Modules, path: str, statement: Import) -> Iterator[str]:
    sibling = join_path(folder_of(path), statement.module)
    yield from (sibling,) if sibling in modules.paths else modules.find_by_ending(statement.module, path)


_RESOLVERS: Mapping[str, Callable[[Modules, str, Import], Iterator[str]]] = {
    ".py": _resolve_python,
    ".pyi": _resolve_python,
    ".go": _resolve_go,
    ".java": _resolve_java,
    ".rs": _resolve_rust,
}
