"""Rank the files of a repository and their definitions by how much other code uses them; classify files by path."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from math import sqrt
from typing import Literal, NamedTuple

from daiku.dataclass import dataclass
from daiku.tools.rules.code.imports import Statements, has_import_parser
from daiku.tools.rules.code.modules import Modules

Side = Literal["", "script", "example", "generated", "foreign", "test"]
"""The kind of a side file; empty for the code itself."""

_TESTS = re.compile(
    r"(?:^|/)(?:tests?|testing|testdata|test[-_]?utils?|__tests__|__mocks__|mocks|specs?|e2e|fixtures?|__fixtures__"
    r"|snapshots?|__snapshots__|stories|cypress|playwright|integration[-_]tests?|androidTest)/"
    r"|(?:^|/)(?:test[-_.]|conftest\.py$)[^/]*$|(?:^|/)[^/]*[-_.](?:tests?|specs?|stories|mocks?)[-_.][^/]*$"
    r"|(?:^|/)\w+(?:Tests?|IT|Spec)\.(?:java|kt|scala|cs|swift)$"
    r"|(?:^|/)(?:[^/]*-)?(?:vi|je)?test[-.][^/]*$"
)
_GENERATED = re.compile(
    r"[._-](?:generated|gen|g|pb|min|bundle|freezed)\.[^/.]+$|_pb2(?:_grpc)?\.pyi?$|\.d\.[mc]?ts$"
    r"|(?:^|/)(?:generated|__generated__|gen|autogen|migrations)/"
)
_FOREIGN = re.compile(
    r"(?:^|/)(?:vendor|vendored|third[-_]?party|external|node_modules|bower_components|site-packages|dist|build|out"
    r"|\.yarn|_vendor|deps)/"
)
_EXAMPLES = re.compile(
    r"(?:^|/)(?:docs?|documentation|examples?|samples?|demos?|tutorials?|website|site|benchmarks?|bench|evals?"
    r"|playground|templates?)/"
)
_SCRIPTS = re.compile(
    r"(?:^|/)(?:scripts?|tools|hack|ci|\.github|\.storybook)/|(?:^|/)(?:setup|conf|noxfile|tasks|build)\.[^/.]+$"
    r"|\.config\.[^/.]+$|(?:^|/)\."
)
_KINDS: tuple[tuple[Side, re.Pattern[str]], ...] = (
    ("test", _TESTS),
    ("foreign", _FOREIGN),
    ("generated", _GENERATED),
    ("example", _EXAMPLES),
    ("script", _SCRIPTS),
)


def classify_path(path: str) -> Side:
    """Return the kind of `path` (from the root, with `/`); empty for the code itself."""
    for kind, pattern in _KINDS:
        if pattern.search(path):
            return kind
    return ""


_ALL_LANGUAGES = """
get set add put has all any map run main init start stop open close read write load save send call apply next prev
name type kind value values key keys item items data info text size length count index list array object string
number bool error message result results args options opts config params props state path file files line lines id
test setup teardown handler handle callback fn func method self this cls new make create build update delete remove
clear reset copy clone merge filter find sort reverse slice splice join split trim replace match search test format
parse render print log debug warn warning info error exception exec execute process wait sleep now time date equals
equal compare hash toString valueOf default from of to as is in on off do done end begin first last min max sum abs
context request response body head tail node root parent child children push pop shift unshift concat includes
indexOf lastIndexOf startsWith endsWith forEach reduce some every flat flatMap entries assign freeze then catch
tests finally resolve reject emit once bind charAt charCodeAt substring substr padStart padEnd repeat toLowerCase
toUpperCase toFixed toISOString toJSON parseInt parseFloat isArray isNaN stringify addEventListener
removeEventListener querySelector getElementById appendChild setAttribute getAttribute setTimeout clearTimeout
setInterval clearInterval fetch require module exports constructor prototype String Number Boolean Object Array Map
Set Date Error Promise RegExp Symbol Record Partial Pick Omit Readonly Iterable Function describe it expect
beforeEach afterEach vi jest useState useEffect useMemo useCallback useRef
"""
_PYTHON = """
append extend insert sort keys values items update setdefault strip lstrip rstrip lower upper title encode decode
isinstance issubclass len range print str int float dict tuple frozenset bytes super property staticmethod classmethod
getattr setattr hasattr enumerate zip sorted reversed open repr hash iter exists mkdir unlink resolve read_text
write_text is_file is_dir group groups sub findall fullmatch dumps loads dump cls self __init__ __str__ __repr__
__enter__ __exit__ __eq__ __hash__ __len__ __iter__ __call__ __getattr__ __post_init__ ValueError TypeError KeyError
RuntimeError Exception model_dump model_validate model_copy Field patch MagicMock Mock fixture mark raises
"""
_GO = """
String Error Len Less Swap Close Read Write Reset Get Set Add Done Lock Unlock RLock RUnlock Wait Printf Println
Sprintf Errorf Fatal Fatalf Logf New Context Background make append len cap copy panic recover Is As Unwrap
ServeHTTP MarshalJSON UnmarshalJSON Marshal Unmarshal Run Helper Name Value Next Start Stop err ctx
"""
_JAVA = """
equals hashCode toString compareTo getClass wait notify notifyAll valueOf values ordinal length isEmpty contains
containsKey put putAll addAll removeIf stream collect toList iterator hasNext forEach getName setName getId setId
getValue setValue getKey getMessage getType size println printf format append builder build orElse orElseThrow
orElseGet isPresent ifPresent of asList emptyList Optional List Map String Integer Long Boolean Object Override
assertEquals assertTrue assertFalse assertThat assertNotNull when verify
"""
_RUST = """
new default clone from into unwrap expect map_err ok_or ok_or_else and_then unwrap_or unwrap_or_else unwrap_or_default
as_ref as_mut as_str to_string to_owned to_vec iter iter_mut into_iter collect push_str insert len is_empty is_some
is_none is_ok is_err fmt eq ne cmp partial_cmp hash drop deref borrow borrow_mut lock read write send recv poll next
Some None Ok Err Vec Box Arc Rc String Option Result Self println format vec assert assert_eq panic todo matches
with_capacity extend contains contains_key get_mut entry or_insert take replace cloned copied try_into try_from
"""

COMMON_NAMES = frozenset(f"{_ALL_LANGUAGES} {_PYTHON} {_GO} {_JAVA} {_RUST}".split())
"""Names of five languages in one set, because most are members of built-in types in several of them."""


_DAMPING_FACTOR = 0.85
"""Damping factor of PageRank."""
_ITERATIONS = 25
"""Iterations of PageRank."""
_MAX_DEFINERS = 12
"""Largest number of files that define a name. A more common name does not identify its file."""
_MAX_DEFINERS_WITHOUT_IMPORTS = 3
"""The same number for languages whose imports are not parsed."""
_MAX_REEXPORTS = 4
"""Files in a row that may re-export a name."""
_IMPORT_WEIGHT = 0.3
"""Weight of an import without names, relative to one use of a name."""
_SIDE_WEIGHTS: Mapping[Side, float] = {
    "": 1.0, "script": 0.3, "example": 0.1, "generated": 1e-5, "foreign": 1e-6, "test": 1e-7,
}  # fmt: skip
_NAMED_BONUS = 1000.0
"""Score that is added to files that the request names."""


@dataclass(frozen=True, slots=True)
class Tag:
    """A name that a file defines (with its line and signature) or refers to. `indent` in characters."""

    name: str
    kind: str
    line: int
    signature: str
    is_definition: bool
    indent: int = 0


class SourceFile(NamedTuple):
    """The parts of a file that the map needs: its names, its imports, and its number of lines."""

    tags: tuple[Tag, ...] = ()
    statements: Statements = Statements()
    lines: int = 0


class Ranks(NamedTuple):
    """The ranks of files and of the definitions in each. Only their order is meaningful."""

    files: Mapping[str, float]
    names: Mapping[str, Mapping[str, float]]


_Edges = dict[str, dict[tuple[str, str], float]]
"""The definitions (file, name) that each file uses, with weights. An empty name is the complete file."""


def rank_files(
    files: Mapping[str, SourceFile],
    modules: Modules,
    focus: Collection[str] = (),
    named_paths: Collection[str] = (),
) -> Ranks:
    """Rank `files` (by path) and their definitions.

    The rank of a file grows with its use by others (PageRank along imports, starting at `focus` and `named_paths`
    if given), with the number of files that it uses, and with its length. Tests and other side files come
    last, `named_paths` files first.
    """
    edges = _build_edges(files, modules)
    start = {path for path in (*focus, *named_paths) if path in files}
    weights = _compute_page_rank(edges, start)
    scores: dict[str, float] = {}
    for path, file in files.items():
        used_files = len({target for target, _ in edges[path]})
        scores[path] = (
            weights[path] * (1 + used_files) * (10 + file.lines) * _SIDE_WEIGHTS[classify_path(path)]
        )
        if path in named_paths:
            scores[path] += _NAMED_BONUS
    return Ranks(scores, _rank_names(files, edges, weights))


def _rank_names(
    files: Mapping[str, SourceFile], edges: _Edges, weights: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    """Distribute the weight of each user among the definitions that it uses.

    Unused ones get a little of their file's.
    """
    scores = {path: {t.name: 0.0 for t in file.tags if t.is_definition} for path, file in files.items()}
    for source, targets in edges.items():
        total = sum(targets.values())
        for (path, name), weight in targets.items():
            if name:
                scores[path][name] += weights[source] * weight / total
    for path, file in files.items():
        names = scores[path]
        for tag in file.tags:
            if tag.is_definition:
                nesting_factor = 0.2 if tag.indent else 1.0
                name_factor = 0.1 if tag.name in COMMON_NAMES or tag.name.startswith("_") else 1.0
                names[tag.name] += 0.05 * nesting_factor * name_factor * weights[path] / len(names)
    return scores


# ---- uses between files


def _build_edges(files: Mapping[str, SourceFile], modules: Modules) -> _Edges:
    definers: dict[str, set[str]] = defaultdict(set)
    for path, file in files.items():
        for tag in file.tags:
            if tag.is_definition:
                definers[tag.name].add(path)
    uses = {path: _find_uses(path, file, files, modules) for path, file in files.items()}
    return {path: _weigh_uses(path, file, definers, uses) for path, file in files.items()}


class _FileUses(NamedTuple):
    """A file's imports, re-exports, imported names, and the files of its package."""

    files: tuple[str, ...] = ()
    reexported: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    package_files: tuple[str, ...] = ()


