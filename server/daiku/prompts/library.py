"""The prompt library: packaged templates, those of a workspace that replace them, and rendering within bounds."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pydantic import BaseModel

from daiku.dataclass import dataclass, field

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.sandbox import ImmutableSandboxedEnvironment

FOLDER = Path(".daiku") / "prompts"
LARGEST_TEMPLATE = 100_000
"""Bytes of one template."""
MOST = 200
SUFFIXES = (".j2", ".txt")


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a template of the workspace is not used: the file as the person names it, the line (0: the file as a
    whole), and what is wrong there."""

    file: str
    line: int
    why: str


@dataclass(frozen=True, slots=True)
class Source:
    """One template: its text, where it stands, and how it is filled in."""

    text: str
    file: str
    literal: bool = False


def read_overrides(root: Path) -> Iterator[tuple[str, Source | Problem]]:
    """The templates below `.daiku/prompts` of `root`, by id. Links that leave the workspace are not followed."""
    if not os.path.isdir(f"{root}{os.sep}{FOLDER}"):  # noqa: PTH112  # every run looks, mostly at nothing
        return
    folder = root / FOLDER
    real_root = root.resolve()
    found = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)
    for path in found[:MOST]:
        name = path.relative_to(root).as_posix()
        template = path.relative_to(folder).with_suffix("").as_posix()
        try:
            real = path.resolve(strict=True)
            if not real.is_relative_to(real_root) or not real.is_file():
                yield template, Problem(name, 0, "it leads out of the workspace")
            elif real.stat().st_size > LARGEST_TEMPLATE:
                yield template, Problem(name, 0, f"it is larger than {LARGEST_TEMPLATE} bytes")
            else:
                yield template, Source(real.read_text("utf-8"), name, path.suffix == ".txt")
        except (OSError, ValueError) as error:
            yield template, Problem(name, 0, f"it cannot be read ({error})")


MOST_STEPS = 100_000
"""Steps of all loops over numbers together."""
LARGEST = 4_000_000
"""Characters of a prompt that is filled in; no model reads so much."""
_STEPS: ContextVar[list[int]] = ContextVar("steps that are left")


def within_bounds(template: Template, values: Mapping[str, object]) -> str:
    """The template filled in. Raises jinja2.TemplateError, OverflowError: it is too much."""
    told, size = list[str](), 0
    token = _STEPS.set([MOST_STEPS])
    try:
        for piece in template.generate(**values):
            size += len(piece)
            if size > LARGEST:
                raise OverflowError(f"what comes of it is longer than {LARGEST:,} characters")
            told.append(piece)
    finally:
        _STEPS.reset(token)
    return "".join(told)


def counted_range(*bounds: int) -> range:
    """`range` for templates. Raises OverflowError where their loops go on for too long, one within the other too."""
    made, left = range(*bounds), _STEPS.get()
    left[0] -= len(made)
    if left[0] < 0:
        raise OverflowError(f"its loops take more than {MOST_STEPS:,} steps")
    return made


_HOLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def fill_literally(template: str, variables: Mapping[str, object]) -> str:
    """`template` with its holes filled. What a value holds is never looked at again, and braces that name no
    variable stay as they are: JSON in a prompt needs no escapes."""
    return _HOLE.sub(lambda hole: str(variables[hole[1]]) if hole[1] in variables else hole[0], template)


ENGLISH = "en"
_PACKAGED = Path(__file__).parents[1] / "_prompts"
_REPOSITORY = Path(__file__).parents[3] / "prompts"
Variables = Mapping[str, type[BaseModel]]


def prompts_folder() -> Path:
    """Where the prompts are: inside the installed package, else the repository's own folder."""
    return _PACKAGED if _PACKAGED.is_dir() else _REPOSITORY


