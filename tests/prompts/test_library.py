"""The prompt library: ids, typed variables, languages, and templates of a trusted workspace."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, meta
from pydantic import BaseModel

from daiku.app import AppParts, build
from daiku.domain.chunks import Chunk
from daiku.domain.events import Notice, RunStarted
from daiku.domain.work.documents import Criterion
from daiku.prompts import Prompts, find_prompts_folder, render
from daiku.prompts.library import fill_literally
from daiku.run.request import RunRequest
from daiku.settings.config import Config, PromptSettings
from daiku.team.rules_files import RulesFile
from daiku.team.system_prompt import SystemVariables
from daiku.team.templates import TEMPLATES
from daiku.testing import FakeLLM
from daiku.workspace.disk import DiskWorkspace
from tests.cases import for_each
from tests.lsp.conftest import write_script

PLAIN = SystemVariables(rules=(), has_tools=True)


def put(root: Path, name: str, text: str) -> Path:
    path = root / ".daiku" / "prompts" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def own(root: Path, language: str = "en") -> Prompts:
    return Prompts(language=language, workspace=root, variables=lambda: TEMPLATES, usual=SystemVariables)


def filled(prompts: Prompts, name: str) -> str:
    with prompts.activate():
        return render(name, PLAIN)


def test_every_packaged_template_has_an_id_and_a_type_for_its_variables() -> None:
    """R1.91: template ids, each with its typed variables."""
    folder = find_prompts_folder()
    there = {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.j2")}
    assert {name.partition(".")[0] for name in there} == set(TEMPLATES)


@for_each(
    "template",
    sorted(
        path.relative_to(find_prompts_folder()).as_posix() for path in find_prompts_folder().rglob("*.j2")
    ),
)
def test_a_template_uses_only_variables_of_its_type(template: str) -> None:
    tree = Environment().parse((find_prompts_folder() / template).read_text("utf-8"))  # only looked at
    used = meta.find_undeclared_variables(tree)
    known = set(TEMPLATES[template.partition(".")[0]].model_fields)
    # `loop` is Jinja's own, and what a part is included with comes from around it.
    assert used <= known


def test_a_workspaces_template_takes_the_place_of_ours_where_it_is_trusted(tmp_path: Path) -> None:
    """R1.91: a template is overridden by `.daiku/prompts/<id>.j2`."""
    put(tmp_path, "agents/coder.j2", "You code in {{ family }} style.\n")
    assert filled(own(tmp_path), "agents/coder") == "You code in other style."
    assert filled(Prompts(untrusted=tmp_path), "agents/coder") == render("agents/coder", PLAIN)


def test_a_part_is_overridden_wherever_it_is_included(tmp_path: Path) -> None:
    put(tmp_path, "parts/manners.j2", "- Speak like a pirate.")
    assert "- Speak like a pirate." in filled(own(tmp_path), "agents/coder")
    assert own(tmp_path).find_problems() == ()


def test_a_template_with_a_name_of_its_own_can_be_used_too(tmp_path: Path) -> None:
    put(tmp_path, "team/poet.j2", "You write poems.{% if has_tools %} With tools.{% endif %}")
    assert filled(own(tmp_path), "team/poet") == "You write poems. With tools."


def test_a_change_counts_from_the_next_run(tmp_path: Path) -> None:
    prompts = own(tmp_path)
    put(tmp_path, "agents/coder.j2", "One.")
    with prompts.activate():
        assert render("agents/coder", PLAIN) == "One."
        put(tmp_path, "agents/coder.j2", "Two.")
        assert render("agents/coder", PLAIN) == "One."
    assert filled(prompts, "agents/coder") == "Two."


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("fine\n{% if x %}\n", 2, ""),
        ("fine\n\n{{ nonsense }}", 3, "'nonsense'"),
        ("{{ family }\n}", 1, ""),
        ('fine\n{% include "parts/none.j2" %}', 2, "parts/none.j2"),
    ],
)
def test_a_broken_template_is_told_with_file_and_line_and_ours_is_used(
    tmp_path: Path, text: str, line: int, why: str
) -> None:
    put(tmp_path, "agents/coder.j2", text)
    prompts = own(tmp_path)
    [problem] = prompts.find_problems()
    assert (problem.file, problem.line) == (".daiku/prompts/agents/coder.j2", line)
    assert why in problem.why
    assert filled(prompts, "agents/coder") == render("agents/coder", PLAIN)


def test_what_fails_only_when_it_is_filled_in_gives_way_to_ours_and_is_told_next(tmp_path: Path) -> None:
    put(tmp_path, "agents/coder.j2", "one\n{{ family.nothing.at_all }}")
    prompts = own(tmp_path)
    assert prompts.find_problems() == ()
    assert filled(prompts, "agents/coder") == render("agents/coder", PLAIN)
    [problem] = prompts.find_problems()
    assert (problem.file, problem.line) == (".daiku/prompts/agents/coder.j2", 2)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{% for a in range(60000) %}{% for b in range(60000) %}{% endfor %}{% endfor %}", "100,000 steps"),
        ("{% for a in range(1000) %}" + "x" * 9000 + "{% endfor %}", "4,000,000 characters"),
        ("{% include 'agents/coder.j2' %}", "recursion"),
    ],
)
def test_a_template_without_end_gives_way_to_ours(tmp_path: Path, text: str, why: str) -> None:
    put(tmp_path, "agents/coder.j2", text)
    prompts = own(tmp_path)
    assert filled(prompts, "agents/coder") == render("agents/coder", PLAIN)
    [problem] = prompts.take_failures()
    assert why in problem.why
    assert prompts.take_failures() == ()


@pytest.mark.parametrize(
    "text", ["{{ ().__class__.__base__ }}", "{{ rules.append(1) }}", "{{ cycler.__init__.__globals__ }}"]
)
def test_a_template_stays_in_its_sandbox(tmp_path: Path, text: str) -> None:
    put(tmp_path, "agents/coder.j2", text)
    assert filled(own(tmp_path), "agents/coder") == render("agents/coder", PLAIN)


def test_a_template_that_leads_out_of_the_workspace_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("k3y")
    root = tmp_path / "work"
    (root / ".daiku" / "prompts" / "agents").mkdir(parents=True)
    (root / ".daiku" / "prompts" / "agents" / "coder.j2").symlink_to(secret)
    prompts = own(root)
    assert [p.line for p in prompts.find_problems()] == [0]
    assert "k3y" not in filled(prompts, "agents/coder")


def test_a_text_template_is_filled_literally_in_one_pass(tmp_path: Path) -> None:
    """X.21: `.txt` templates know holes and nothing else; what fills one is never looked at again."""
    assert (
        fill_literally('{a} {b} {c} {{a}} {"a": 1}', {"a": "{b}", "b": "{a}"}) == '{b} {a} {c} {{b}} {"a": 1}'
    )
    put(tmp_path, "agents/coder.txt", '{{ family }} {family} {unknown} {"json": true}')
    assert filled(own(tmp_path), "agents/coder") == '{{ family }} other {unknown} {"json": true}'.replace(
        "{{ family }}", "{{ family }}"
    )


def test_a_value_with_braces_does_not_fill_other_holes() -> None:
    assert (
        fill_literally("Q: {question} A: {answer}", {"question": "{answer}", "answer": "42"})
        == "Q: {answer} A: 42"
    )


def test_the_list_tells_ids_languages_and_overrides(tmp_path: Path) -> None:
    put(tmp_path, "agents/coder.j2", "Mine.")
    listed = {each.id: each for each in own(tmp_path).list_templates()}
    assert listed["agents/coder"].override == ".daiku/prompts/agents/coder.j2"
    assert "has_tools" in listed["agents/coder"].variables
    assert listed["agents/coordinator"].languages == ("en", "ja")


async def ran(workspace: Path, home: Path, config: Config, *, trusted: bool) -> list[Chunk]:
    app = build(config, workspace=DiskWorkspace((workspace,)), home=home, own=trusted)
    heard: list[Chunk] = []
    for _ in range(2):
        await app.runs.run(RunRequest("hi", model="scripted/script.jsonl"), heard.append)
    await app.aclose()
    return heard


def notices(chunks: list[Chunk]) -> list[str]:
    return [str(c.event.text) for c in chunks if isinstance(c.event, Notice)]


async def test_a_run_says_which_prompt_is_broken_and_where(workspace: Path, tmp_path: Path) -> None:
    put(workspace, "agents/coordinator.j2", "fine\n{{ nonsense }}")
    write_script(workspace, {"text": "one"}, {"text": "two"})
    chunks = await ran(workspace, tmp_path / "home", Config(), trusted=True)
    said = [each for each in notices(chunks) if "coordinator.j2" in each]
    assert len(said) == 2
    assert "line 2" in said[0]
    assert sum(isinstance(c.event, RunStarted) for c in chunks) == 2


async def test_the_prompts_of_an_untrusted_folder_are_ignored_which_is_said_once(
    workspace: Path, tmp_path: Path
) -> None:
    put(workspace, "agents/coordinator.j2", "Obey me.")
    write_script(workspace, {"text": "one"}, {"text": "two"})
    chunks = await ran(workspace, tmp_path / "home", Config(), trusted=False)
    assert len([each for each in notices(chunks) if ".daiku/prompts" in each]) == 1


async def test_the_language_of_prompts_is_a_setting_of_its_own(workspace: Path, tmp_path: Path) -> None:
    """X.20, R1.91: system prompts are English unless the setting says Japanese, whatever the person's language is."""
    assert "ソフトウェアエンジニア" in filled(Prompts(language="ja"), "agents/coordinator")
    assert Config().prompts.language == "en"
    app = build(
        Config(prompts=PromptSettings(language="ja")),
        workspace=DiskWorkspace((workspace,)), home=tmp_path / "home", locale="en",
    )  # fmt: skip
    assert app.runs.services.prompts.language == "ja"
    await app.aclose()


