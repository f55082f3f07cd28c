"""What the guard lets through is run for real: nothing that only reads may leave a trace."""

from __future__ import annotations

import itertools
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daiku.domain.config import ApprovalSettings
from daiku.domain.tools import ToolCall, ToolSpec
from daiku.guard.rules.commands.judge import CommandRules, judge, strip_cd
from daiku.guard.rules.guard import verdict
from daiku.guard.rules.policy import Policy, describe_grant
from daiku.guard.rules.protected.addresses import explain_local, parse_url
from daiku.guard.rules.protected.names import explain_protection, holds_secrets
from daiku.guard.rules.referenced_paths import lexical_path
from daiku.texts.rules.visible import show_hidden
from tests.cases import examples, for_each

HARMLESS = ["git status", "git log", "git diff", "git show", "ls", "echo", "cat", "printf x", "true", "head", "sort", "uniq", "find .", "grep x",
            "rg x", "sed -n", "date", "jq .", "tree", "wc", "diff", "cut", "tr", "du", "stat", "which", "basename", "git branch", "git grep x", "test"]  # fmt: skip
PIECES = [
    "touch CANARY", "$(touch CANARY)", "`touch CANARY`", "<(touch CANARY)", ">(touch CANARY)", "> CANARY", "2>CANARY", "&>CANARY", ">|CANARY",
    "-o CANARY", "-oCANARY", "--output=CANARY", "--outp=CANARY", "--output CANARY", "-exec touch CANARY ;", "-exec touch CANARY \\;", "-fprint CANARY",
    "'w CANARY'", "'1w CANARY'", "'1e touch CANARY'", "'1p;1w CANARY'", "1,2p", "a[$(touch CANARY)]", "'a[$(touch CANARY)]'", "-v", "$'\\x74ouch' CANARY",
    "=(touch CANARY)", "<<EOF\n$(touch CANARY)\nEOF\n", "<<'EOF'\n$(touch CANARY)\nEOF\n", "X=1", "PATH=.", "--pre=./evil", "--pre ./evil",
    "--compress-program=./evil", "-S1", "--ext-diff", "--textconv", "-O./evil", "--hostname-bin=./evil", "a", "a.txt", "*", "-*", "./*", "{a,b}", "{-o,CANARY}",
    "[[ -v a[$(touch CANARY)] ]]", "$((a[$(touch CANARY)]))", "(touch CANARY)", "{ touch CANARY; }", "f() { touch CANARY; }", "f", "-", "--", "-x", "-X",
    "./evil", "evil", "env ./evil", "xargs ./evil", "eval", "exec", "command", "builtin", "source evil", ". ./evil", "sh evil", "coproc ./evil", "time ./evil",
    "!", "'", '"', "\\", "#", "$", "~", "%", "if true; then touch CANARY; fi", "case a in a) touch CANARY;; esac", "alias ls=./evil", "trap ./evil EXIT",
    "-c core.pager=./evil", "--paginate", "-p", "x", "CANARY", "-d", "-D", "--delete", "-m", "new", "-s 1", "-C", "-f", "-z", "--no-index",
]  # fmt: skip
JOINTS = [
    " ",
    " ",
    " ",
    " ; ",
    " && ",
    " || ",
    " | ",
    " |& ",
    " & ",
    "\n",
    "\r",
    "\u00a0",
    "\t",
    "\\\n",
    "",
    ";",
]


@pytest.fixture(scope="module")
def yard() -> Any:
    """A small repository with a program that leaves a trace."""
    with tempfile.TemporaryDirectory(prefix="daiku-yard-") as name:
        folder = Path(name).resolve()
        (folder / "evil").write_text("#!/bin/sh\ntouch CANARY\n")
        (folder / "evil").chmod(0o755)
        (folder / "a.txt").write_text("x\ny\n")
        (folder / "-oCANARY").write_text("x\n")
        for command in (["init", "-q"], ["add", "--", "a.txt"]):
            subprocess.run(["git", *command], cwd=folder, check=True)
        subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@x", "commit", "-qm", "x"],
            cwd=folder,
            check=True,
            capture_output=True,
        )
        yield folder


def run(command: str, folder: Path) -> None:
    subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", command],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "GIT_PAGER": "cat", "PAGER": "cat"},
    )


def traces(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if ".git" not in p.parts}


@pytest.mark.slow
@given(st.data())
@settings(max_examples=examples(250), deadline=None)
def test_what_only_reads_leaves_no_trace_in_a_real_shell(yard: Path, data: st.DataObject) -> None:
    command = data.draw(st.sampled_from(HARMLESS))
    for _ in range(data.draw(st.integers(0, 4))):
        command += data.draw(st.sampled_from(JOINTS)) + data.draw(st.sampled_from(PIECES + HARMLESS))
    _check(command, yard)


