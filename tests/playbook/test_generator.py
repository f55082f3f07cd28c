"""The Generator of the playbook (seed 3): its flow, its prompts, its Trajectories, and what it does when something fails."""

from __future__ import annotations

import ast
import asyncio
import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from daiku.domain.errors import Failure, LLMTimeoutError
from daiku.domain.playbook import Bullet, BulletHit, Delta, Playbook, SearchQuery, Trajectory
from daiku.playbook.generate import FALLBACK, GeneratorAgent, PromptBuilder, is_cited
from daiku.playbook.generators import GeneratorFactory
from daiku.playbook.search import PlaybookSearch
from daiku.playbook.store import PlaybookStore
from daiku.prompts import find_prompts_folder
from daiku.settings import from_mapping
from daiku.settings.config import PlaybookSettings
from daiku.store import sqlite
from daiku.store.database import Database
from daiku.texts.text import text
from tests.cases import for_each
from tests.conftest import ROOT
from tests.playbook.parts import Kept, ScriptedClient, WordSearch, bullet, generator

EXAMPLES = 200
"""Of each property, whatever the profile."""
MEGABYTE = "語{x}" * 300_000
BRACES = '{query} {context} {{query}} {0} {"a": {}} {query!r} }}{{'
ODD = st.one_of(
    st.text(),
    st.text(alphabet="{}%$\\cqontexuery\n"),
    st.text(alphabet=st.characters(codec="utf-8", categories=("Cc", "Cf", "Zl", "Zp"))),
    st.text(alphabet=st.characters(min_codepoint=0x3040, max_codepoint=0x9FFF)),
    st.sampled_from([BRACES, "\x00", "\r\n", "[pc-00001]", "a" * 300]),
)
TOKYO = timezone(timedelta(hours=9))
TIMES = st.one_of(st.datetimes(), st.datetimes(timezones=st.sampled_from([UTC, TOKYO])))
TRAJECTORIES = st.builds(
    Trajectory,
    query=ODD,
    dataset=ODD,
    generated_answer=ODD,
    reasoning_steps=st.lists(ODD, max_size=4),
    used_bullet_ids=st.lists(ODD, max_size=4),
    status=st.sampled_from(["success", "failure"]),
    error_message=st.none() | ODD,
    created_at=TIMES,
)
FIELDS = [
    "query",
    "dataset",
    "generated_answer",
    "reasoning_steps",
    "used_bullet_ids",
    "status",
    "error_message",
    "created_at",
]
WRONG: dict[str, list[Any]] = {
    "query": [1, None, b"q", ["q"], True],
    "dataset": [1, None, b"d", 1.5],
    "generated_answer": [1, None, b"a", {}],
    "reasoning_steps": ["one", None, [1], [b"x"], ("a",), {"a"}],
    "used_bullet_ids": ["pc-00001", None, [1], [None], ("a",)],
    "status": ["ok", "", "Success", None, 1, b"success"],
    "error_message": [1, b"wrong", [], False],
    "created_at": ["yesterday", 1_700_000_000, None, "2026-01-01"],
}


def trajectory(**changed: Any) -> Trajectory:
    whole: dict[str, Any] = {
        "query": "q",
        "dataset": "d",
        "generated_answer": "a",
        "reasoning_steps": [],
        "used_bullet_ids": [],
        "status": "success",
    }
    return Trajectory(**(whole | changed))


