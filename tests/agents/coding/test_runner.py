"""The runner: its commands run one after the other; a failure is mended twice at most, seen with its stderr."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.events import RulesText
from daiku.domain.messages import (
    AssistantMessage,
    Message,
    ModelEvent,
    ModelRequest,
    Reply,
    ToolMessage,
    Usage,
    UserMessage,
)
from daiku.domain.tools import ToolCall
from daiku.domain.work.handovers import Brief, CommandsRun, EditsMade
from daiku.domain.work.patches import FileStat
from daiku.domain.work.plans import Plan, Step
from daiku.guard.rules.commands.judge import changes_folder
from daiku.models.rules.replies.parse import Unreadable
from daiku.prompts import find_prompts_folder
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
from daiku.run.rules.state.context import rules_message
from daiku.team.coding.runner import MAX_REPAIRS, RUN, build_run_request, collect_commands, remind
from daiku.team.part import Stage
from daiku.team.role import Failed, select_messages_since_request, stream_role_reply
from daiku.team.table import find_agent
from daiku.texts.text import Text
from tests.agents.acting import PROTOCOLS, act, app_with, called, in_protocol, said
from tests.cases import for_each
from tests.runs.playing import Watch

ASKED: tuple[Message, ...] = (UserMessage(text="Run the tests."),)
PATCH = 'I see.\n{"action": "patch"}\n\nadd.py\n<<<<<<< SEARCH\n    return a - b\n=======\n    return a + b\n>>>>>>> REPLACE\n'


def commands(*names: str) -> str:
    return json.dumps({"commands": names})


def read(text: str, messages: tuple[Message, ...] = ASKED) -> AssistantMessage:
    found = RUN.read(AssistantMessage(text=Text(text)), messages, False)
    assert isinstance(found, AssistantMessage), found
    return found


def ran(reply: AssistantMessage, code: int = 0, output: str = "…") -> tuple[Message, ...]:
    """The reply and what its calls came to."""
    return (
        reply,
        *(
            ToolMessage(
                call_id=c.id,
                tool=c.tool,
                ok=code == 0,
                exit_code=code,
                text=f"Exit code {code} after 0.1 s.\n{output}",
            )
            for c in reply.calls
        ),
    )


def line(message: Message | Failed | None) -> str:
    """The command that a reply runs."""
    assert isinstance(message, AssistantMessage), message
    assert [c.tool for c in message.calls] == ["shell/run"]
    return str(message.calls[0].args["command"])


# -- the form ------------------------------------------------------------------------------


@for_each(
    "text",
    [
        commands("a", "b"),
        f"```json\n{commands('a', 'b')}\n```",
        f"Here: {commands('a', 'b')} Good luck.",
        '{"commands": ["a", "b",],}',
    ],
)
def test_commands_run_one_after_the_other(text: str) -> None:
    first = read(text)
    assert line(first) == "a"
    assert first.text == "- `a`\n- `b`"
    second = RUN.after_calls((*ASKED, *ran(first)))
    assert line(second) == "b"
    assert isinstance(second, AssistantMessage)
    end = RUN.after_calls((*ASKED, *ran(first), *ran(second)))
    assert isinstance(end, AssistantMessage)
    assert end.text == "- `a`: exit code 0\n- `b`: exit code 0"
    assert end.calls == ()


@for_each("text", ["", "Run npm test.", "{}", '{"commands": 7}', '{"commands": [1]}', "```sh\nnpm test\n```"])
def test_any_other_reply_is_unreadable(text: str) -> None:
    assert isinstance(RUN.read(AssistantMessage(text=Text(text)), ASKED, False), Unreadable)


def test_a_command_that_hides_its_exit_code_is_run_only_where_the_person_wrote_it_so() -> None:
    hiding = AssistantMessage(text=Text(commands("pytest -q || true")))
    assert isinstance(RUN.read(hiding, ASKED, False), Unreadable)
    asked = (UserMessage(text="Run `pytest -q || true`, please."),)
    assert line(read(hiding.text, asked)) == "pytest -q || true"


def test_nothing_to_run_is_an_answer() -> None:
    assert read(commands()).text == "Nothing has to be run."


def test_after_a_failure_the_model_is_asked_what_to_do() -> None:
    messages = (*ASKED, *ran(read(commands("make test", "make install")), 2))
    assert RUN.after_calls(messages) is None
    told = remind(messages)
    assert "`make test` failed with exit code 2" in told
    assert "2 of 2 repairs left" in told
    assert "Still to be run after it: `make install`" in told
    assert remind(ASKED) == ""


def test_a_command_takes_the_place_of_the_one_that_failed() -> None:
    failed = (*ASKED, *ran(read(commands("python t.py", "ls")), 127))
    mended = read('{"action": "command", "command": "python3 t.py"}', failed)
    assert line(mended) == "python3 t.py"
    assert line(RUN.after_calls((*failed, *ran(mended)))) == "ls"


def test_with_retry_the_one_that_failed_is_run_again_before_the_rest() -> None:
    failed = (*ASKED, *ran(read(commands("pytest", "ls")), 1))
    mended = read('{"action": "command", "command": "pip install x", "retry": true}', failed)
    once = (*failed, *ran(mended))
    again = RUN.after_calls(once)
    assert line(again) == "pytest"
    assert isinstance(again, AssistantMessage)
    assert line(RUN.after_calls((*once, *ran(again)))) == "ls"


@for_each(
    "text",
    [PATCH, PATCH.split("\n", 2)[2], json.dumps({"action": "patch", "patch": PATCH.split("\n", 3)[3]})],
)
def test_after_a_patch_the_command_is_run_again(text: str) -> None:
    failed = (*ASKED, *ran(read(commands("pytest", "ls")), 1))
    mended = read(text, failed)
    assert [c.tool for c in mended.calls] == ["files/patch"]
    assert mended.text in ("I see.\n\n- `add.py`", "- `add.py`"), "the form is not for the person"
    assert line(RUN.after_calls((*failed, *ran(mended)))) == "pytest"
    assert RUN.after_calls((*failed, *ran(mended, 1))) is None, "the patch did not fit: the model is asked"


def test_edits_by_tools_are_a_patch_too() -> None:
    failed = (*ASKED, *ran(read(commands("pytest")), 1))
    look = AssistantMessage(calls=(ToolCall(tool="files/read", args={"path": "a"}),))
    assert RUN.after_calls((*failed, *ran(look))) is None
    edit = AssistantMessage(calls=(ToolCall(tool="files/edit", args={"path": "a"}),))
    assert line(RUN.after_calls((*failed, *ran(look), *ran(edit)))) == "pytest"


def test_a_patch_without_a_change_and_a_command_without_one_are_told() -> None:
    failed = (*ASKED, *ran(read(commands("pytest")), 1))
    for text, word in (
        ('{"action": "patch"}', "SEARCH"),
        ('{"action": "command"}', "command"),
        ("Hm.", "JSON"),
    ):
        found = RUN.read(AssistantMessage(text=Text(text)), failed, False)
        assert isinstance(found, Unreadable)
        assert word in found.problem


def test_stopping_is_a_choice() -> None:
    failed = (*ASKED, *ran(read(commands("pytest")), 1))
    assert read('{"action": "stop", "reason": "No network."}', failed).text == "No network."


def test_two_repairs_are_all_there_are() -> None:
    messages = (*ASKED, *ran(read(commands("a", "b", "c"))))
    second = RUN.after_calls(messages)
    assert isinstance(second, AssistantMessage)
    messages = (*messages, *ran(second, 1))
    for number in range(MAX_REPAIRS):
        assert RUN.after_calls(messages) is None
        assert f"{MAX_REPAIRS - number} of {MAX_REPAIRS} repairs left" in remind(messages)
        reply = read(json.dumps({"action": "command", "command": f"try {number}"}), messages)
        messages = (*messages, *ran(reply, 3, "stderr: no such thing"))
    end = RUN.after_calls(messages)
    assert isinstance(end, Failed)
    assert end.failure.message == "`try 1` still fails after 2 repairs."
    assert "- `a`: exit code 0\n- `b`: exit code 1\n- `try 0`: exit code 3" in end.text
    assert "Not run: `c`" in end.text
    assert "no such thing" in end.text


def native(command: str) -> AssistantMessage:
    return AssistantMessage(calls=(ToolCall(tool="shell/run", args={"command": command}),))


def test_a_model_that_looks_around_by_itself_uses_up_no_repair() -> None:
    messages = ASKED
    for command in ("grep -r nothing .", "ls missing", "cat missing", "git show missing"):
        messages = (*messages, *ran(native(command), 1))
        assert RUN.after_calls(messages) is None
        assert remind(messages) == ""
    for command in ("make", "make test", "make"):
        assert RUN.after_calls(messages) is None
        messages = (*messages, *ran(native(command), 2))
    assert isinstance(RUN.after_calls(messages), Failed)
    assert RUN.after_calls((*messages, *ran(native("make -k")))) is None, "the last one is what counts"


def test_rules_of_a_folder_in_between_change_nothing() -> None:
    first = ran(read(commands("a", "b")))
    rules = rules_message((RulesText(path="x/AGENTS.md", text="Be kind."),))
    assert line(RUN.after_calls((*ASKED, *first, rules))) == "b"
    assert select_messages_since_request((*ASKED, *first, rules)) == first


def test_a_word_of_the_person_is_for_the_model() -> None:
    first = ran(read(commands("a", "b")))
    assert RUN.after_calls((*ASKED, *first, UserMessage(text="Stop after a."))) is None


async def test_the_reminder_is_in_one_request_only_and_a_failure_ends_the_stream() -> None:
    requests: list[ModelRequest] = []

    async def ask(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        requests.append(request)
        yield Reply(AssistantMessage(text=Text('{"action": "command", "command": "b"}')), Usage(), "stop")

    messages = (*ASKED, *ran(read(commands("a")), 1))
    [reply] = [
        e async for e in stream_role_reply(RUN, ModelRequest("", "", messages), ask) if isinstance(e, Reply)
    ]
    assert requests[0].messages[:-1] == messages
    assert "repairs left" in str(requests[0].messages[-1])
    assert (line(reply.message), reply.finish) == ("b", "tool_calls")


# -- whole runs ----------------------------------------------------------------------------

# Their commands really run: in the fast loop for one protocol.
ONE_IN_THE_LOOP = [PROTOCOLS[0], *(pytest.param(p, marks=pytest.mark.slow) for p in PROTOCOLS[1:])]


@pytest.mark.parametrize("protocol", ONE_IN_THE_LOOP)
async def test_they_really_run_in_the_project_and_stop_at_the_first_failure(
    tmp_path: Path, protocol: str
) -> None:
    app = app_with(
        tmp_path,
        {"text": commands("echo one > a.txt", "cat missing.txt", "echo two > b.txt")},
        {"text": '{"action": "stop", "reason": "There is no missing.txt."}'},
        protocol=protocol,
    )
    result, state, watch = await act(app, "runner")
    project = tmp_path / "project"
    assert (project / "a.txt").read_text() == "one\n"
    assert not (project / "b.txt").exists()
    assert (result.status, result.text) == ("failed", "There is no missing.txt.")
    assert result.error is not None
    assert result.error.message == "`cat missing.txt` failed (exit code 1) and was not repaired."
    handed = collect_commands(state)
    assert isinstance(handed, CommandsRun)
    assert [(c.command, c.exit_code) for c in handed.commands] == [
        ("echo one > a.txt", 0),
        ("cat missing.txt", 1),
    ]
    assert "No such file" in handed.commands[1].output, "what came on stderr is known"
    assert len(called(watch)) == 2


@pytest.mark.parametrize("protocol", ONE_IN_THE_LOOP)
async def test_a_patch_of_the_code_mends_the_test(tmp_path: Path, protocol: str) -> None:
    app = app_with(
        tmp_path, {"text": commands("python3 t.py", "echo done")}, {"text": PATCH}, protocol=protocol
    )
    project = tmp_path / "project"
    (project / "add.py").write_text("def add(a, b):\n    return a - b\n")
    (project / "t.py").write_text("from add import add\nassert add(1, 2) == 3, 'wrong sum'\n")
    result, state, watch = await act(app, "runner")
    assert result.status == "completed"
    assert [(c.command, c.exit_code) for c in state.done.commands] == [
        ("python3 t.py", 1),
        ("python3 t.py", 0),
        ("echo done", 0),
    ]
    assert "wrong sum" in state.done.commands[0].output
    assert result.text.splitlines() == [
        "- `python3 t.py`: exit code 1",
        "- `python3 t.py`: exit code 0",
        "- `echo done`: exit code 0",
    ]
    assert [f.path for f in state.done.files] == ["add.py"]
    assert said(watch)[1].endswith("- `add.py`")
    assert (await replay(watch.chunks)).difference is None


@pytest.mark.parametrize("protocol", ONE_IN_THE_LOOP)
async def test_a_model_may_run_commands_itself(tmp_path: Path, protocol: str) -> None:
    words = {"command": '{"done": true, "comment": "All is well."}'}
    app = app_with(
        tmp_path,
        in_protocol(protocol, "shell/run", {"command": "echo hi"}),
        {"text": words.get(protocol, "All is well.")},
        protocol=protocol,
    )
    result, state, _ = await act(app, "runner")
    assert (result.status, result.text) == ("completed", "All is well.")
    assert [c.output for c in state.done.commands] == ["hi\n"]


LANGUAGES = {
    "python3 t.py": ("add.py", "def add(a, b):\n    return a - b\n", "t.py", "from add import add\nassert add(1, 2) == 3, 'wrong sum'\n"),
    "node t.js": ("add.js", "exports.add = (a, b) => a - b;\n", "t.js", "const { add } = require('./add.js');\nif (add(1, 2) !== 3) throw new Error('wrong sum');\n"),
    "perl t.pl": ("Add.pm", "package Add;\nsub add { my ($a, $b) = @_; return $a - $b }\n1;\n", "t.pl", "use lib '.';\nuse Add;\ndie 'wrong sum' if Add::add(1, 2) != 3;\n"),
    "sh t.sh": ("add.sh", 'add() { a=$1; b=$2; echo $((a - b)); }\n', "t.sh", ". ./add.sh\n[ $(add 1 2) = 3 ] || { echo wrong sum >&2; exit 1; }\n"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("command", LANGUAGES)
async def test_in_any_language_a_wrong_patch_is_followed_by_a_right_one(tmp_path: Path, command: str) -> None:
    if shutil.which(command.split(maxsplit=1)[0]) is None:
        pytest.skip(
            f"{command.split(maxsplit=1)[0]} is missing: npm test installs no interpreters of other languages"
        )
    code, wrong, test, check = LANGUAGES[command]
    action = '{"action": "patch"}\n\n'
    blocks = f"{code}\n<<<<<<< SEARCH\n{{}}\n=======\n{{}}\n>>>>>>> REPLACE\n"
    before = next(line for line in wrong.splitlines() if " - " in line)
    worse, right = before.replace(" - ", " * "), before.replace(" - ", " + ")
    app = app_with(
        tmp_path,
        {"text": commands(command)},
        {"text": action + blocks.format(before, worse), "when": "repairs left"},
        {"text": action + blocks.format(worse, right), "when": "1 of 2 repairs left"},
    )
    (tmp_path / "project" / code).write_text(wrong)
    (tmp_path / "project" / test).write_text(check)
    result, state, _ = await act(app, "runner")
    assert (result.status, [c.exit_code == 0 for c in state.done.commands]) == (
        "completed",
        [False, False, True],
    )
    assert all("wrong sum" in c.output for c in state.done.commands[:2]), "stderr is known"
    assert (tmp_path / "project" / code).read_text() == wrong.replace(" - ", " + ")


async def test_it_ends_failed_with_what_is_known(tmp_path: Path) -> None:
    app = app_with(
        tmp_path,
        {"text": commands("cat a", "echo never")},
        {"text": '{"action": "command", "command": "cat b"}'},
        {"text": '{"action": "command", "command": "cat c"}'},
        {"text": '{"action": "command", "command": "cat d"}'},
    )
    result, state, watch = await act(app, "runner")
    assert result.status == "failed"
    assert result.error is not None
    assert result.error.message == "`cat c` still fails after 2 repairs."
    assert "cat: c: No such file" in said(watch)[-1]
    assert [c.command for c in state.done.commands] == ["cat a", "cat b", "cat c"]


CD = [
    "cd sub && touch here.txt",
    "cd sub; touch here.txt",
    "cd sub\ntouch here.txt",
    'cd "sub" && touch here.txt',
    "cd ./sub && cd .. && cd sub && touch here.txt",
    "(cd sub; touch here.txt)",
    "(cd sub && touch here.txt)",
    "{ cd sub; touch here.txt; }",
    "sh -c 'cd sub && touch here.txt'",
    'bash -lc "cd sub; touch here.txt"',
    "true && cd sub && touch here.txt",
    "pushd sub; touch here.txt",
    "command cd sub && touch here.txt",
    "builtin cd sub && touch here.txt",
    'eval "cd sub"; touch here.txt',
    "env -i sh -c 'cd sub && touch here.txt'",
    "for d in sub; do cd $d; touch here.txt; done",
    "echo $(cd sub && touch here.txt)",
    "cd",
    "cd sub",
    "cd /tmp && touch here.txt",
    "cd .. && touch here.txt",
]


@pytest.mark.parametrize("command", CD)
async def test_a_command_that_goes_to_another_folder_is_not_run(tmp_path: Path, command: str) -> None:
    app = app_with(
        tmp_path, {"text": commands(command)}, {"text": '{"action": "stop", "reason": "I may not."}'}
    )
    (tmp_path / "project" / "sub").mkdir()
    result, state, _ = await act(app, "runner")
    assert result.status == "failed"
    [outcome] = state.done.commands
    assert outcome.command == command
    assert outcome.exit_code != 0
    assert not list(tmp_path.rglob("here.txt"))
    assert not Path("/tmp/here.txt").exists()


@pytest.mark.parametrize(
    "command", ["cd . && touch here.txt", "cd {} && touch here.txt", "cd ./ ; touch here.txt"]
)
async def test_cd_into_the_projects_own_folder_is_taken_off(tmp_path: Path, command: str) -> None:
    (tmp_path / "project" / "sub").mkdir(parents=True)
    line = command.format(tmp_path / "project")
    result, _, _ = await act(app_with(tmp_path, {"text": commands(line)}), "runner")
    assert result.status == "completed"
    assert (tmp_path / "project" / "here.txt").exists()


@for_each("command", ["make -C sub", "git -C sub status", "echo cd sub", "ls cd", "grep 'cd sub' x || ls"])
def test_what_only_speaks_of_folders_goes_nowhere(command: str) -> None:
    assert not changes_folder(command)


@pytest.mark.parametrize("command", CD[:16])
async def test_commands_that_were_given_as_they_are_stay_in_the_folder_too(
    tmp_path: Path, command: str
) -> None:
    app = app_with(tmp_path, {"text": "unused"})
    (tmp_path / "project" / "sub").mkdir()
    watch = Watch()
    call = ToolCall(tool="shell/run", args={"command": command})
    request = RunRequest("Run.", agent="runner", calls=(call,), approvals="all")
    await app.runs.run(request, watch)
    await app.aclose()
    [answer] = [json.loads(c.data) for c in watch.chunks if c.type == "tool_response"]
    assert (answer["ok"], answer["data"]["exitCode"]) == (False, 126)
    assert not list(tmp_path.rglob("here.txt"))


async def test_a_run_that_was_cut_off_goes_on_with_its_next_command(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"text": commands("echo one >> log", "echo two >> log", "echo three >> log")}
    ]
    first = app_with(tmp_path, *lines)
    watch = Watch()

    def listen(chunk: Any) -> None:
        watch(chunk)
        if chunk.type == "tool_response" and watch.types().count("tool_response") == 2:
            first.runs._live[chunk.run].pause()  # at once: what runs.pause does comes a turn later

    request = RunRequest("Run.", agent="runner", approvals="all")
    begun = await first.runs.run(request, listen)
    assert begun.status == "paused"
    await first.aclose()
    second = app_with(tmp_path, *lines)
    result = await second.runs.resume(begun.run_id, watch, "all")
    await second.aclose()
    assert result.status == "completed"
    assert (tmp_path / "project" / "log").read_text() == "one\ntwo\nthree\n"


# -- the request ---------------------------------------------------------------------------


def test_the_request_has_conversation_code_last_message_and_system() -> None:
    plan = Plan(name="p", goal="g", summary="A game.", steps=(Step(name="Test it", acceptance=("make",)),))
    brief = Brief(
        request="Run the\ntests.",
        plan=plan,
        step_id=plan.steps[0].step_id,
        edits=EditsMade(files=(FileStat(path="a.py", kind="create", added=3),), notes="I wrote it."),
        code="File: `a.py`:\n```py\nx = 1\n~~~\n```",
    )
    text = build_run_request(brief)
    assert text.startswith(
        "The conversation so far:\n```\nPlanner: A game.\nCoder: I wrote it.\nUser: Run the tests.\n```"
    )
    assert "Full Code:\n~~~~\nFile: `a.py`:\n```py\nx = 1\n~~~\n```\n~~~~" in text
    assert "User's last message: Run the tests.\n" in text
    assert "System Operating System: " in text
    assert "Step 1: Test it\nIt is done when this passes: make" in text
    assert "File: `a.py` (create, +3 -0)" in build_run_request(brief.model_copy(update={"code": ""}))


def test_the_prompt_demands_what_it_must() -> None:
    prompt = (find_prompts_folder() / "agents" / "runner.j2").read_text("utf-8")
    both = ("`cd` is forbidden", "The code I wrote", "operating system", "two repairs")
    for demand in (*both, "`shell__run`", '{"commands": ["'):
        assert demand in prompt
    assert find_agent("runner").stage == Stage(collect_commands, build_run_request, shows="changed")