def _find_suffix(path: str) -> str:
    name = path.rpartition("/")[2]
    return f".{name.rpartition('.')[2].lower()}" if "." in name else ""


def _find_uses(path: str, file: SourceFile, files: Mapping[str, SourceFile], modules: Modules) -> _FileUses:
    suffix = _find_suffix(path)
    imported: dict[str, None] = {}
    reexported: dict[str, None] = {}
    names: list[str] = []
    # In Python only a package's __init__.py re-exports names.
    can_reexport = suffix != ".py" or path.endswith("__init__.py")
    for statement in file.statements.imports:
        targets = [target for target in modules.resolve(path, statement, suffix) if target in files]
        imported.update(dict.fromkeys(targets))
        if targets:
            names += statement.names
        if can_reexport and statement.reexports:
            reexported.update(dict.fromkeys(targets))
    package_files = tuple(other for other in modules.find_package_files(path, suffix) if other in files)
    return _FileUses(tuple(imported), tuple(reexported), tuple(names), package_files)


def _find_visible(path: str, uses: Mapping[str, _FileUses]) -> set[str]:
    """Return the files whose names `path` can use: its imports, and what they re-export."""
    visible = {*uses[path].files, *uses[path].package_files}
    frontier = set(uses[path].files)
    for _ in range(_MAX_REEXPORTS):
        frontier = {target for imported in frontier for target in uses[imported].reexported} - visible
        if not frontier:
            break
        visible |= frontier
    return visible - {path}


