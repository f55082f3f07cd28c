"""Import statements of each language, as they are written in the wild."""

from __future__ import annotations

from daiku.tools.rules.code.imports import Import, has_import_parser, read_imports


def modules(text: str, suffix: str) -> dict[str, tuple[str, ...]]:
    return {found.module: found.names for found in read_imports(text, suffix).imports}


def test_python_imports_of_one_and_several_lines_relative_ones_too() -> None:
    source = "import os, a.b as c\nfrom . import x\nfrom ..pkg.mod import (\n    One,  # said\n    two as three,\n)\n    from late import *\n"
    assert modules(source, ".py") == {
        "os": (), "a.b": (), ".": ("x",), "..pkg.mod": ("One", "two"), "late": (),
    }  # fmt: skip


def test_scripts_import_require_and_pass_on() -> None:
    source = (
        "import React, { useState as use, type FC } from 'react'\n"
        "import type { A } from './a.js';import * as all from \"@x/y\"\n"
        "import './side.css'\nconst f = require('../f'), g = await import('./g')\n"
        "export { B } from './b'\nexport * from './c'\nexport const from = 'none'\n"
        "interface Odd { a: string }\nexport interface Even { b: string }\nimport { d } from './d'\n"
    )
    found = read_imports(source, ".tsx").imports
    assert {each.module: each.names for each in found} == {
        "react": ("React", "useState", "FC"), "./a.js": ("A",), "@x/y": (), "./side.css": (), "../f": (), "./g": (),
        "./b": ("B",), "./c": (), "./d": ("d",),
    }  # fmt: skip
    assert {each.module for each in found if each.reexports} == {"./b", "./c"}


def test_go_java_rust_and_c_statements() -> None:
    go = 'package m\n\nimport "fmt"\nimport (\n\t"a/b"\n\talias "c/d"\n\t_ "e"\n)\n'
    assert set(modules(go, ".go")) == {"fmt", "a/b", "c/d", "e"}
    java = "package org.x;\nimport org.y.Thing;\nimport static org.z.Util.help;\nimport org.all.*;\n"
    assert modules(java, ".java") == {"org.y.Thing": ("Thing",), "org.z.Util": ("help",), "org.all.*": ()}
    assert read_imports(java, ".java").package == "org.x"
    rust = "mod parts;\npub mod more;\nuse crate::a::{B, c::{self, D as E}};\npub use super::f::*;\nuse std::io;\n"
    assert read_imports(rust, ".rs").imports == (
        Import("mod parts"), Import("mod more"), Import("crate::a::c", ("D",)), Import("crate::a::c"),
        Import("crate::a", ("B",)), Import("super::f", (), reexports=True), Import("std", ("io",)),
    )  # fmt: skip
    assert set(modules('#include <stdio.h>\n#  include "lib/x.h"\n', ".c")) == {"lib/x.h"}


def test_other_languages_tell_nothing() -> None:
    assert read_imports("require 'x'", ".rb").imports == ()
    assert not has_import_parser(".rb")
    assert has_import_parser(".rs")