@pytest.mark.slow
def test_no_piece_after_a_harmless_command_leaves_a_trace(yard: Path) -> None:
    for start, piece in itertools.product(HARMLESS, PIECES):
        _check(f"{start} {piece}", yard)


def _check(command: str, yard: Path) -> None:
    rules = CommandRules(
        resolve=lambda p: lexical_path(p, (str(yard),)), roots=(str(yard),), home=str(yard / "home")
    )
    if judge(command, rules).answer != "allow":
        return
    before = traces(yard)
    run(command, yard)
    assert traces(yard) == before, f"{command!r} was let through"


@given(st.text(st.characters(codec="utf-8"), max_size=200))
@settings(max_examples=examples(300))
def test_any_text_gets_a_judgement_and_never_an_exception(text: str) -> None:
    rules = CommandRules(
        resolve=lambda p: p, roots=("/w",), home="/home/u", deny=("rm",), allow=("npm test",)
    )
    given_ = judge(text, rules)
    assert given_.answer in ("allow", "ask", "deny")
    assert given_.why
    strip_cd(text)
    assert "\x1b" not in show_hidden(text)


@given(st.lists(st.sampled_from([*PIECES, *HARMLESS]), max_size=6), st.sampled_from(["rm", "curl"]))
@settings(max_examples=examples(200))
def test_a_denied_program_as_its_own_command_is_denied_whatever_stands_before(
    pieces: list[str], denied: str
) -> None:
    balanced = [
        p for p in pieces if p not in ("'", '"', "\\", "#", "$") and "EOF" not in p and "case" not in p
    ]
    rules = CommandRules(resolve=lambda p: p, roots=("/w",), home="/home/u", deny=(denied,))
    command = "".join(f"{p} ; " for p in balanced) + f"{denied} x"
    assert judge(command, rules).answer == "deny"


NAMES = st.text(st.sampled_from("ab.-_ ~%\\:\u200b\u00adA"), min_size=0, max_size=4)


@given(
    st.sampled_from(
        [
            ".git/config",
            ".git/hooks/pre-commit",
            ".vscode/settings.json",
            ".daiku/config.toml",
            "AGENTS.md",
            ".github/workflows/ci.yml",
        ]
    ),
    st.lists(
        st.sampled_from(
            [
                "upper",
                "title",
                "dots",
                "space",
                "zero",
                "slash",
                "here",
                "up",
                "backslash",
                "percent",
                "stream",
                "full",
            ]
        ),
        max_size=4,
    ),
)
@settings(max_examples=examples(300))
def test_a_protected_file_is_known_in_every_spelling(path: str, tricks: list[str]) -> None:
    spelled = path
    for trick in tricks:
        match trick:
            case "upper":
                spelled = spelled.upper()
            case "title":
                spelled = spelled.title()
            case "dots":
                spelled = spelled.replace("/", "./", 1) if "/" in spelled else spelled + "."
            case "space":
                spelled = spelled.replace("/", " /", 1) if "/" in spelled else spelled + " "
            case "zero":
                spelled = spelled[:2] + "\u200b" + spelled[2:]
            case "slash":
                spelled = spelled.replace("/", "//")
            case "here":
                spelled = "./" + spelled
            case "up":
                spelled = "x/../" + spelled
            case "backslash":
                spelled = spelled.replace("/", "\\")
            case "percent":
                spelled = spelled.replace("g", "%67", 1)
            case "stream":
                spelled += "::$DATA" if ":" not in spelled else ""
            case "full":
                spelled = "/w/" + spelled
            case _:
                raise AssertionError(trick)
    assert explain_protection(spelled), spelled


@given(st.text(max_size=80))
def test_any_text_is_a_path_that_can_be_looked_at(path: str) -> None:
    explain_protection(path)
    holds_secrets(path)


EFFECTS = st.sampled_from(["none", "read", "edit", "command", "network", "mcp", "plan", "ask"])
ANSWERS = st.sampled_from(["allow", "ask", "deny"])
STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}


