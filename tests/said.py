"""Every text in the source that reaches a person, found by the names it is passed to."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

FIELDS = {"message", "hint", "why", "mend", "reason", "remember", "problem", "start_hint"}
"""A parameter, field, dictionary key or variable of this name holds a text for a person."""
ALSO = {
    ("Notice", "text"),
    ("DoctorFinding", "what"),
    ("DoctorFinding", "mend"),
    ("_hear", "text"),
    ("_say", "text"),
    ("Broken", "text"),
}
"""Fields of other names that do, with their class or function."""
HEARING = ("daiku.tools.mcp", "daiku.runs", "daiku.llm")
"""Where `hear(…)`, `say(…)` and `warn(…)` tell a person something."""
TABLES = {"PROTECTED_FILES", "PROTECTED_PAIRS", "PROTECTED_FOLDERS", "SAYS"}
"""Tables of such texts."""
LISTS = {"problems", "notices"}
"""Lists of such texts."""
RETURNED = {
    "grant_in_words", "why_not_visible", "valued_target", "_head_of_fence", "_never", "_protected", "_problem", "_suggestion", "_describe",
    "_keys_in_file", "_about_ignored", "_status",
}  # fmt: skip
"""Functions that return one, besides those named why_…"""
FOR_MODELS = tuple(
    f"daiku.{name}"
    for name in (
        "api", "core.calls.arguments", "core.textcalls.codecs", "core.textcalls.humantext", "core.plans.transitions", "core.proof.checks", "core.calls.refs", "core.edits.udiff",
        "core.protected.addresses", "core.web.research", "lsp.wire.frames", "lsp.wire.jsontext", "lsp.wire.protocol", "lsp.wire.refused", "tools.files.changing", "tools.files.reading", "tools.files.notebooks", "tools.files.syntax",
        "tools.registry", "tools.work.plan", "tools.files.search", "tools.web", "logs", "runs.recorded.replay",
    )
)  # fmt: skip
"""Modules whose texts a model, a client's author or a log gets: those stay English."""
HOLE = "⟦{}⟧"
MOST = 64
"""Variants of one text that are looked at: more are never written on purpose."""


@dataclass(frozen=True, slots=True)
class Said:
    """One text, its holes filled with ⟦1⟧, ⟦2⟧, …, and where it stands."""

    text: str
    where: str


@dataclass(slots=True)
class Module:
    """What names mean in one file."""

    name: str
    tree: ast.Module
    functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = field(default_factory=dict)
    constants: dict[str, ast.expr] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)
    scopes: dict[ast.AST, ast.AST] = field(default_factory=dict)


def read_source(folder: Path) -> dict[str, Module]:
    """The modules under `folder`, by dotted name."""
    modules: dict[str, Module] = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        module = modules[name] = Module(name, ast.parse(path.read_text("utf-8")))
        _enter(module, module.tree, module.tree)
        for node in module.tree.body:
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            value = getattr(node, "value", None)
            if isinstance(target, ast.Name) and isinstance(value, ast.expr):
                module.constants[target.id] = value
    return modules


def _enter(module: Module, node: ast.AST, scope: ast.AST) -> None:
    for child in ast.iter_child_nodes(node):
        module.scopes[child] = scope
        if isinstance(child, ast.ImportFrom) and child.module:
            for alias in child.names:
                module.imported[alias.asname or alias.name] = f"{child.module}:{alias.name}"
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            module.functions.setdefault(child.name, []).append(child)
            _enter(module, child, child)
        else:
            _enter(module, child, scope)