class TestTrajectories:
    # Feature: generator-agent, Property 1: For any valid Trajectory, model_validate_json(model_dump_json()) equals it.
    @settings(max_examples=EXAMPLES, deadline=None)
    @given(TRAJECTORIES)
    def test_its_json_is_read_back_as_the_same(self, made: Trajectory) -> None:
        """R3.33, R3.47, R3.53, R3.56, C3.1, C3.6: also with a time that names no zone."""
        assert Trajectory.model_validate_json(made.model_dump_json()) == made

    # Feature: generator-agent, Property 2: For any value of a wrong type a ValidationError is raised.
    @settings(max_examples=EXAMPLES, deadline=None)
    @given(
        st.sampled_from([(name, value) for name, values in WRONG.items() for value in values]), TRAJECTORIES
    )
    def test_a_value_of_a_wrong_type_is_refused(self, wrong: tuple[str, Any], made: Trajectory) -> None:
        """R3.34, R3.52, R3.53, C3.7: nothing is turned into what it is not."""
        name, value = wrong
        with pytest.raises(ValidationError, match=name):
            Trajectory(**(dict(made) | {name: value}))

    def test_its_json_has_exactly_the_eight_fields(self) -> None:
        """R3.30, R3.54: snake_case, `error_message` null on success, the time in ISO 8601."""
        saved = json.loads(trajectory().model_dump_json())
        assert list(saved) == FIELDS
        assert saved["error_message"] is None
        assert datetime.fromisoformat(saved["created_at"]).utcoffset() == timedelta(0)

    def test_a_trajectory_is_dated_in_utc_and_one_without_a_zone_is_read(self) -> None:
        """R3.22, C3.6."""
        before = datetime.now(UTC)
        made = trajectory()
        assert before <= made.created_at <= datetime.now(UTC)
        naive = json.dumps(json.loads(made.model_dump_json()) | {"created_at": "2025-01-15T10:30:00"})
        assert Trajectory.model_validate_json(naive).created_at == datetime(2025, 1, 15, 10, 30)  # noqa: DTZ001  # the seed's example


@for_each("wrong", [(name, value) for name, values in WRONG.items() for value in values])
def test_each_field_has_its_type(wrong: tuple[str, Any]) -> None:
    """R3.14, R3.15, R3.16, R3.17, R3.18, R3.19, R3.20, R3.21, R3.22, C3.7."""
    name, value = wrong
    with pytest.raises(ValidationError, match=name):
        trajectory(**{name: value})


class TestPrompts:
    # Feature: generator-agent, Property 3: For any non-empty query and any bullets the prompt contains the query and
    # every bullet's content.
    @settings(max_examples=EXAMPLES, deadline=None)
    @given(ODD.filter(bool), st.lists(ODD, max_size=5), ODD)
    @example(BRACES, [BRACES, "{query}"], "{context}")
    @example("q", ["{{x}}"], "{context}{query}")
    @example(MEGABYTE, [MEGABYTE], "{context}{query}")
    def test_a_prompt_holds_the_query_and_every_bullet(
        self, query: str, contents: list[str], template: str
    ) -> None:
        """R3.35, R3.48, R3.49, R3.50, R3.53, R3.55, C3.2, C3.3: whatever the template says, and whatever they hold."""
        bullets = [bullet(n, content) for n, content in enumerate(contents, 1)]
        for builder in (PromptBuilder(), PromptBuilder("there/is/none", lambda _: template)):
            prompt = builder.build(query, bullets, "default")
            assert query in prompt
            assert all(each.content in prompt for each in bullets)

    def test_the_default_prompt_is_as_the_seed_has_it(self) -> None:
        """R3.27, R3.28, R3.29: the contents one a line, then the task."""
        assert PromptBuilder().build("Qを解く", [bullet(1, "一つ目"), bullet(2, "{query}")], "default") == (
            "以下の知識ベースを参考にして、タスクに回答してください.\n\n"
            "## 知識ベース\n一つ目\n{query}\n\n## タスク\nQを解く\n\n## 回答\n"
        )

    @pytest.mark.parametrize(
        ("template", "prompt"),
        [
            ("{context}|{query}", "B1\nB2|Q"),
            ("{{context}} {query} {context}", "{context} Q B1\nB2"),
            ('{"a": {{1}}} {query}{context}', '{"a": {1}} QB1\nB2'),
            ("{other} {query!r} {0} {query} {context}", "{other} {query!r} {0} Q B1\nB2"),
            ("{{{query}}}{context}", "{Q}B1\nB2"),
            ("Only {query}.", "Only Q.\n\n## 知識ベース\nB1\nB2"),
            ("Only {context}.", "Only B1\nB2.\n\n## タスク\nQ"),
            ("", "\n\n## 知識ベース\nB1\nB2\n\n## タスク\nQ"),
        ],
    )
    def test_a_template_is_filled_in_one_pass(self, template: str, prompt: str) -> None:
        """R3.26, R3.51, C3.2: two names are put in, doubled braces are single ones, what has no place gets its section."""
        bullets = [bullet(1, "B1"), bullet(2, "B2")]
        assert PromptBuilder(own=lambda _: template).build("Q", bullets, "default") == prompt

    def test_what_is_put_in_is_not_filled_in_again(self) -> None:
        """C3.3: a bullet or a query with braces stays as it is."""
        prompt = PromptBuilder(own=lambda _: "{query} {context}").build(
            "say {context}", [bullet(1, "{query} {{x}}")], "default"
        )
        assert prompt == "say {context} {query} {{x}}"

    def test_a_dataset_has_its_own_template_else_the_default_else_the_one_in_code(
        self, tmp_path: Path
    ) -> None:
        """R3.10, R3.11, R3.12, R3.13, R3.39, R3.40, R3.7."""
        builder = PromptBuilder(str(tmp_path))
        assert builder._load_template("one") == FALLBACK
        (tmp_path / "default.txt").write_text("default {query}{context}", "utf-8")
        assert builder._load_template("one") == "default {query}{context}"
        (tmp_path / "one.txt").write_text("one {query}{context}", "utf-8")
        assert builder._load_template("one") == "one {query}{context}"
        assert builder.build("q", [], "one") == "one q"
        assert builder._load_template("x" * 300) == "default {query}{context}"

    def test_the_shipped_templates_are_found_from_any_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """R3.5, R3.10, R3.24: `prompts/generator/default.txt` and `appworld.txt`."""
        monkeypatch.chdir(tmp_path)
        folder = find_prompts_folder() / "generator"
        for name in ("default", "appworld"):
            assert PromptBuilder()._load_template(name) == (folder / f"{name}.txt").read_text("utf-8")
        assert PromptBuilder()._load_template("default") == FALLBACK
        prompt = PromptBuilder().build("Play it.", [bullet(1, "Log in first.")], "appworld")
        assert '(**{"username"' in prompt
        assert "Log in first." in prompt

    @pytest.mark.parametrize(
        "name", ["../x", "a/b", "a\\b", "", "a\n", "a b", "\x00", "日本", "..\x00", "/etc"]
    )
    def test_a_name_that_leads_elsewhere_is_refused(self, name: str, tmp_path: Path) -> None:
        """C3.13: it becomes the name of a file."""
        (tmp_path / "x.txt").write_text("secret", "utf-8")
        inner = tmp_path / "generator"
        inner.mkdir()
        with pytest.raises(Exception, match="is not a valid dataset name"):
            PromptBuilder(inner)._load_template(name)


