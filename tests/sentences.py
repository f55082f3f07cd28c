"""Finds in Python sources every place that compares something with a sentence, or looks for one in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SENTENCE = re.compile(
    r"[^\W\d_]{2,}[’'\w]*[,;:.!?)”\"]*\s+[“(\"`]?[^\W\d_]{2,}"  # two words beside each other
    r"|^[A-Z][a-z]{2,}[.:!?]\s*$|^[^\W\d_]{3,}:\s"  # one that ends or opens a sentence
    r"|[ぁ-んァ-ヶ一-龯]{2,}"
)
_ESCAPE = re.compile(r"\\[a-zA-Z][+*?]*")
_SEEKING = _names(
    "startswith endswith removeprefix removesuffix partition rpartition split rsplit find rfind index rindex"
    " count replace"
)
_PATTERNS = _names("match search fullmatch compile findall finditer sub subn split lazy")
_SAME = _names("strip lstrip rstrip lower upper casefold format join")
"""Methods whose result says what their text said."""
_COLLECTIONS = _names("frozenset set tuple list sorted str lazy renderings render")
_TEXTS = _names("text Text joined say told")
"""Functions that give a sentence, whatever they are given."""
_PROSE = _names("result message why hint reason problem question feedback preview notes")
"""Fields that hold what somebody reads: of these not even a single word is looked for."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Site:
    """One such place: the module, the line, and what is looked for: a constant's name or the words."""

    module: str
    line: int
    needle: str


@dataclass(slots=True)
class _Sources:
    """The modules statement by statement, what each imports from where, and the full names of the constants and
    functions (with `()`) that hold a sentence."""

    statements: Mapping[str, tuple[tuple[ast.stmt, tuple[ast.AST, ...]], ...]]
    imported: Mapping[str, Mapping[str, str]]
    speaking: set[str] = field(default_factory=set[str])


def compared_sentences(trees: Mapping[str, ast.Module]) -> list[Site]:
    """The places in `trees`, which are given by the full names of their modules."""
    statements = {
        name: tuple((each, tuple(ast.walk(each))) for each in tree.body) for name, tree in trees.items()
    }
    imported = {
        name: _imports(node for _, nodes in each for node in nodes) for name, each in statements.items()
    }
    known = _Sources(statements, imported)
    before = -1
    while before < len(known.speaking):  # a constant may be made of another one
        before = len(known.speaking)
        for name in trees:
            known.speaking.update(_speaking(known, name))
    return [site for name in trees for site in _sites(known, name)]


def _imports(nodes: Iterable[ast.AST]) -> dict[str, str]:
    statements = (n for n in nodes if isinstance(n, ast.ImportFrom) and n.module)
    return {a.asname or a.name: f"{n.module}.{a.name}" for n in statements for a in n.names}


