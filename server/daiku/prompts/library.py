"""Prompt library: packaged templates, a workspace's overrides, and rendering with limits."""

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
"""Maximum bytes of one template."""
MOST = 200
SUFFIXES = (".j2", ".txt")


@dataclass(frozen=True, slots=True)
class TemplateProblem:
    """Why a workspace's template is not used: display path, line (0: the file), and the reason."""

    file: str
    line: int
    why: str


@dataclass(frozen=True, slots=True)
class TemplateSource:
    """Source of one template: text, path, and whether it is filled literally instead of by Jinja."""

    text: str
    file: str
    literal: bool = False


def read_overrides(root: Path) -> Iterator[tuple[str, TemplateSource | TemplateProblem]]:
    """Yield the templates in `.daiku/prompts` of `root` by id. Links out of the workspace are not followed."""
    if not os.path.isdir(f"{root}{os.sep}{FOLDER}"):  # noqa: PTH112  # every run looks, mostly at nothing
        return
    folder = root / FOLDER
    real_root = root.resolve()
    paths = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)
    for path in paths[:MOST]:
        name = path.relative_to(root).as_posix()
        template = path.relative_to(folder).with_suffix("").as_posix()
        try:
            real = path.resolve(strict=True)
            if not real.is_relative_to(real_root) or not real.is_file():
                yield template, TemplateProblem(name, 0, "it leads out of the workspace")
            elif real.stat().st_size > LARGEST_TEMPLATE:
                yield template, TemplateProblem(name, 0, f"it is larger than {LARGEST_TEMPLATE} bytes")
            else:
                yield template, TemplateSource(real.read_text("utf-8"), name, path.suffix == ".txt")
        except (OSError, ValueError) as error:
            yield template, TemplateProblem(name, 0, f"it cannot be read ({error})")


MOST_STEPS = 100_000
"""Maximum iterations of all `range` loops of a template together."""
LARGEST = 4_000_000
"""Maximum characters of a rendered prompt."""
_STEPS: ContextVar[list[int]] = ContextVar("steps that are left")


def render_within_limits(template: Template, values: Mapping[str, object]) -> str:
    """Render a template. Raises jinja2.TemplateError, and OverflowError beyond a limit."""
    pieces, size = list[str](), 0
    token = _STEPS.set([MOST_STEPS])
    try:
        for piece in template.generate(**values):
            size += len(piece)
            if size > LARGEST:
                raise OverflowError(f"what comes of it is longer than {LARGEST:,} characters")
            pieces.append(piece)
    finally:
        _STEPS.reset(token)
    return "".join(pieces)


def build_counted_range(*bounds: int) -> range:
    """Return `range` for templates. Raises OverflowError if all loops together exceed the step limit."""
    numbers, left = range(*bounds), _STEPS.get()
    left[0] -= len(numbers)
    if left[0] < 0:
        raise OverflowError(f"its loops take more than {MOST_STEPS:,} steps")
    return numbers


_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def fill_literally(template: str, variables: Mapping[str, object]) -> str:
    """Return `template` with its `{name}` placeholders replaced.

    Values are not expanded again, and braces that name no variable stay: JSON in a prompt needs no escapes.
    """
    return _PLACEHOLDER.sub(
        lambda match: str(variables[match[1]]) if match[1] in variables else match[0], template
    )


ENGLISH = "en"
_PACKAGED = Path(__file__).parents[1] / "_prompts"
_REPOSITORY = Path(__file__).parents[3] / "prompts"
Variables = Mapping[str, type[BaseModel]]


def find_prompts_folder() -> Path:
    """Return the prompts' folder: in the installed package, else in the repository."""
    return _PACKAGED if _PACKAGED.is_dir() else _REPOSITORY


