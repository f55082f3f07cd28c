"""Walks through Python sources from where a program begins, and keeps what it reaches and reads."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

Function = ast.FunctionDef | ast.AsyncFunctionDef
Top = tuple[str, str]
"""A module and a name at its top; with no name the module itself."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_HANDS_ON_NOTHING = _names(
    "cache lru_cache dataclass contextmanager asynccontextmanager runtime_checkable final overload property"
    " classmethod staticmethod abstractmethod cached_property"
)
"""Decorators that give a function or class to nobody; any other may have it called."""
_CALL_NOTHING = _names(
    "object ABC Protocol Generic BaseModel Enum IntEnum StrEnum Exception RuntimeError ValueError OSError KeyError"
    " NamedTuple str int tuple dict"
)
"""Bases from elsewhere that call nothing of a class but `__its_own__`."""


@dataclass(frozen=True, slots=True)
class Member:
    """A method or a field of a class at the top of a module."""

    module: str
    owner: ast.ClassDef
    name: str
    node: ast.stmt


@dataclass(frozen=True, slots=True)
class Given:
    """What the calls of one name hand over: how many by place, which by name. `open`: nobody knows what more;
    `dictated`: it is passed on as a value, and who calls it says what it must take."""

    places: int = 0
    names: frozenset[str] = frozenset()
    open: bool = False
    dictated: bool = False


class Sources:
    """The tops of some modules, and what of them is reached."""

    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        self.trees = trees
        self.tops: dict[Top, list[ast.stmt]] = defaultdict(list)
        self.imported: dict[Top, Top] = {}
        self.reached: set[Top] = set()
        self.read: set[str] = set()
        """Names of members that reached code reads."""
        self.members: list[Member] = []
        """Those of reached classes."""
        self.given: dict[str, Given] = defaultdict(Given)
        self.functions: list[tuple[str, Function]] = []
        """The reached ones, each with its place."""
        self.dictated: set[int] = set()
        """Methods whose parameters a class from elsewhere prescribes."""
        self._waiting: list[tuple[str, str, ast.AST]] = []
        self._until_read: dict[str, list[Member]] = defaultdict(list)
        for module, tree in trees.items():
            self._add(module, tree.body)

    def imports(self, module: str, node: ast.Import | ast.ImportFrom) -> None:
        """Take in what an import lets names of `module` mean."""
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                inner = f"{node.module}.{alias.name}"
                found = (inner, "") if inner in self.trees else (node.module or "", alias.name)
                self.imported[module, alias.asname or alias.name] = found
            elif alias.asname:
                self.imported[module, alias.asname] = (alias.name, "")

    def _add(self, module: str, body: Iterable[ast.stmt]) -> None:
        """What stands at the top of a module: names to be reached, and what is done on import."""
        for node in body:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    self.tops[module, node.name].append(node)
                    if _handed_on(node):
                        self.reach(module, node.name)
                case ast.Assign() | ast.AnnAssign() if names := list(_targets(node)):
                    for name in names:
                        self.tops[module, name].append(node)
                case ast.If(test=test, body=then, orelse=other):
                    self._waiting.append((module, "", test))
                    self._add(module, [*then, *other])
                case ast.Try(body=first, handlers=handlers, orelse=other, finalbody=last):
                    inner = [each for handler in handlers for each in handler.body]
                    self._add(module, [*first, *inner, *other, *last])
                case ast.Import() | ast.ImportFrom():
                    self.imports(module, node)
                case _:
                    self._waiting.append((module, "", node))

    def resolve(self, module: str, name: str) -> Top:
        """Where `name` as it is written in `module` stands."""
        seen: set[Top] = set()
        here = (module, name)
        while here not in self.tops and here in self.imported and here not in seen:
            seen.add(here)
            here = self.imported[here]
        return here

    def reach(self, module: str, name: str) -> None:
        """Take `name` in `module` as used, and all that it uses."""
        top = self.resolve(module, name)
        if top in self.tops and top not in self.reached:
            self.reached.add(top)
            self._waiting += [(top[0], top[1], node) for node in self.tops[top]]

    def walk(self) -> None:
        """Until nothing more is reached."""
        while self._waiting:
            module, place, node = self._waiting.pop()
            match node:
                case ast.ClassDef():
                    self._class(module, node)
                case _:
                    _Reader(self, module, place, _bound(node)).visit(node)

    def _class(self, module: str, node: ast.ClassDef) -> None:
        reader = _Reader(self, module, node.name, frozenset())
        for each in (*node.decorator_list, *node.bases, *(k.value for k in node.keywords)):
            reader.visit(each)
        bases = set(self._foreign_bases(module, node))
        foreign = not bases <= _CALL_NOTHING
        for each in node.body:
            match each:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    member = Member(module, node, name, each)
                    if foreign:
                        self.dictated.add(id(each))
                    if is_dunder(name) or _handed_on(each) or foreign or name in self.read:
                        self._walk_later(member)
                    else:
                        self._until_read[name].append(member)
                        self.members.append(member)
                case ast.AnnAssign() | ast.Assign():
                    if not (_is_call(each) or "NamedTuple" in bases):
                        self.members += [Member(module, node, name, each) for name in _targets(each)]
                    reader.visit(each)
                case _:
                    reader.visit(each)

    def _walk_later(self, member: Member) -> None:
        self._waiting.append((member.module, f"{member.owner.name}.{member.name}", member.node))

    def _foreign_bases(self, module: str, node: ast.ClassDef) -> Iterator[str]:
        """Names of the classes from elsewhere that `node` is, also by way of others."""
        for base in node.bases:
            bare = base.value if isinstance(base, ast.Subscript) else base
            name = bare.attr if isinstance(bare, ast.Attribute) else getattr(bare, "id", "")
            top = self.resolve(module, name)
            ours = [each for each in self.tops.get(top, ()) if isinstance(each, ast.ClassDef)]
            for each in ours:
                yield from self._foreign_bases(top[0], each)
            if not ours:
                yield name

    def reach_all(self, module: str) -> None:
        """Take all that is public in `module` as used: it is for people's own code."""
        for where, name in [*self.tops]:
            if where == module and not name.startswith("_"):
                self.reach(module, name)
                for each in self.tops[where, name]:
                    for inner in each.body if isinstance(each, ast.ClassDef) else ():
                        self.reads(getattr(inner, "name", ""))

    def reads(self, name: str) -> None:
        """A member of this name is read: those that waited for it are walked."""
        if name not in self.read:
            self.read.add(name)
            for member in self._until_read.pop(name, ()):
                self._walk_later(member)