@dataclass(frozen=True, slots=True)
class Standing:
    """One template of a library, for lists: its languages, and the file of the workspace in its place, if any."""

    id: str
    languages: tuple[str, ...]
    override: str = ""
    variables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Texts:
    """Where texts come from: a language, and what the workspace puts in the place of ours, by id."""

    language: str = ENGLISH
    overrides: tuple[tuple[str, Source], ...] = ()

    def find(self, template: str) -> Source | None:
        """The text behind an id: the workspace's, else ours in the language, else in English."""
        own = next((source for name, source in self.overrides if name == template), None)
        return own or self.packaged(template)

    def packaged(self, template: str) -> Source | None:
        """Our own text behind an id."""
        folder = prompts_folder()
        variants = () if self.language == ENGLISH else (f"{template}.{self.language}.j2",)
        for name in (*variants, f"{template}.j2"):
            path = folder / name
            if path.is_relative_to(folder) and ".." not in path.parts and path.is_file():
                return Source(path.read_text("utf-8"), name)
        return None


@dataclass(eq=False, slots=True)
class Prompts:
    """The templates of one wiring. `language`: in which of ours are told; English where there is no other.
    `workspace`: whose `.daiku/prompts` take the place of ours; None: nobody's, and `untrusted` is one that has some
    and may not. `variables` gives the types that templates are filled from, `usual` is that of a template of one's own.
    """

    language: str = ENGLISH
    workspace: Path | None = None
    untrusted: Path | None = None
    variables: Callable[[], Variables] = dict[str, type[BaseModel]]
    usual: type[BaseModel] | None = None
    _said_untrusted: bool = False
    _failed: list[Problem] = field(default_factory=list[Problem])

    def problems(self) -> tuple[Problem, ...]:
        """What of the workspace's templates cannot be used, and why; ours are used in their place. With what `failed`."""
        return (*self.failed(), *self._read()[1])

    def failed(self) -> tuple[Problem, ...]:
        """What went wrong since the last call while a template was filled in."""
        failed, self._failed = self._failed, []
        return tuple(failed)

    def ignored(self) -> str:
        """The folder of templates that is not used because the workspace is not trusted; empty where there is
        none, and after the first call."""
        if self._said_untrusted or self.untrusted is None or not (self.untrusted / FOLDER).is_dir():
            return ""
        self._said_untrusted = True
        return FOLDER.as_posix()

    @contextmanager
    def active(self) -> Generator[None]:
        """Inside, `render` uses these templates as they are now; also in the tasks that are started there."""
        token = _ACTIVE.set((self._texts(), self))
        try:
            yield
        finally:
            _ACTIVE.reset(token)

    def source(self, template: str) -> Source | None:
        """The text that stands behind an id; None where there is none."""
        return self._texts().find(template)

    def list(self) -> tuple[Standing, ...]:
        """Every template that there is."""
        texts, folder = self._texts(), prompts_folder()
        own = dict(texts.overrides)
        found: dict[str, set[str]] = {name: set() for name in own}
        for path in folder.rglob("*.j2"):
            name = path.relative_to(folder).with_suffix("").as_posix()
            template, dot, language = name.partition(".")
            found.setdefault(template, set()).add(language if dot else ENGLISH)
        return tuple(
            Standing(
                name,
                tuple(sorted(languages, key=lambda each: (each != ENGLISH, each))),
                own[name].file if name in own else "",
                tuple(model.model_fields) if (model := self._model(name)) is not None else (),
            )
            for name, languages in sorted(found.items())
        )

    def note(self, problem: Problem) -> None:
        """A template of the workspace failed as it was filled in."""
        if problem not in self._failed:
            self._failed.append(problem)

    def _texts(self) -> _Texts:
        return _Texts(self.language, self._read()[0])

    def _model(self, template: str) -> type[BaseModel] | None:
        return self.variables().get(template, self.usual)

    def _read(self) -> tuple[tuple[tuple[str, Source], ...], tuple[Problem, ...]]:
        good: dict[str, Source] = {}
        bad: list[Problem] = []
        for name, found in read_overrides(self.workspace) if self.workspace is not None else ():
            if isinstance(found, Source) and not found.literal:
                problem = _problem_of(found, self._model(name))
            else:
                problem = found if isinstance(found, Problem) else None
            if problem is not None:
                bad.append(problem)
            elif isinstance(found, Source):
                good.setdefault(name, found)
        return tuple(good.items()), tuple(bad)