@dataclass(frozen=True, slots=True)
class TemplateInfo:
    """Entry of the template list: id, languages, the workspace's override if any, and its variables."""

    id: str
    languages: tuple[str, ...]
    override: str = ""
    variables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Texts:
    """Where templates are looked up: a language, and the workspace's overrides by id."""

    language: str = ENGLISH
    overrides: tuple[tuple[str, TemplateSource], ...] = ()

    def find(self, template: str) -> TemplateSource | None:
        """Return the template: the workspace's override, else the packaged one."""
        override = next((source for name, source in self.overrides if name == template), None)
        return override or self.find_packaged(template)

    def find_packaged(self, template: str) -> TemplateSource | None:
        """Return the packaged template in the language, else in English."""
        folder = find_prompts_folder()
        variants = () if self.language == ENGLISH else (f"{template}.{self.language}.j2",)
        for name in (*variants, f"{template}.j2"):
            path = folder / name
            if path.is_relative_to(folder) and ".." not in path.parts and path.is_file():
                return TemplateSource(path.read_text("utf-8"), name)
        return None


@dataclass(eq=False, slots=True)
class Prompts:
    """The templates of one app.

    Args:
        language: language of the packaged templates; English where there is no translation.
        workspace: folder whose `.daiku/prompts` override the packaged templates; None: no overrides.
        untrusted: folder whose overrides are ignored because it is not trusted.
        variables: returns the type of each template's variables.
        usual: type of the variables of templates that are not packaged.
    """

    language: str = ENGLISH
    workspace: Path | None = None
    untrusted: Path | None = None
    variables: Callable[[], Variables] = dict[str, type[BaseModel]]
    usual: type[BaseModel] | None = None
    _reported_untrusted: bool = False
    _failures: list[TemplateProblem] = field(default_factory=list[TemplateProblem])

    def find_problems(self) -> tuple[TemplateProblem, ...]:
        """Return the failed and the invalid templates of the workspace; packaged ones replace them."""
        return (*self.take_failures(), *self._read_overrides()[1])

    def take_failures(self) -> tuple[TemplateProblem, ...]:
        """Return and clear the problems since the last call that occurred while rendering."""
        failures, self._failures = self._failures, []
        return tuple(failures)

    def find_ignored_folder(self) -> str:
        """Return the folder of templates that is ignored as untrusted; empty if none, or after the first call."""
        if self._reported_untrusted or self.untrusted is None or not (self.untrusted / FOLDER).is_dir():
            return ""
        self._reported_untrusted = True
        return FOLDER.as_posix()

    @contextmanager
    def activate(self) -> Generator[None]:
        """Make `render` use a snapshot of these templates inside the context and in tasks started there."""
        token = _ACTIVE.set((self._snapshot(), self))
        try:
            yield
        finally:
            _ACTIVE.reset(token)

    def find_source(self, template: str) -> TemplateSource | None:
        """Return the template `template`; None if there is none."""
        return self._snapshot().find(template)

    def list_templates(self) -> tuple[TemplateInfo, ...]:
        """Return every template."""
        texts, folder = self._snapshot(), find_prompts_folder()
        own = dict(texts.overrides)
        found: dict[str, set[str]] = {name: set() for name in own}
        for path in folder.rglob("*.j2"):
            name = path.relative_to(folder).with_suffix("").as_posix()
            template, dot, language = name.partition(".")
            found.setdefault(template, set()).add(language if dot else ENGLISH)
        return tuple(
            TemplateInfo(
                name,
                tuple(sorted(languages, key=lambda each: (each != ENGLISH, each))),
                own[name].file if name in own else "",
                tuple(model.model_fields) if (model := self._find_model(name)) is not None else (),
            )
            for name, languages in sorted(found.items())
        )

    def record_failure(self, problem: TemplateProblem) -> None:
        """Record that a template of the workspace failed while rendering."""
        if problem not in self._failures:
            self._failures.append(problem)

    def _snapshot(self) -> _Texts:
        return _Texts(self.language, self._read_overrides()[0])

    def _find_model(self, template: str) -> type[BaseModel] | None:
        return self.variables().get(template, self.usual)

    def _read_overrides(self) -> tuple[tuple[tuple[str, TemplateSource], ...], tuple[TemplateProblem, ...]]:
        good: dict[str, TemplateSource] = {}
        bad: list[TemplateProblem] = []
        for name, template in read_overrides(self.workspace) if self.workspace is not None else ():
            if isinstance(template, TemplateSource) and not template.literal:
                problem = _find_problem(template, self._find_model(name))
            else:
                problem = template if isinstance(template, TemplateProblem) else None
            if problem is not None:
                bad.append(problem)
            elif isinstance(template, TemplateSource):
                good.setdefault(name, template)
        return tuple(good.items()), tuple(bad)