class _Reader(ast.NodeVisitor):
    """What one piece of code uses."""

    def __init__(self, sources: Sources, module: str, place: str, bound: frozenset[str]) -> None:
        self.sources, self.module, self.place, self.bound = sources, module, place, bound
        self.names_members = False
        """Whether members are read here by names that are worked out."""

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and node.id not in self.bound:
            self._used(node)
            self._open(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._used(node)
        if not isinstance(node.ctx, ast.Store):
            self._open(node)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.sources.imports(self.module, node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.sources.imports(self.module, node)

    def _used(self, node: ast.expr) -> None:
        """A name or a member is used, whether called or not."""
        match node:
            case ast.Name(id=name):
                if name not in self.bound:
                    self.sources.reach(self.module, name)
            case ast.Attribute(value=value, attr=name, ctx=ctx):
                if isinstance(value, ast.Name) and value.id not in self.bound:
                    module, rest = self.sources.resolve(self.module, value.id)
                    if not rest:
                        self.sources.reach(module, name)
                if not isinstance(ctx, ast.Store):
                    self.sources.reads(name)
                self.visit(value)
            case _:
                self.visit(node)

    def _called(self, node: ast.expr) -> str:
        match node:
            case ast.Name(id=name):
                return self.sources.resolve(self.module, name)[1] or name
            case ast.Attribute(attr=name):
                return name
            case _:
                return ""

    def _open(self, node: ast.expr) -> None:
        name = self._called(node)
        before = self.sources.given[name]
        self.sources.given[name] = Given(before.places, before.names, open=True, dictated=True)

    def visit_Call(self, node: ast.Call) -> None:
        self._used(node.func)
        name, before = self._called(node.func), self.sources.given[self._called(node.func)]
        unknown = any(isinstance(a, ast.Starred) for a in node.args) or any(not k.arg for k in node.keywords)
        self.sources.given[name] = Given(
            max(before.places, len(node.args)),
            before.names | {k.arg for k in node.keywords if k.arg},
            before.open or unknown,
            before.dictated,
        )
        match name, node.args:
            case "getattr" | "setattr" | "hasattr", [_, ast.Constant(value=str(member)), *_]:
                self.sources.reads(member)
            case "getattr", [_, _, *_]:
                self.names_members = True
            case "cast", [ast.Constant(value=str(type_)), *_]:
                self.visit(ast.parse(type_, mode="eval"))
            case _:
                pass
        for each in (*node.args, *node.keywords):
            self.visit(each)

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        for name in node.kwd_attrs:
            self.sources.reads(name)
        if isinstance(node.cls, ast.Name) and node.patterns:
            classes = self.sources.tops.get(self.sources.resolve(self.module, node.cls.id), ())
            fields = [name for c in classes if isinstance(c, ast.ClassDef) for name in _fields(c)]
            for name in fields[: len(node.patterns)]:
                self.sources.reads(name)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: Function) -> None:
        own = node.name == self.place.rpartition(".")[2]
        place = self.place if own else f"{self.place}.{node.name}"
        self.sources.functions.append((f"{self.module}:{place}", node))
        self.generic_visit(node)
        if self.names_members:
            for each in ast.walk(node):
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    self.sources.reads(each.value)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)


def _handed_on(node: Function | ast.ClassDef) -> bool:
    names = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
    return any(not isinstance(n, ast.Name) or n.id not in _HANDS_ON_NOTHING for n in names)


def _targets(node: ast.stmt) -> Iterator[str]:
    """The names that an assignment sets."""
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AnnAssign)
        else []
    )
    for target in targets:
        for each in ast.walk(target):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                yield each.id


def _is_call(node: ast.stmt) -> bool:
    """Whether something without a type is set to what a call gives: it is the call that does something."""
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)


def _fields(node: ast.ClassDef) -> list[str]:
    return [name for each in node.body if isinstance(each, ast.AnnAssign) for name in _targets(each)]


def _bound(node: ast.AST) -> frozenset[str]:
    """Names that are set inside a function: they mean nothing at the top of its module."""
    found: set[str] = set()
    outside: set[str] = set()
    for part in (node.args, *node.body) if isinstance(node, Function) else ():
        for each in ast.walk(part):
            match each:
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    found.add(name)
                case ast.Global(names=names):
                    outside.update(names)
                case _:
                    pass
    return frozenset(found - outside)


def is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