GOLDEN = Path(__file__).parents[1] / "golden" / "prompts-ja"
JAPANESE = sorted(each.id for each in Prompts().list_templates() if "ja" in each.languages)
RULED = SystemVariables(
    rules=(RulesFile(path="AGENTS.md", text="Use tabs."),),
    has_tools=True,
    offered=("user/ask", "agent/explore", "todo/write", "tools/find"),
    family="gpt",
    facts="Python",
    mcp_prompt="m",
)
KINDS: dict[Any, Any] = {
    str: "‹{}›",
    int: 2,
    int | None: 1,
    bool: True,
    tuple[str, ...]: ("‹one›",),
    tuple[tuple[str, str], ...]: (("‹source›", "‹passage›"),),
    tuple[tuple[str, str, str], ...]: (("‹id›", "‹section›", "‹lesson›"),),
    tuple[Criterion, ...]: (Criterion(id="clear", text="‹criterion›"),),
}
"""A value of each kind that variables have."""


def examples(template: str) -> tuple[tuple[str, BaseModel], ...]:
    """Two ways in which a template is filled in, each with what is different in it."""
    kind = TEMPLATES[template]
    if kind is SystemVariables:
        other = {"by_tools": False, "edits": "apply_patch"}
        return ("", RULED.model_copy(update={"by_tools": True})), (
            "without tools of its own",
            RULED.model_copy(update=other),
        )
    whole = {
        name: value.format(name) if isinstance(value := KINDS[field.annotation], str) else value
        for name, field in kind.model_fields.items()
    }
    least = {
        name: (type(value)() if isinstance(value, tuple | str | bool) else 1) for name, value in whole.items()
    }
    return ("", kind.model_validate(whole)), ("with next to nothing", kind.model_validate(least))


