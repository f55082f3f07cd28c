"""Which files an import means: by relative paths, packages of the workspace, and what its manifests say."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property

from daiku.dataclass import dataclass, field
from daiku.tools.rules.code.imports import Import
from daiku.tools.rules.code.manifests import Manifests, folder_of, path_in, told_places

_ENDS = (".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".vue", ".svelte")
_SCRIPT_SUFFIXES = frozenset({f".{end.rpartition('.')[2]}" for end in _ENDS})
_BUILT = re.compile(r"^(?:dist|build|lib|out|es|esm|cjs)/")
MOST_OF_A_PACKAGE = 60
"""Files that one import of a whole folder (Go, Java) can mean."""


@dataclass(frozen=True)
class Modules:
    """The files of a workspace as modules. `paths` are from the root with `/`."""

    paths: Collection[str]
    manifests: Manifests = field(default_factory=Manifests)

    @cached_property
    def _by_name(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for path in sorted(self.paths):
            found[path.rpartition("/")[2]].append(path)
        return found

    @cached_property
    def _by_folder(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for path in sorted(self.paths):
            found[folder_of(path)].append(path)
        return found

    def of(self, path: str, wanted: Import, suffix: str) -> tuple[str, ...]:
        """The files that `path` means by `wanted`; none where it is no module of the workspace."""
        finder = _FINDERS.get(suffix) or (_script if suffix in _SCRIPT_SUFFIXES else _included)
        return tuple(dict.fromkeys(found for found in finder(self, path, wanted) if found != path))

    def together(self, path: str, suffix: str) -> tuple[str, ...]:
        """The files that `path` sees without an import: those of its package, in Go and Java."""
        if suffix not in (".go", ".java"):
            return ()
        beside = self._by_folder.get(folder_of(path), [])
        return tuple(other for other in beside if other != path and other.endswith(suffix))[
            :MOST_OF_A_PACKAGE
        ]

    def ending(self, tail: str, near: str) -> tuple[str, ...]:
        """The one file whose path ends with `tail`: of several, the one that shares most folders with `near`."""
        found = [
            path
            for path in self._by_name.get(tail.rpartition("/")[2], [])
            if path == tail or path.endswith(f"/{tail}")
        ]
        if not found:
            return ()
        return (max(found, key=lambda path: (_shared(path, near), -len(path), path)),)

    def folder_ending(self, tail: str, near: str) -> str | None:
        """The one folder with files whose path ends with `tail`, chosen as in `ending`."""
        found = [each for each in self._by_folder if each == tail or each.endswith(f"/{tail}")]
        return max(found, key=lambda each: (_shared(f"{each}/", near), -len(each), each), default=None)

    def within(self, folder: str, suffix: str) -> tuple[str, ...]:
        """The files with this suffix directly in `folder`."""
        inside = self._by_folder.get(folder, [])
        return tuple(path for path in inside if path.endswith(suffix))[:MOST_OF_A_PACKAGE]

    def first(self, stems: Iterator[str] | tuple[str, ...], ends: tuple[str, ...]) -> tuple[str, ...]:
        """The first file that is one of `stems` with one of `ends`."""
        return next(((stem + end,) for stem in stems for end in ends if stem + end in self.paths), ())


def _shared(path: str, near: str) -> int:
    """How many folders two paths have in common from the start."""
    count = 0
    for one, other in zip(path.split("/")[:-1], near.split("/")[:-1], strict=False):
        if one != other:
            break
        count += 1
    return count


def _above(path: str) -> Iterator[str]:
    """The folders that `path` is in, the nearest first; the root as an empty string."""
    folder = folder_of(path)
    while folder:
        yield folder
        folder = folder_of(folder)
    yield ""


# ---- one finder a language


def _python(modules: Modules, path: str, wanted: Import) -> Iterator[str]:
    dots = len(wanted.module) - len(wanted.module.lstrip("."))
    inside = wanted.module.lstrip(".").replace(".", "/")
    ends = (".py", ".pyi", "/__init__.py")
    if dots:
        base = folder_of(path)
        for _ in range(dots - 1):
            base = folder_of(base)
        stem = path_in(base, inside)
        for name in wanted.names:
            yield from modules.first((path_in(stem, name),), ends)
        yield from modules.first((stem,), ends)
        return
    for name in wanted.names:
        yield from _python_file(modules, path, f"{inside}/{name}")
    yield from _python_file(modules, path, inside)


def _python_file(modules: Modules, path: str, inside: str) -> tuple[str, ...]:
    ends = (".py", "/__init__.py", ".pyi")
    stems = (path_in(folder_of(path), inside), inside, f"src/{inside}")
    if "/" not in inside:
        return modules.first(stems, ends)
    found = modules.first(stems[:1], ends) or tuple(
        f for end in ends for f in modules.ending(inside + end, path)
    )
    return found[:1]


def _script(modules: Modules, path: str, wanted: Import) -> Iterator[str]:
    name = wanted.module.partition("?")[0]
    if name.startswith("."):
        yield from _script_file(modules, path_in(folder_of(path), name))
        return
    for folder in _above(path):
        for pattern, place in modules.manifests.aliases.get(folder, ()):
            before, star, after = pattern.partition("*")
            if name == pattern or (
                star and name.startswith(before) and name.endswith(after) and len(name) > len(before)
            ):
                found = _script_file(modules, place.replace("*", name[len(before) : len(name) - len(after)]))
                if found:
                    yield from found
                    return
        if folder in modules.manifests.aliases:
            break
    yield from _package_file(modules, name)


def _script_file(modules: Modules, stem: str) -> tuple[str, ...]:
    if stem in modules.paths:
        return (stem,)
    plain = re.sub(r"\.[mc]?jsx?$", "", stem)  # a compiled name stands for its source
    return modules.first((stem, plain, f"{plain}/index"), _ENDS)


def _package_file(modules: Modules, name: str) -> tuple[str, ...]:
    parts = name.split("/")
    own = "/".join(parts[: 2 if name.startswith("@") else 1])
    if own not in modules.manifests.packages:
        return ()
    folder, manifest = modules.manifests.packages[own]
    inside = "/".join(parts[own.count("/") + 1 :])
    told = _BUILT.sub("", inside or "index")
    places = [
        *told_places(manifest, inside),
        f"src/{told}",
        told,
        inside,
        "src/index" if not inside else told,
    ]
    for place in places:
        for spelled in (
            place,
            _BUILT.sub("src/", place.removeprefix("./")),
            _BUILT.sub("", place.removeprefix("./")),
        ):
            if found := _script_file(modules, path_in(folder, re.sub(r"\.d\.[mc]?ts$", "", spelled))):
                return found
    return ()


def _go(modules: Modules, _path: str, wanted: Import) -> Iterator[str]:
    for module, folder in modules.manifests.go_modules:
        if wanted.module == module or wanted.module.startswith(f"{module}/"):
            yield from modules.within(path_in(folder, wanted.module[len(module) :].strip("/")), ".go")
            return


def _java(modules: Modules, path: str, wanted: Import) -> Iterator[str]:
    inside = wanted.module.replace(".", "/")
    if inside.endswith("/*"):
        first = modules.folder_ending(inside[:-2], path)
        yield from () if first is None else modules.within(first, ".java")
        return
    while "/" in inside:  # a class inside a class is in the file of the outer one
        found = modules.ending(f"{inside}.java", path)
        if found:
            yield from found
            return
        inside = folder_of(inside)


def _rust(modules: Modules, path: str, wanted: Import) -> Iterator[str]:
    name = path.rpartition("/")[2]
    own = folder_of(path) if name in ("mod.rs", "lib.rs", "main.rs") else path.removesuffix(".rs")
    if wanted.module.startswith("mod "):
        yield from modules.first((path_in(own, wanted.module[4:]),), (".rs", "/mod.rs"))
        return
    parts = [part for part in wanted.module.split("::") if part]
    start = own
    match parts[:1]:
        case ["crate"]:
            start, parts = _crate_source(path), parts[1:]
        case ["self"]:
            parts = parts[1:]
        case ["super"]:
            while parts[:1] == ["super"]:
                start, parts = folder_of(start), parts[1:]
        case [first] if first in modules.manifests.crates:
            start, parts = path_in(modules.manifests.crates[first], "src"), parts[1:]
        case _:
            pass
    yield from _rust_file(modules, start, [*parts, *wanted.names])


def _crate_source(path: str) -> str:
    """The folder of the sources of the crate that `path` is in, by the folder's usual name."""
    folders = path.split("/")[:-1]
    at = max((index for index, name in enumerate(folders) if name == "src"), default=-1)
    return "/".join(folders[: at + 1])


def _rust_file(modules: Modules, start: str, parts: list[str]) -> tuple[str, ...]:
    for count in range(len(parts), -1, -1):
        stem = path_in(start, *parts[:count])
        ends = (".rs", "/mod.rs") if count else (".rs", "/mod.rs", "/lib.rs", "/main.rs")
        if found := modules.first((stem,), ends):
            return found
    return ()


def _included(modules: Modules, path: str, wanted: Import) -> Iterator[str]:
    beside = path_in(folder_of(path), wanted.module)
    yield from (beside,) if beside in modules.paths else modules.ending(wanted.module, path)


_FINDERS: Mapping[str, Callable[[Modules, str, Import], Iterator[str]]] = {
    ".py": _python,
    ".pyi": _python,
    ".go": _go,
    ".java": _java,
    ".rs": _rust,
}