_NOBODY: tuple[_Texts, Prompts | None] = (_Texts(), None)
_ACTIVE: ContextVar[tuple[_Texts, Prompts | None]] = ContextVar("prompts of this run", default=_NOBODY)


def render(name: str, variables: BaseModel) -> str:
    """Render the template `name`. `variables` is frozen, so that equal prompts are rendered once.

    A failing template of the workspace falls back to the packaged one. Raises jinja2.TemplateError, also for a missing
    variable.
    """
    texts, prompts = _ACTIVE.get()
    try:
        return _render_cached(texts, name, cast("Hashable", variables))
    except Exception as error:
        if prompts is None or not texts.overrides:
            raise
        override = dict(texts.overrides).get(name)
        prompts.record_failure(
            TemplateProblem(override.file if override else FOLDER.as_posix(), _find_line(error), str(error))
        )
        return _render_cached(_Texts(texts.language), name, cast("Hashable", variables))


@lru_cache(maxsize=64)
def _render_cached(texts: _Texts, name: str, variables: Hashable) -> str:
    values = dict(cast("BaseModel", variables))
    override = dict(texts.overrides).get(name)
    if override is not None and override.literal:
        return fill_literally(override.text, values)
    return render_within_limits(_build_environment(texts).get_template(f"{name}.j2"), values)


@lru_cache(maxsize=16)
def _build_environment(texts: _Texts) -> ImmutableSandboxedEnvironment:
    # Importing jinja2 takes 40 ms: the first run pays for it instead of the server's start.
    from jinja2 import FunctionLoader, StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def load(name: str) -> str | None:
        template = name.removesuffix(".j2")
        source = texts.find(template)
        if source is not None and source.literal:  # Jinja renders included templates
            source = texts.find_packaged(template)
        return None if source is None else source.text

    environment = ImmutableSandboxedEnvironment(
        loader=FunctionLoader(load),
        undefined=StrictUndefined,
        autoescape=False,  # prompts are text for a model, not HTML
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        auto_reload=False,  # other texts get another environment
    )
    cast("dict[str, object]", environment.globals)["range"] = build_counted_range
    return environment


def _find_problem(source: TemplateSource, model: type[BaseModel] | None) -> TemplateProblem | None:
    """Return why a template of the workspace is invalid, as far as is known before rendering."""
    from jinja2 import TemplateError, meta, nodes  # lazy: see _build_environment

    environment = _build_environment(_Texts())
    try:
        tree = environment.parse(source.text)
    except TemplateError as error:
        return TemplateProblem(source.file, _find_line(error), str(error.message))
    available = set(model.model_fields) if model is not None else set[str]()
    unknown = meta.find_undeclared_variables(tree) - available if model is not None else set[str]()
    for name_node in tree.find_all(nodes.Name):
        if name_node.name in unknown:
            why = f"there is no variable {name_node.name!r}; there are: {', '.join(sorted(available)) or 'none'}"
            return TemplateProblem(source.file, name_node.lineno, why)
    for include in tree.find_all(nodes.Include):
        if isinstance(include.template, nodes.Const) and not include.ignore_missing:
            name = str(include.template.value)
            if _Texts().find(name.removesuffix(".j2")) is None:
                return TemplateProblem(
                    source.file, include.lineno, f"there is no template {name!r} to include"
                )
    return None


def _find_line(error: Exception) -> int:
    line = getattr(error, "lineno", None)
    if isinstance(line, int):
        return line
    trace = error.__traceback__
    line_number = 0
    while trace is not None:  # jinja2 adds the template's lines to the traceback
        if trace.tb_frame.f_code.co_filename == "<template>":
            line_number = trace.tb_lineno
        trace = trace.tb_next
    return line_number