@given(
    effect=EFFECTS,
    args=st.dictionaries(
        st.sampled_from(["path", "command", "url", "to", "stdin", "network", "sandbox"]),
        st.sampled_from(
            ["ls", ".git/config", "a", "npm test", "https://x.org", True, False, None, 3, "rm -rf /", ".env"]
        ),
        max_size=3,
    ),
    answers=st.tuples(ANSWERS, ANSWERS, ANSWERS, ANSWERS, ANSWERS),
    approvals=st.sampled_from(["ask", "edits", "sandbox", "all", "none"]),
    sandbox=st.sampled_from(["on", "off", "missing", "refused"]),
    yes=st.sampled_from(["allow", "reject", None]),
)
@settings(max_examples=examples(400))
def test_distrust_never_loosens_a_verdict(
    effect: Any, args: Any, answers: Any, approvals: Any, sandbox: Any, yes: Any
) -> None:
    read, edit, command, network, mcp = answers
    chosen = ApprovalSettings(read=read, edit=edit, command=command, network=network, mcp=mcp)
    spec = ToolSpec(name="x/y", description="", parameters={}, effect=effect)
    call = ToolCall(tool="x/y", args=args)

    def strictness(**changes: Any) -> int:
        policy = Policy(
            approvals=chosen,
            approval_mode=approvals,
            sandbox=sandbox,
            granted=lambda _: yes,
            roots=("/w",),
            home="/home/u",
        )
        given_ = verdict(
            call, spec, Policy(**{**{f: getattr(policy, f) for f in policy.__slots__}, **changes})
        )
        plain_edit = given_.answer == "ask" and given_.kind == "edit"  # the change itself is shown
        assert given_.why or plain_edit
        return STRICTNESS[given_.answer]

    plain = strictness()
    assert strictness(tainted=True) >= plain
    assert strictness(trusted=False) >= plain or approvals in ("all", "edits", "sandbox")
    assert strictness(headless=True) >= plain
    assert strictness(mode="ask") >= plain
    assert strictness(mode="plan") >= plain


URL_PIECES = ["http", "https", "file", ":", "//", "/", "@", "user", "pw", "[", "]", "::1", "%25eth0", "x.org", "127.0.0.1", "0x7f.1", "#", "?", "%00",
              "exa\u2105mple.com", "\uff0e", ":99999", ":-1", ":a", "\\", " ", "\t", "[redacted]", "\ud800", "\u0130", "xn--", "."]  # fmt: skip
NAMES_OF_ARGS = ["url", "command", "path", "to", "patch", "diff", "edits", "stdin", "network", "sandbox", "query", "content", "message", "uri", "file_path"]  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=40),
    st.lists(st.sampled_from(URL_PIECES), max_size=8).map("".join),
    st.lists(st.sampled_from([*PIECES, *HARMLESS, "cd a &&", "rm -rf", "'", "awk"]), max_size=4).map(
        " ".join
    ),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(NAMES_OF_ARGS), TEXTS), inner, max_size=3),
    ),
    max_leaves=6,
)


@given(
    effect=EFFECTS,
    args=st.dictionaries(st.one_of(st.sampled_from(NAMES_OF_ARGS), TEXTS), VALUES, max_size=4),
    approvals=st.sampled_from(["ask", "edits", "sandbox", "all", "none"]),
    deny=st.sampled_from([(), ("rm",), ("git push", "'")]),
    tainted=st.booleans(),
    sandbox=st.sampled_from(["on", "off", "missing", "refused"]),
)
@settings(max_examples=examples(500))
def test_any_arguments_at_all_get_a_verdict_and_never_an_exception(
    effect: Any, args: Any, approvals: Any, deny: Any, tainted: bool, sandbox: Any
) -> None:
    policy = Policy(
        approvals=ApprovalSettings(commands_deny=deny),
        approval_mode=approvals,
        tainted=tainted,
        sandbox=sandbox,
        roots=("/w",),
        home="/home/u",
    )
    spec = ToolSpec(name="x/y", description="", parameters={}, effect=effect)
    given_ = verdict(ToolCall.model_construct(id="c", tool="x/y", args=args), spec, policy)
    assert given_.answer in ("allow", "ask", "deny")
    plain_edit = given_.answer == "ask" and given_.kind == "edit"  # the change itself is shown
    assert given_.why or plain_edit
    describe_grant(given_.key)


@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(URL_PIECES), max_size=9).map("".join)))
@settings(max_examples=examples(500))
def test_any_text_is_read_as_a_web_address_or_refused_in_words(text: str) -> None:
    place = parse_url(text)
    assert place if isinstance(place, str) else place.host
    if not isinstance(place, str):
        explain_local(place)
        assert "@" not in place.url.split("/", 3)[2]


@for_each(
    "url", ["https://user:[redacted]@host/", "http://[::1", "http://x]y/", "http://exa\u2105mple.com/", "http://127.0.0.1:80#@h", "http://x:y/"]
)  # fmt: skip
def test_an_address_that_cannot_be_read_is_no_end_of_a_run(url: str) -> None:
    spec = ToolSpec(name="web/fetch", description="", parameters={}, effect="network")
    for approvals in ("ask", "edits", "sandbox", "all", "none"):
        given_ = verdict(ToolCall(tool="web/fetch", args={"url": url}), spec, Policy(approval_mode=approvals))
        assert given_.why