class TestFlow:
    def test_a_query_goes_through_the_five_stages_in_order(self) -> None:
        """R3.1, R3.2, R3.8, R3.9, R3.45, R3.46: load, search, build, ask, tell; the query first, then the playbook."""
        went: list[tuple[Any, ...]] = []
        playbook = Playbook(bullets=(bullet(1, "Use uv."),))

        class Store:
            def load(self) -> Playbook:
                went.append(("load",))
                return playbook

        class Search:
            def search(self, query: SearchQuery, playbook: Playbook) -> list[BulletHit]:
                went.append(("search", query, playbook))
                return [BulletHit(bullet=playbook.bullets[0], vector_score=1, bm25_score=1, combined_score=1)]

        class Builder:
            def build(self, query: str, bullets: list[Bullet], dataset: str) -> str:
                went.append(("build", query, [each.id for each in bullets], dataset))
                return "the prompt"

        class Client:
            async def invoke(self, prompt: str, retrieved: Sequence[Bullet]) -> str:
                went.append(("ask", prompt, list(retrieved)))
                return "the answer"

        made = GeneratorAgent(
            playbook_store=Store(), hybrid_search=Search(), llm_client=Client(), prompt_builder=Builder()
        ).run("How?", "default")
        assert went == [
            ("load",),
            ("search", SearchQuery(query_text="How?", top_k=10), playbook),
            ("build", "How?", ["pc-00001"], "default"),
            ("ask", "the prompt", [playbook.bullets[0]]),
        ]
        assert (made.query, made.dataset, made.generated_answer) == ("How?", "default", "the answer")
        assert (made.status, made.error_message) == ("success", None)

    # Feature: generator-agent, Property 4: For any reply of the model, generated_answer contains it and status is "success".
    @settings(max_examples=EXAMPLES, deadline=None)
    @given(ODD, ODD.filter(str.strip))
    @example("", "q")
    @example(MEGABYTE, "q")
    @example(BRACES, BRACES)
    def test_any_reply_is_the_answer(self, reply: str, query: str) -> None:
        """R3.36, R3.17, R3.53, R3.55, C3.1, C3.3: an empty one and one of a megabyte too."""
        agent, client = generator([bullet(1, BRACES)], reply)
        made = agent.run(query, "default")
        assert (made.generated_answer, made.status, made.error_message) == (reply, "success", None)
        assert query in client.prompts[0]
        assert Trajectory.model_validate_json(made.model_dump_json()) == made

    def test_steps_are_lines_that_a_person_reads_in_their_language(self) -> None:
        """R3.32, R3.18: what was found, built and answered."""
        known = [bullet(1, "run tests with uv", slug="batc"), bullet(2, "nothing", slug="batc")]
        made = generator(known, "As batc-00001 says.")[0].run("run tests", "appworld")
        assert made.reasoning_steps == [
            "Lessons in the playbook: 2.",
            "Matching lessons: 1 (batc-00001).",
            "Built the prompt for the dataset “appworld”.",
            "The model replied with 19 characters.",
            "Lessons cited in the reply: batc-00001.",
        ]
        japanese = GeneratorAgent(Kept(known), WordSearch(), ScriptedClient(), PromptBuilder(), language="ja")
        steps = japanese.run("run tests", "appworld").reasoning_steps
        assert all(re.search("[ぁ-ん]", step) for step in steps)

    @pytest.mark.parametrize(
        ("reply", "used"),
        [
            ("See [shr-00002].", ["shr-00002"]),
            ("shr-00002、shr-00001を使う", ["shr-00001", "shr-00002"]),
            ("Nothing of it.", ["shr-00001", "shr-00002"]),
            ("By shr-00099 and aup-00003.", ["shr-00001", "shr-00002"]),
            ("By shr-000021 and xshr-00002.", ["shr-00001", "shr-00002"]),
            ("", ["shr-00001", "shr-00002"]),
        ],
    )
    def test_used_are_the_retrieved_bullets_that_the_reply_names(self, reply: str, used: list[str]) -> None:
        """R3.19, R3.31, C3.5: all of them where it names none; never one that was not retrieved."""
        known = [
            bullet(1, "limit rates", slug="shr"),
            bullet(2, "limit rates", slug="shr"),
            bullet(3, "colours", slug="aup"),
        ]
        agent, client = generator(known, reply)
        assert agent.run("limit rates", "appworld").used_bullet_ids == used
        assert client.retrieved == [["shr-00001", "shr-00002"]]
        assert "[shr-00001] limit rates\n[shr-00002] limit rates" in client.prompts[0]

    def test_an_empty_playbook_leaves_the_context_empty_and_the_model_is_asked(self) -> None:
        """R3.41, R3.42, C3.4: no words stand in for what is not there."""
        agent, client = generator()
        made = agent.run("How?", "default")
        assert client.prompts == [FALLBACK.replace("{context}", "").replace("{query}", "How?")]
        assert (made.status, made.used_bullet_ids) == ("success", [])
        assert "No lesson matches the query." in made.reasoning_steps

    def test_the_budget_limits_what_is_chosen_and_never_what_is_built(self) -> None:
        """R3.35: the best that there is room for; a bullet is told whole or not at all."""
        known = [bullet(1, "tests uv run"), bullet(2, "tests run " + "long " * 500), bullet(3, "tests only")]
        client = ScriptedClient()
        GeneratorAgent(
            Kept(known), WordSearch(), client, PromptBuilder(), settings=PlaybookSettings(token_budget=60)
        ).run("tests uv run", "default")
        assert client.retrieved == [["pc-00001", "pc-00003"]]
        whole = PromptBuilder().build("q", known, "default")
        assert all(each.content in whole for each in known)

    def test_what_rests_or_is_inactive_is_not_told(self) -> None:
        """R3.2: a lesson that harmed more than it helped, and one that was taken out."""
        known = [
            bullet(1, "run tests", harmful=9),
            bullet(2, "run tests").model_copy(update={"active": False}),
            bullet(3, "run tests"),
        ]
        agent, client = generator(known)
        agent.run("run tests", "default")
        assert client.retrieved == [["pc-00003"]]

    def test_it_runs_where_nothing_waits_and_inside_a_running_loop(self) -> None:
        """R3.9, C3.10: an asynchronous core, and a method for code that is not."""
        agent, client = generator(reply="ok")

        async def inside() -> tuple[str, str]:
            return agent.run("a", "default").generated_answer, (
                await agent.arun("b", "default")
            ).generated_answer

        assert agent.run("c", "default").generated_answer == "ok"
        assert asyncio.run(inside()) == ("ok", "ok")
        assert len(client.prompts) == 3

    def test_several_run_side_by_side(self) -> None:
        """R3.3, R3.4: it keeps nothing of one query for the next."""
        agent, _ = generator([bullet(1, "one"), bullet(2, "two")])

        async def together() -> list[Trajectory]:
            return await asyncio.gather(*(agent.arun(query, "default") for query in ("one", "two", "three")))

        assert [made.used_bullet_ids for made in asyncio.run(together())] == [["pc-00001"], ["pc-00002"], []]