def test_every_prompt_is_there_in_english_and_japanese() -> None:
    """X.20: English unless the settings say otherwise; both are there for every id."""
    assert {each.id: each.languages for each in Prompts().list_templates()} == dict.fromkeys(
        TEMPLATES, ("en", "ja")
    )


@for_each("template", JAPANESE)
def test_the_japanese_prompt_is_the_one_on_record(template: str) -> None:
    with Prompts(language="ja").activate():
        shown = [
            (f"\n=== {what} ===\n" if what else "") + render(template, given)
            for what, given in examples(template)
        ]
    golden = GOLDEN / f"{template.partition('/')[2]}.txt"
    text = "".join(shown)
    if os.environ.get("GOLDEN") == "write":
        golden.write_text(text, "utf-8")
    assert golden.is_file(), "GOLDEN=write makes it: then read it"
    assert text == golden.read_text("utf-8")


@for_each("template", JAPANESE)
def test_a_japanese_prompt_names_the_same_tools_forms_and_variables_as_the_english_one(template: str) -> None:
    def parts(text: str) -> tuple[list[str], list[str], list[str]]:
        tools = sorted(set(re.findall(r"\b[a-z_]+__[a-z_]+\b", text)))
        forms = sorted(
            set(re.findall(r'"[a-z_]+"(?=: )|^[A-Z][A-Za-z ]+:|<<<<<<< \w+|"\w+/\w+"', text, re.MULTILINE))
        )
        code = sorted(re.findall(r"\{%-?\s*(.*?)\s*-?%\}", text))
        return tools, forms, code

    english = (find_prompts_folder() / f"{template}.j2").read_text("utf-8")
    japanese = (find_prompts_folder() / f"{template}.ja.j2").read_text("utf-8")
    english_tools, english_forms, english_code = parts(english)
    tools, forms, code = parts(japanese)
    assert (tools, forms) == (english_tools, [form for form in english_forms if form in japanese])
    assert [
        c for c in code if c.split()[0] in ("if", "elif", "for", "include", "endif", "endfor", "else")
    ] == [
        c for c in english_code if c.split()[0] in ("if", "elif", "for", "include", "endif", "endfor", "else")
    ]
    filled_in = re.compile(r"\{\{ [\w.]+ \}\}")
    assert set(filled_in.findall(japanese)) == set(filled_in.findall(english))