def _weigh_uses(
    path: str, file: SourceFile, definers: Mapping[str, set[str]], uses: Mapping[str, _FileUses]
) -> dict[tuple[str, str], float]:
    counts = Counter(tag.name for tag in file.tags if not tag.is_definition)
    counts.update(uses[path].names)
    has_imports = has_import_parser(_find_suffix(path))
    visible = _find_visible(path, uses) if has_imports else set[str]()
    weights: dict[tuple[str, str], float] = {(target, ""): _IMPORT_WEIGHT for target in uses[path].files}
    for name, count in counts.items():
        defining_paths = definers.get(name, set[str]())
        if not defining_paths or name in COMMON_NAMES or path in defining_paths:
            continue
        candidates = defining_paths & visible if has_imports else defining_paths
        if not candidates or len(candidates) > (
            _MAX_DEFINERS if has_imports else _MAX_DEFINERS_WITHOUT_IMPORTS
        ):
            continue
        specificity = (0.1 if name.startswith("_") else 1.0) * (2.0 if len(name) >= 8 else 1.0)
        for candidate in candidates:
            weights[candidate, name] = specificity * sqrt(count) / len(candidates) / sqrt(len(defining_paths))
    return weights


def _compute_page_rank(edges: _Edges, start_at: Collection[str]) -> dict[str, float]:
    """Compute how often a random walk along `edges` visits each file. It restarts mostly at `start_at`."""
    if not edges:
        return {}
    share = 1 / len(edges)
    start = dict.fromkeys(edges, 0.2 * share if start_at else share)
    for path in start_at:
        start[path] += 0.8 / len(start_at)
    shares: dict[str, list[tuple[str, float]]] = {}
    for source, targets in edges.items():
        sums: dict[str, float] = defaultdict(float)
        for (path, _), weight in targets.items():
            sums[path] += weight
        total = sum(sums.values())
        shares[source] = [(path, _DAMPING_FACTOR * weight / total) for path, weight in sums.items()]
    weights = dict(start)
    for _ in range(_ITERATIONS):
        dangling = sum(weights[path] for path, targets in shares.items() if not targets)
        next_weights = {
            path: (1 - _DAMPING_FACTOR + _DAMPING_FACTOR * dangling) * start_weight
            for path, start_weight in start.items()
        }
        for source, targets in shares.items():
            weight = weights[source]
            for path, part in targets:
                next_weights[path] += weight * part
        weights = next_weights
    return weights


