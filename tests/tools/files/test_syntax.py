"""Edits that would break what parsed are told before they are offered."""

from __future__ import annotations

import pytest

from daiku.domain.work.patches import FileChange, Patch
from daiku.tools.files.syntax import OfferedEdits, find_flaw, find_new_flaw
from tests.cases import for_each
from tests.timing import cpu_seconds

GOOD = {
    "a.py": "def f(x):\n    return x\n",
    "a.json": '{"a": [1, 2]}\n',
    "tsconfig.json": '// why\n{"a": "//no", /* b */ "b": [1, 2,],}\n',
    "a.toml": "[a]\nb = 1\n",
    "a.js": "const f = (x) => x;\n",
    "a.ts": "const f = (x: number): number => x;\n",
    "a.tsx": "const f = () => <div style={{ a: 1 }} />;\n",
    "a.go": "package a\n\nfunc f() int { return 1 }\n",
    "a.rs": "fn f() -> i32 { 1 }\n",
    "a.java": "class A { int f() { return 1; } }\n",
}
BAD = {
    "a.py": ("def f(x):\n    return (x\n", 2),
    "a.json": ('{"a": [1, 2}\n', 1),
    "tsconfig.json": ("{\n  a\n}\n", 2),
    "a.toml": ("[a]\nb =\n", 2),
    "a.js": ("const f = (x) => {\n", 1),
    "a.ts": ("const a = 1;\nconst f = (x: number: => x;\n", 2),
    "a.tsx": ("const f = () => <div>;\n", 1),
    "a.go": ("package a\n\nfunc f( int { return 1 }\n", 3),
    "a.rs": ("fn f() -> i32 { 1 \n", 1),
    "a.java": ("class A {\n  int f( { return 1; }\n}\n", 2),
}


@for_each("path", sorted(GOOD))
def test_what_breaks_a_file_is_found_with_its_place(path: str) -> None:
    bad, line = BAD[path]
    assert find_flaw(path, GOOD[path]) is None
    flaw = find_new_flaw(FileChange(path=path, kind="edit", old=GOOD[path], new=bad))
    assert flaw is not None
    assert abs(flaw.line - line) <= 1, flaw


@for_each("path", sorted(GOOD))
def test_a_file_that_was_broken_before_may_stay_so(path: str) -> None:
    bad, _ = BAD[path]
    assert find_new_flaw(FileChange(path=path, kind="edit", old=bad, new=bad + "\n")) is None
    assert find_new_flaw(FileChange(path=path, kind="edit", old=bad, new=GOOD[path])) is None


@for_each(
    ("path", "text"),
    [
        ("a.txt", "((("),
        ("a.c", "int f( {"),
        ("a.py", ""),
        ("a.py", "type X = int\ndef f[T](x: T) -> T: return x\n"),
        ("a.py", "def {{ name }}():\n    pass\n"),
        ("a.py", "{% if x %}\nimport (\n{% endif %}\n"),
        ("{{cookiecutter.name}}/a.py", "import (\n"),
        ("a.json", '{"a": {{ value }}}'),
        ("a.json", "[" * 200_000),
    ],
)
def test_nobody_objects_where_nobody_can_tell(path: str, text: str) -> None:
    assert find_new_flaw(FileChange(path=path, kind="create", new=text)) is None


def test_an_edit_is_refused_once_and_made_when_it_is_sent_again() -> None:
    offered = OfferedEdits()
    change = FileChange(path="a.py", kind="edit", old=GOOD["a.py"], new=BAD["a.py"][0])
    said = offered.find_new_flaws(Patch(files=(change,)), "s")
    assert said.startswith("Nothing was changed.\na.py would no longer parse: line 2: '(' was never closed\n")
    assert "return (x" in said
    other = change.model_copy(update={"new": "def f(x:\n"})
    assert offered.find_new_flaws(Patch(files=(other,)), "s")
    assert offered.find_new_flaws(Patch(files=(change,)), "another session")
    assert offered.find_new_flaws(Patch(files=(change,)), "s") == ""


@pytest.mark.slow
def test_a_large_file_is_looked_at_quickly_or_not_at_all() -> None:
    source = "def f():\n    return {'a': [1, 2, (3, 4)]}\n" * 9_000
    change = FileChange(path="a.py", kind="edit", old=source, new=source + "(")
    assert find_new_flaw(change) is not None
    assert cpu_seconds(lambda: find_new_flaw(change)) < 5
    assert find_new_flaw(FileChange(path="a.py", kind="create", new=source * 2 + "(")) is None