@pytest.mark.slow
def test_the_terminal_lists_and_shows_them(workspace: Path, daiku_home: Path) -> None:
    put(workspace, "agents/coder.j2", "Mine.\n")

    def said(*args: str) -> tuple[str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "daiku", *args],
            cwd=workspace, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout, done.stderr

    out, err = said("prompts", "list")
    assert "agents/coordinator" in out
    assert ".daiku/prompts" in err
    assert said("prompts", "show", "agents/coder")[0].startswith("You are Daiku")
    said("config", "trust")
    assert said("prompts", "show", "agents/coder")[0] == "Mine.\n"
    told = json.loads(said("prompts", "list", "--json")[0])
    assert {each["id"]: each["override"] for each in told}["agents/coder"] == ".daiku/prompts/agents/coder.j2"


async def test_the_model_is_really_sent_the_folders_own_prompt(workspace: Path, tmp_path: Path) -> None:
    """R1.91: what a run sends is the text behind the id, as it is overridden where the folder is trusted."""
    put(workspace, "agents/coordinator.j2", "You are the ship's carpenter.\n{% include 'parts/manners.j2' %}")
    put(workspace, "parts/manners.j2", "- Speak like a pirate.")
    for trusted, told in ((True, "ship's carpenter.\n- Speak like a pirate."), (False, "You are Daiku")):
        model = FakeLLM("Aye.")
        app = build(
            Config(),
            workspace=DiskWorkspace((workspace,)),
            home=tmp_path / f"home-{trusted}",
            own=trusted,
            parts=AppParts(model=model),
        )
        await app.runs.run(RunRequest("hi"), lambda _: None)
        assert told in model.requests[0].system
        await app.aclose()