_CLOSERS = (")", "]", "}", "{")
_CONTINUATIONS = ("{", ":", "(", ",", "=", "=>")
_DECORATORS = ("@", "#[")
_VALUES = frozenset(("constant", "variable", "field"))
"""Kinds of definitions without a body."""


def find_enclosing_definition(
    lines: Sequence[str], first: int, last: int, tags: Sequence[Tag]
) -> tuple[int, int] | None:
    """Return the first and last line of the innermost definition around the lines `first` to `last`.

    Lines count from 0, and both ends are included, as are decorators. None if no definition contains them.
    """
    for tag in sorted(tags, key=lambda tag: tag.line, reverse=True):
        start = tag.line - 1
        if not tag.is_definition or tag.kind in _VALUES or not 0 <= start < len(lines):
            continue
        top = _include_decorators(lines, start)
        if top <= first and (end := _find_end(lines, start)) >= last:
            return top, end
    return None


def _include_decorators(lines: Sequence[str], start: int) -> int:
    while start > 0 and lines[start - 1].lstrip().startswith(_DECORATORS):
        start -= 1
    return start


def _find_end(lines: Sequence[str], start: int) -> int:
    """Return the last line of the block that begins at `start`.

    It ends before the next line that is not deeper, unless that line closes or continues the block.
    """
    depth = _measure_indent(lines[start])
    end = start
    for number in range(start + 1, len(lines)):
        text = lines[number].strip()
        if not text:
            continue
        indent = _measure_indent(lines[number])
        if indent > depth:
            end = number
        elif indent == depth and text.startswith(_CLOSERS):
            end = number
            if text.startswith("}") and not text.endswith(_CONTINUATIONS):
                return end
        elif indent == depth and text.rstrip(";") == "end":
            return number
        else:
            return end
    return end


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip())