@dataclass(slots=True)
class Scan:
    """A walk over `modules`; `parameters` are the positions of texts, by the name that is called."""

    modules: dict[str, Module]
    parameters: dict[str, dict[int, str]] = field(default_factory=dict)
    found: dict[str, Said] = field(default_factory=dict)
    _busy: set[ast.AST] = field(default_factory=set)

    def __call__(self) -> list[Said]:
        for module in self.modules.values():
            for node in ast.walk(module.tree):
                self._learn(node)
        for module in self.modules.values():
            if module.name.startswith(FOR_MODELS):
                continue
            hearing = module.name.startswith(HEARING)
            for node in ast.walk(module.tree):
                for expr in (*self._sinks(node), *(_heard(node) if hearing else ())):
                    self._keep(module, expr)
        return list(self.found.values())

    def _learn(self, node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            owner, fields = node.name, _parameters(node)
        elif isinstance(node, ast.ClassDef):
            owner = node.name
            fields = [
                n.target.id
                for n in node.body
                if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
            ]
            fields = fields or _parameters_of_init(node)
        else:
            return
        places = {i: n for i, n in enumerate(fields) if n in FIELDS or (owner, n) in ALSO}
        if places:
            self.parameters.setdefault(owner, {}).update(places)

    def _sinks(self, node: ast.AST) -> Iterator[ast.expr]:
        match node:
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called)):
                places = self.parameters.get(called, {})
                yield from (arg for i, arg in enumerate(node.args) if i in places)
                yield from (
                    k.value for k in node.keywords if k.arg in FIELDS or (called, k.arg or "") in ALSO
                )
                yield from self._appended(node)
            case ast.NamedExpr(target=ast.Name(id=name), value=value) if name in FIELDS:
                yield value
            case ast.Dict():
                for key, value in zip(node.keys, node.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value in FIELDS:
                        yield value
            case ast.Assign(targets=[target], value=value):
                yield from self._assigned(target, value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Dict(values=values)) if name in TABLES:
                yield from values
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if name in FIELDS:
                yield value
            case ast.FunctionDef(name=name) if name.strip("_").startswith("why") or name in RETURNED:
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Return) and inner.value is not None:
                        yield inner.value
            case _:
                return

    def _appended(self, node: ast.Call) -> Iterator[ast.expr]:
        """What goes into a list of texts."""
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append" | "extend"), args=[what]):
                if name in LISTS:
                    yield what.elt if isinstance(what, ast.GeneratorExp) else what
            case _:
                return

    def _assigned(self, target: ast.expr, value: ast.expr) -> Iterator[ast.expr]:
        if isinstance(target, ast.Name | ast.Attribute) and _name(target) in FIELDS:
            yield value
        if isinstance(target, ast.Subscript) and _name(target.value) == "doubts":
            yield target.slice
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for t, v in zip(target.elts, value.elts, strict=False):
                yield from self._assigned(t, v)

    def _keep(self, module: Module, expr: ast.expr) -> None:
        for text in list(self._texts(module, expr))[:MOST]:
            plain = _numbered(text).strip()
            bare = re.sub(r"⟦\d+⟧", "", plain).strip(" ;:.")
            if " " in bare or (bare and bare != plain.strip(" ;:.") and bare.isascii() and bare.isalpha()):
                self.found.setdefault(plain, Said(plain, f"{module.name}:{expr.lineno}"))

    # -- what an expression can say: texts with {} for holes

    def _texts(self, module: Module, expr: ast.expr) -> Iterator[str]:
        if expr in self._busy:
            return
        self._busy.add(expr)
        try:
            yield from self._said(module, expr)
        finally:
            self._busy.discard(expr)

    def _said(self, module: Module, expr: ast.expr) -> Iterator[str]:
        match expr:
            case ast.Constant(value=str() as text):
                yield text.replace("{}", "\0")  # for str.format
            case ast.JoinedStr(values=parts):
                options = [list(self._part(module, part)) for part in parts]
                for chosen in list(product(*options))[:MOST]:
                    yield "".join(chosen)
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                heads = list(self._texts(module, left)) or ["\0"]
                tails = list(self._texts(module, right)) or ["\0"]
                yield from (a + b for a in heads for b in tails)
            case ast.IfExp(body=body, orelse=orelse):
                yield from self._texts(module, body)
                yield from self._texts(module, orelse)
            case ast.List(elts=each) | ast.Tuple(elts=each):
                for value in each:
                    yield from self._texts(module, value)
            case ast.ListComp(elt=value) | ast.GeneratorExp(elt=value):
                yield from self._texts(module, value)
            case ast.BoolOp(values=values):
                for value in values:
                    yield from self._texts(module, value)
            case ast.Name(id=name):
                yield from self._named(module, expr, name)
            case (
                ast.Subscript(value=ast.Name(id=name))
                | ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="get"))
            ):
                table = self._constant(module, name)
                if table is not None and isinstance(table[1], ast.Dict):
                    for value in table[1].values:
                        yield from self._texts(table[0], value)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self"), attr=name)):
                yield from self._returned(module, name)
            case _:
                return

    def _part(self, module: Module, part: ast.expr) -> Iterator[str]:
        if not isinstance(part, ast.FormattedValue):
            yield from self._texts(module, part)
            return
        if isinstance(part.value, ast.IfExp):
            options = [
                self._part(module, ast.FormattedValue(e, -1))
                if not isinstance(e, ast.Constant)
                else iter([str(e.value)])
                for e in (part.value.body, part.value.orelse)
            ]
            for option in options:
                yield from option
        elif isinstance(part.value, ast.JoinedStr):
            yield from self._texts(module, part.value)
        else:
            yield "\0"

    def _constant(self, module: Module, name: str) -> tuple[Module, ast.expr] | None:
        if name in module.constants:
            return module, module.constants[name]
        source, _, original = module.imported.get(name, "").partition(":")
        other = self.modules.get(source)
        return self._constant(other, original) if other is not None else None

    def _named(self, module: Module, expr: ast.Name, name: str) -> Iterator[str]:
        scope = module.scopes.get(expr)
        inner = False
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(scope):
                for value in _values(node, name):
                    inner = True
                    yield from self._texts(module, value)
        constant = None if inner else self._constant(module, name)
        if constant is not None:
            yield from self._texts(*constant)

    def _returned(self, module: Module, name: str) -> Iterator[str]:
        for function in module.functions.get(name, []):
            for node in ast.walk(function):
                if isinstance(node, ast.Return) and node.value is not None:
                    yield from self._texts(module, node.value)


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def _parameters_of_init(node: ast.ClassDef) -> list[str]:
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef) and inner.name == "__init__":
            return _parameters(inner)
    return []


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _heard(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[what]):
            if name in ("hear", "_hear", "say", "warn", "_warn"):
                yield what
        case _:
            return


def _values(node: ast.AST, name: str) -> Iterator[ast.expr]:
    match node:
        case ast.Assign(targets=[ast.Name(id=n)], value=value) if n == name:
            yield value
        case ast.AnnAssign(target=ast.Name(id=n), value=ast.expr() as value) if n == name:
            yield value
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            for t, v in zip(targets, values, strict=False):
                if isinstance(t, ast.Name) and t.id == name:
                    yield v
        case _:
            return


def _numbered(text: str) -> str:
    pieces = text.split("\0")
    return pieces[0] + "".join(HOLE.format(i) + piece for i, piece in enumerate(pieces[1:], 1))