def _speaking(known: _Sources, module: str) -> Iterator[str]:
    for node, nodes in known.statements[module]:
        for name, value in _assigned(node):
            if _says(known, module, value):
                yield f"{module}.{name}"
        if isinstance(node, Function) and node.returns is not None and "str" in ast.unparse(node.returns):
            values = (n.value for n in nodes if isinstance(n, ast.Return) and n.value is not None)
            yield from (f"{module}.{node.name}()" for value in values if _says(known, module, value))


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Names and what they are set to; the parts of a tuple are taken apart."""
    match node:
        case ast.Assign(targets=targets, value=value):
            pairs = [(target, value) for target in targets]
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            pairs = [(target, value)]
        case ast.comprehension(target=target, iter=values) | ast.For(target=target, iter=values):
            pairs = [(target, values)]
        case _:
            return
    for target, value in pairs:
        if isinstance(target, ast.Name):
            yield target.id, value
        elif isinstance(target, ast.Tuple):
            parts = value.elts if isinstance(value, ast.Tuple) else [value] * len(target.elts)
            yield from (
                (t.id, v) for t, v in zip(target.elts, parts, strict=False) if isinstance(t, ast.Name)
            )


def _sites(known: _Sources, module: str) -> Iterator[Site]:
    for statement, nodes in known.statements[module]:
        named = next((name for name, _ in _assigned(statement)), "")
        local: set[str] = set()
        if isinstance(statement, Function | ast.ClassDef):
            local |= {n for node in nodes for n, value in _assigned(node) if _says(known, module, value)}
        here = frozenset(local)
        for node in nodes:
            sides = tuple(_needles(node))
            prose = any(isinstance(side, ast.Attribute) and side.attr in _PROSE for side in sides)
            for needle in sides:
                found = _says(known, module, needle, here) or (prose and _is_word(needle))
                if found and not _own_choice(known, module, node, here):
                    yield Site(module, needle.lineno, (named or ast.unparse(needle))[:48])


def _needles(node: ast.AST) -> Iterator[ast.expr]:
    """What `node` looks for, looks in or compares with."""
    match node:
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides = (left, *others)
            if any(isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for op in ops):
                yield from () if any(map(_empty, sides)) else sides
        case ast.MatchValue(value=value):
            yield value
        case ast.Call(func=ast.Attribute(value=text, attr=method), args=args):
            if isinstance(text, ast.Name) and text.id == "re":
                yield from args[:1] if method in _PATTERNS else ()
            elif method in _SEEKING:
                yield from args[:1] if isinstance(text, ast.Constant) else (text, *args[:1])
        case ast.Call(func=ast.Name(id="lazy"), args=args):
            yield from args[:1]
        case _:
            return


def _own_choice(known: _Sources, module: str, node: ast.AST, local: frozenset[str]) -> bool:
    """Whether `node` asks for the number of a choice in the list that was offered: `OFFERED.index(KEEP)`."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name() as offered, attr="index")):
            return _says(known, module, offered, local)
        case _:
            return False


def _is_word(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.strip().isalpha()


def _empty(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in ("", None)


@cache
def _reads_as_one(text: str) -> bool:
    return _SENTENCE.search(_ESCAPE.sub(" ", text)) is not None


def _says(known: _Sources, module: str, node: ast.expr, local: frozenset[str] = frozenset()) -> bool:
    """Whether the value of `node` is a sentence, or holds one."""

    def says(part: ast.expr | None) -> bool:
        return part is not None and _says(known, module, part, local)

    match node:
        case ast.Constant(value=value):
            return isinstance(value, str) and _reads_as_one(value)
        case ast.JoinedStr(values=parts):
            text = "".join(str(p.value) if isinstance(p, ast.Constant) else "X9" for p in parts)
            named = (p.value for p in parts if isinstance(p, ast.FormattedValue))
            return _reads_as_one(text) or any(says(value) for value in named if isinstance(value, ast.Name))
        case ast.BinOp(left=left, right=right):
            return says(left) or says(right)
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts) | ast.BoolOp(values=parts):
            return any(map(says, parts))
        case ast.Dict(keys=keys):
            return any(map(says, keys))
        case ast.IfExp(body=body, orelse=other):
            return says(body) or says(other)
        case ast.Starred(value=value) | ast.Subscript(value=value):
            return says(value)
        case ast.Call(func=ast.Name(id=name)) if name in _TEXTS:
            return True
        case ast.Call(func=ast.Name(id=name), args=args) if name in _COLLECTIONS:
            return any(map(says, args))
        case ast.Call(func=ast.Attribute(value=value, attr=method), args=args) if method in _SAME:
            return says(value) or any(map(says, args))
        case ast.Call(func=ast.Attribute(attr="compile"), args=args):
            return any(map(says, args[:1]))
        case ast.Call(func=function):
            return any(f"{full}()" in known.speaking for full in _full_names(known, module, function))
        case ast.Name(id=name) if name in local:
            return True
        case _:
            return any(full in known.speaking for full in _full_names(known, module, node))


def _full_names(known: _Sources, module: str, node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Name(id=name):
            yield from (f"{module}.{name}", known.imported[module].get(name, ""))
        case ast.Attribute(value=ast.Name(id=base), attr=name):
            yield from (f"{module}.{base}.{name}", f"{known.imported[module].get(base, '')}.{name}")
        case _:
            return