_NOBODY: tuple[_Texts, Prompts | None] = (_Texts(), None)
_ACTIVE: ContextVar[tuple[_Texts, Prompts | None]] = ContextVar("prompts of this run", default=_NOBODY)


def render(name: str, variables: BaseModel) -> str:
    """The template `name` filled in; `variables` is frozen, so the same text is made once. One of the workspace that
    fails gives way to ours. Raises jinja2.TemplateError (a missing variable is an error, never an empty string)."""
    texts, prompts = _ACTIVE.get()
    try:
        return _render_cached(texts, name, cast("Hashable", variables))
    except Exception as error:
        if prompts is None or not texts.overrides:
            raise
        own = dict(texts.overrides).get(name)
        prompts.note(Problem(own.file if own else FOLDER.as_posix(), _line_of(error), str(error)))
        return _render_cached(_Texts(texts.language), name, cast("Hashable", variables))


@lru_cache(maxsize=64)
def _render_cached(texts: _Texts, name: str, variables: Hashable) -> str:
    values = dict(cast("BaseModel", variables))
    own = dict(texts.overrides).get(name)
    if own is not None and own.literal:
        return fill_literally(own.text, values)
    return within_bounds(_environment(texts).get_template(f"{name}.j2"), values)


@lru_cache(maxsize=16)
def _environment(texts: _Texts) -> ImmutableSandboxedEnvironment:
    # 40 ms that the start of a server has no use for: the first run pays for them.
    from jinja2 import FunctionLoader, StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def load(name: str) -> str | None:
        template = name.removesuffix(".j2")
        source = texts.find(template)
        if source is not None and source.literal:  # what is included is filled in by Jinja
            source = texts.packaged(template)
        return None if source is None else source.text

    made = ImmutableSandboxedEnvironment(
        loader=FunctionLoader(load),
        undefined=StrictUndefined,
        autoescape=False,  # prompts are text for a model, not HTML
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        auto_reload=False,  # what is another text is another environment
    )
    cast("dict[str, object]", made.globals)["range"] = counted_range
    return made


def _problem_of(source: Source, model: type[BaseModel] | None) -> Problem | None:
    """Why a template of the workspace cannot be used, as far as it can be seen before it is filled in."""
    from jinja2 import TemplateError, meta, nodes  # lazy: see _environment

    environment = _environment(_Texts())
    try:
        tree = environment.parse(source.text)
    except TemplateError as error:
        return Problem(source.file, _line_of(error), str(error.message))
    known = set(model.model_fields) if model is not None else set[str]()
    unknown = meta.find_undeclared_variables(tree) - known if model is not None else set[str]()
    for used in tree.find_all(nodes.Name):
        if used.name in unknown:
            why = f"there is no variable {used.name!r}; there are: {', '.join(sorted(known)) or 'none'}"
            return Problem(source.file, used.lineno, why)
    for include in tree.find_all(nodes.Include):
        if isinstance(include.template, nodes.Const) and not include.ignore_missing:
            name = str(include.template.value)
            if _Texts().find(name.removesuffix(".j2")) is None:
                return Problem(source.file, include.lineno, f"there is no template {name!r} to include")
    return None


def _line_of(error: Exception) -> int:
    line = getattr(error, "lineno", None)
    if isinstance(line, int):
        return line
    trace = error.__traceback__
    found = 0
    while trace is not None:  # jinja2 puts the template's own lines into the traceback
        if trace.tb_frame.f_code.co_filename == "<template>":
            found = trace.tb_lineno
        trace = trace.tb_next
    return found
