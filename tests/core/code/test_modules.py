"""Which file an import means, in each language."""

from __future__ import annotations

from daiku.tools.rules.code.imports import read_imports
from daiku.tools.rules.code.manifests import Manifests, is_manifest
from daiku.tools.rules.code.modules import Modules


def meant(paths: list[str], path: str, statement: str, **manifests: str) -> list[str]:
    texts = {name.replace("__", "/"): text for name, text in manifests.items()}
    known = Modules(frozenset(paths), Manifests(texts))
    suffix = f".{path.rpartition('.')[2]}"
    return [
        found
        for each in read_imports(statement, suffix).imports
        for found in known.resolve(path, each, suffix)
    ]


def test_python_packages_relative_imports_and_source_folders() -> None:
    paths = [
        "src/app/__init__.py",
        "src/app/core/run.py",
        "src/app/core/__init__.py",
        "src/app/util.py",
        "lib/app/util.py",
    ]
    assert meant(paths, "src/app/core/run.py", "from ..util import f") == ["src/app/util.py"]
    assert meant(paths, "src/app/core/run.py", "from . import run2, other") == ["src/app/core/__init__.py"]
    assert meant(paths, "src/app/util.py", "from app.core import run") == [
        "src/app/core/run.py",
        "src/app/core/__init__.py",
    ]
    assert meant(paths, "src/app/core/run.py", "import app.util") == ["src/app/util.py"]
    assert meant(paths, "lib/app/x.py", "import app.util") == ["lib/app/util.py"]
    assert meant(["tools/a.py", "tools/b.py", "b.py"], "tools/a.py", "import b") == ["tools/b.py"]
    assert meant(paths, "src/app/util.py", "import json, util2") == []


def test_scripts_resolve_relative_paths_index_files_and_compiled_names() -> None:
    paths = ["a/x.ts", "a/y/index.tsx", "a/z.d.ts", "a/n.js"]
    assert meant(paths, "a/m.ts", "import x from './x.js'") == ["a/x.ts"]
    assert meant(paths, "a/m.ts", "import y from './y'; require('./n')") == ["a/y/index.tsx", "a/n.js"]
    assert meant(paths, "a/y/index.tsx", "import z from '../z'") == ["a/z.d.ts"]
    assert meant(paths, "a/m.ts", "import fs from 'fs'") == []


def test_path_aliases_and_workspace_packages() -> None:
    paths = ["web/src/core/a.ts", "packages/llm/src/index.ts", "packages/llm/src/deep.ts", "shared/b.ts"]
    config = '{ // comments\n "extends": "../base.json", "compilerOptions": {"paths": {"@core/*": ["./src/core/*"],}} }'
    base = '{"compilerOptions": {"baseUrl": ".", "paths": {"@shared/*": ["shared/*"]}}}'
    package = (
        '{"name": "@x/llm", "exports": {".": {"import": "./dist/index.js"}, "./deep": "./dist/deep.js"}}'
    )
    texts = {"web__tsconfig.json": config, "base.json": base, "packages__llm__package.json": package}
    for statement, wanted in {
        "import a from '@core/a'": ["web/src/core/a.ts"],
        "import l from '@x/llm'": ["packages/llm/src/index.ts"],
        "import d from '@x/llm/deep'": ["packages/llm/src/deep.ts"],
        "import d from '@x/other'": [],
    }.items():
        assert meant(paths, "web/src/m.ts", statement, **texts) == wanted
    texts["tsconfig.base.json"] = base
    texts["web__tsconfig.json"] = config.replace("base.json", "tsconfig.base.json")
    assert meant(paths, "web/src/m.ts", "import b from '@shared/b'", **texts) == ["shared/b.ts"]


def test_go_packages_by_the_path_of_the_module() -> None:
    paths = ["svc/main.go", "svc/store/a.go", "svc/store/b.go", "svc/store/x/c.go"]
    mod = {"svc__go.mod": "module example.org/svc\n\ngo 1.22\n"}
    assert meant(paths, "svc/main.go", 'import "example.org/svc/store"', **mod) == [
        "svc/store/a.go",
        "svc/store/b.go",
    ]
    assert meant(paths, "svc/main.go", 'import "fmt"', **mod) == []


def test_java_packages_classes_inside_classes_and_whole_packages() -> None:
    paths = [
        "core/src/main/java/org/x/A.java",
        "core/src/main/java/org/x/B.java",
        "api/src/main/java/org/y/C.java",
    ]
    here = "api/src/main/java/org/y/C.java"
    assert meant(paths, here, "import org.x.A;\nimport org.x.B.Inner;") == paths[:2]
    assert meant(paths, here, "import org.x.*;") == paths[:2]
    assert Modules(frozenset(paths)).find_package_files(paths[0], ".java") == (paths[1],)


def test_rust_modules_and_crates() -> None:
    paths = ["c/src/lib.rs", "c/src/a.rs", "c/src/a/b.rs", "c/src/d/mod.rs", "e-f/src/lib.rs", "e-f/src/g.rs"]
    cargo = {"e-f__Cargo.toml": '[package]\nname = "e-f"\n'}
    assert meant(paths, "c/src/lib.rs", "mod a; mod d;\nmod d;") == ["c/src/a.rs", "c/src/d/mod.rs"]
    assert meant(paths, "c/src/a.rs", "mod b;") == ["c/src/a/b.rs"]
    assert meant(paths, "c/src/a/b.rs", "use crate::d::Thing;") == ["c/src/d/mod.rs"]
    assert meant(paths, "c/src/a/b.rs", "use super::Thing;") == ["c/src/a.rs"]
    assert meant(paths, "c/src/a.rs", "use e_f::g::X;\nuse std::io;", **cargo) == ["e-f/src/g.rs"]


def test_manifests_that_cannot_be_read_say_nothing() -> None:
    told = Manifests(
        {
            "package.json": "{",
            "tsconfig.json": "[]",
            "Cargo.toml": "= ",
            "go.mod": "",
            "a/package.json": "[[" * 9000,
        }
    )
    assert (dict(told.packages), dict(told.aliases), told.go_modules, dict(told.crates)) == (
        {},
        {"": ()},
        (),
        {},
    )
    assert is_manifest("a/tsconfig.app.json")
    assert not is_manifest("a/package.json.md")