class Broken:
    """Fails at whatever it is asked."""

    def __init__(self, wrong: Exception) -> None:
        self.wrong = wrong

    def load(self) -> Playbook:
        raise self.wrong

    def search(self, query: SearchQuery, playbook: Playbook) -> list[BulletHit]:
        raise self.wrong

    def build(self, query: str, bullets: list[Bullet], dataset: str) -> str:
        raise self.wrong

    async def invoke(self, prompt: str, retrieved: Sequence[Bullet]) -> str:
        raise self.wrong


FAULTS = [
    OSError(28, "No space left on device"),
    KeyError("context"),
    RecursionError(),
    LLMTimeoutError(Failure(kind="timeout", message=text("generate.no_query"))),
]


class TestFailures:
    @pytest.mark.parametrize("wrong", FAULTS, ids=lambda each: type(each).__name__)
    @pytest.mark.parametrize(("place", "stage"), list(enumerate(["load", "search", "prompt", "model"])))
    def test_whatever_a_stage_raises_is_told_by_the_trajectory(
        self, place: int, stage: str, wrong: Exception
    ) -> None:
        """R3.37, R3.38, R3.43, R3.20, R3.21, C3.8: it names the stage, and says what went wrong."""
        parts: list[Any] = [Kept([bullet(1, "known")]), WordSearch(), ScriptedClient(), PromptBuilder()]
        parts[{0: 0, 1: 1, 2: 3, 3: 2}[place]] = Broken(wrong)
        made = GeneratorAgent(*parts).run("known", "default")
        assert made.status == "failure"
        assert (made.generated_answer, made.used_bullet_ids) == ("", [])
        assert made.error_message is not None
        assert made.error_message.startswith(f"{stage}: ")
        said = wrong.failure.message if isinstance(wrong, LLMTimeoutError) else type(wrong).__name__
        assert said in made.error_message
        assert len(made.reasoning_steps) == place
        assert Trajectory.model_validate_json(made.model_dump_json()) == made

    def test_a_reply_that_is_no_text_fails_at_the_result(self) -> None:
        """R3.38, C3.8: the fifth stage."""
        odd: Any = ScriptedClient(reply=5)  # pyright: ignore[reportArgumentType]  # a client that breaks its word
        made = GeneratorAgent(Kept(), WordSearch(), odd, PromptBuilder()).run("q", "default")
        assert made.status == "failure"
        assert str(made.error_message).startswith("result: ")

    @pytest.mark.parametrize("query", ["", " \n\t", "　"])
    def test_an_empty_query_asks_nothing(self, query: str) -> None:
        """C3.12: a failure before any call."""
        agent, client = generator()
        made = agent.run(query, "default")
        assert (made.status, made.query, client.prompts) == ("failure", query, [])
        assert made.error_message == "input: The query is empty. Say what to do."
        assert made.reasoning_steps == []

    @pytest.mark.parametrize(
        "dataset", ["../x", "", "a/b", "\x00", "a\x00b", "a\n", "日本", "x y", "%2e%2e/x"]
    )
    def test_a_bad_dataset_asks_nothing(self, dataset: str) -> None:
        """C3.13, R3.16."""
        agent, client = generator()
        made = agent.run("q", dataset)
        assert (made.status, made.dataset, client.prompts) == ("failure", dataset, [])
        assert str(made.error_message).startswith("input: ")

    @pytest.mark.parametrize("dataset", ["x" * 300, "..", ".", "CON", "a.b-c_D9"])
    def test_a_name_without_a_template_has_the_default_one(self, dataset: str) -> None:
        """R3.39, C3.13: also one that is too long for a file."""
        agent, client = generator()
        assert agent.run("q", dataset).status == "success"
        assert client.prompts == [FALLBACK.replace("{context}", "").replace("{query}", "q")]

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(
        st.one_of(ODD, st.text(alphabet=st.characters()), st.integers(), st.none(), st.binary()),
        st.one_of(ODD, st.text(alphabet=st.characters()), st.integers(), st.none()),
    )
    @example("\ud800", "default")
    @example("q", "\udfff")
    @example("q" * 1_000_000, "default")
    def test_nothing_that_is_asked_makes_it_raise(self, query: Any, dataset: Any) -> None:
        """R3.38: what comes back is a Trajectory that can be saved, and a failure where no model was to be asked."""
        agent, client = generator()
        made = agent.run(query, dataset)
        assert Trajectory.model_validate_json(made.model_dump_json()) == made
        fine = isinstance(query, str) and query.strip() and isinstance(dataset, str)
        fine = fine and re.fullmatch("[A-Za-z0-9_.-]+", dataset)
        assert (made.status, len(client.prompts)) == (("success", 1) if fine else ("failure", 0))

    def test_a_template_that_cannot_be_read_fails_at_the_prompt(self, tmp_path: Path) -> None:
        """R3.38, R3.39, C3.8: it is there, so the default one is not taken in its place."""
        (tmp_path / "bad.txt").write_bytes(b"\xff\xfe{query}")
        (tmp_path / "folder.txt").mkdir()
        for dataset in ("bad", "folder"):
            client = ScriptedClient()
            made = GeneratorAgent(Kept(), WordSearch(), client, PromptBuilder(tmp_path)).run("q", dataset)
            assert str(made.error_message).startswith("prompt: ")
            assert client.prompts == []

    def test_a_failure_shows_no_secret(self) -> None:
        """R3.37: what an exception says goes through the redactor."""
        parts: Any = (Kept(), WordSearch(), Broken(RuntimeError("key=hunter22")), PromptBuilder())
        made = GeneratorAgent(*parts, redact=lambda said: said.replace("hunter22", "[redacted]")).run(
            "q", "d"
        )
        assert made.error_message == "model: RuntimeError: key=[redacted]"

    async def test_who_cancels_it_is_heard(self) -> None:
        """R3.38: to be cancelled is no failure of a stage."""

        class Waiting:
            async def invoke(self, prompt: str, retrieved: Sequence[Bullet]) -> str:
                await asyncio.Event().wait()
                return ""

        agent = GeneratorAgent(Kept(), WordSearch(), Waiting(), PromptBuilder())
        task = asyncio.create_task(agent.arun("q", "d"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


class TestRealParts:
    """With the store and the search that Daiku itself uses."""

    @pytest.fixture
    def database(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
        monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
        database = sqlite.connect(tmp_path / "daiku.db", "")
        yield database
        database.close()

    def agent(self, database: Database, client: ScriptedClient, alpha: float = 0.5) -> GeneratorAgent:
        store = PlaybookStore(database, "repository", "here")
        return GeneratorAgent(store, PlaybookSearch(alpha=alpha), client, PromptBuilder())

    def test_a_japanese_word_of_two_characters_finds_its_lesson(self, database: Database) -> None:
        """C3.9, R3.2, R3.45: what is written without spaces is found, and so are the parts of a name in code."""
        store = PlaybookStore(database, "repository", "here")
        lessons = ("環境変数は設定に書く", "試験は並列で実行する", "parseRateLimit reads the header")
        for content in lessons:
            store.apply(Delta(id="", type="add", section="tool_usage", content=content))
        for query, found in (
            ("試験を速く", lessons[1]),
            ("環境", lessons[0]),
            ("limit of rates", lessons[2]),
        ):
            client = ScriptedClient()
            assert (
                self.agent(database, client, alpha=0).run(query, "default").status == "success"
            )  # words alone
            assert found in client.prompts[0].partition("## 知識ベース\n")[2].splitlines()[0]

    def test_a_store_that_is_locked_is_a_failure_at_its_stage(
        self, database: Database, tmp_path: Path
    ) -> None:
        """R3.38, C3.8: another program holds the file."""
        client = ScriptedClient()
        with closing(sqlite3.connect(tmp_path / "daiku.db", isolation_level=None)) as holder:
            holder.execute("BEGIN EXCLUSIVE")
            made = self.agent(database, client).run("q", "default")
        assert (made.status, client.prompts) == ("failure", [])
        assert re.match("load: .*(another|other)", str(made.error_message))
        assert self.agent(database, client).run("q", "default").status == "success"

    def test_a_full_disk_is_a_failure_at_its_stage(self, database: Database) -> None:
        """R3.38, C3.8: there is no room for the tables of the playbook."""
        pages = database.first("PRAGMA page_count")[0]  # a full disk, without one
        database.first(f"PRAGMA max_page_count={max(pages, 1)}")
        made = self.agent(database, client := ScriptedClient()).run("q", "default")
        assert (made.status, client.prompts) == ("failure", [])
        assert re.match("load: .*full", str(made.error_message))


class TestFactory:
    def factory(self, folder: Path, **llm: str) -> GeneratorFactory:
        config = from_mapping({"llm": {"provider": "scripted", **llm}}, {})
        return GeneratorFactory(config, Kept([bullet(1, "Use uv.")]), WordSearch(), prompts_dir=folder)

    def test_the_model_and_the_prompts_are_made_once_and_agents_each_time(self, tmp_path: Path) -> None:
        """R3.23, R3.24, R3.25, R3.8, C3.11: under the names of the seed's container."""
        (tmp_path / "default.txt").write_text("Mine: {query} {context}", "utf-8")
        factory = self.factory(tmp_path)
        assert factory.chat_model is factory.chat_model
        assert factory.prompt_builder is factory.prompt_builder
        assert factory.generator_agent() is not factory.generator_agent()
        client = ScriptedClient()
        made = factory.generator_agent(client).run("use", "default")
        assert (made.status, client.prompts) == ("success", ["Mine: use [pc-00001] Use uv."])

    def test_its_model_is_that_of_the_settings(self, tmp_path: Path) -> None:
        """R3.23, R3.44, C3.10, C3.11: `provider` is read like every other setting; asked again from another loop."""
        script = tmp_path / "replies.jsonl"
        script.write_text('{"text": "from the script"}\n', "utf-8")
        factory = self.factory(tmp_path, model=str(script))
        for _ in range(2):
            made = factory.generator_agent().run("use", "default")
            assert (made.generated_answer, made.error_message) == ("from the script", None)
        none = self.factory(tmp_path, model=str(tmp_path / "none.jsonl")).generator_agent()
        assert str(none.run("use", "default").error_message).startswith("model: ")

    def test_the_agent_knows_its_parts_by_protocols_alone(self) -> None:
        """R3.3, R3.4, R3.6: so each can be replaced, and none of them knows the agent."""
        folder = ROOT / "server" / "daiku" / "playbook"

        def imported(name: str) -> set[str]:
            tree = ast.parse((folder / f"{name}.py").read_text("utf-8"))
            found = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
            return {str(node.module) for node in found if str(node.module).startswith("daiku.playbook")}

        assert imported("generate") == set()
        for part in ("store", "search"):
            assert "daiku.playbook.generate" not in imported(part)


@pytest.mark.parametrize("said", ["pc-00001", "[pc-00001]", "（pc-00001）", "知見pc-00001を", "pc-00001."])
def test_an_id_is_named_also_between_japanese_words(said: str) -> None:
    """R3.31, C3.5."""
    assert is_cited("pc-00001", said)


def test_each_property_has_its_comment_and_enough_examples() -> None:
    """The form that seed 3 gives to tests of properties."""
    said = re.findall(r"# Feature: generator-agent, Property (\d): \S", Path(__file__).read_text("utf-8"))
    assert said == ["1", "2", "3", "4"]
    tests = (
        TestTrajectories.test_its_json_is_read_back_as_the_same,
        TestTrajectories.test_a_value_of_a_wrong_type_is_refused,
        TestPrompts.test_a_prompt_holds_the_query_and_every_bullet,
        TestFlow.test_any_reply_is_the_answer,
    )
    for test in tests:
        given_settings: Any = test
        assert given_settings._hypothesis_internal_use_settings.max_examples >= EXAMPLES
