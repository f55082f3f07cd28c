"""Nothing is decided by reading a sentence back: what came of something is a value (tests/sentences.py finds the rest)."""

from __future__ import annotations

import ast

from tests.cases import for_each
from tests.sentences import compared_sentences
from tests.test_architecture import modules

# Who wrote what is read -> the modules of the server that read it -> what they look for.
WRITTEN_BY_OTHERS: dict[str, dict[str, tuple[str, ...]]] = {
    "a model, in its reply: a form that it was asked for, or what it claims and promises": {
        "team.coding.coder": ("_NO_CHANGE",),
        "edits.rules.udiff": (
            "_FILE",
            "_MOVE",
            "_BEGINS",
            "'*** Begin Patch'",
            "'*** End Patch'",
            "_END_OF_FILE",
        ),
        "edits.rules.blocks": ("'File:'",),
        "guard.rules.referenced_paths": ("_HEADERS",),
        "team.rules.plans.reply": ("_MACHINE",),
        "team.rules.plans.proposed": ("word",),
        "team.rules.plans.transitions": ("_NUMBER",),
        "team.rules.proof.placeholders": ("_MARKS",),
        "run.rules.reminders": ("_PROMISE", "_PROMISE_JA", "_LATER"),
        "texts.rules.omissions": ("_HINT", "_WHOLE", "_KEEPS", "_JAPANESE", "_JAPANESE_SIGNS"),
        "models.rules.textcalls.marks": ("_REACT",),
        "tools.face": ("_PATCHED_FILE",),
    },
    "a person or a model, in the text of a plan; its Markdown is a file that people write too": {
        "team.rules.plans.markdown": ("_ITEM", "_AFTER", "_NOW", "'Summary:'"),
        "team.rules.plans.reply": (
            "NUMBER",
            "_CHECK",
            "_AFTER",
            "_NO_STEP",
            r"'^(?:steps?|ステップ)\\s*#?(?=\\d)'",
        ),
        "team.rules.proof.checks": ("_TIME", "_NOTHING", "_ENDLESS"),
    },
    "a person, who corrects; whoever wrote a lesson, in its text": {
        "playbook.rules.commands": ("_WARNED_BEFORE", "_WARNED_AFTER"),
        "playbook.rules.reflect": ("_OPENS", "_RULE", "_STEERS", "_REASONS", "_LEADING"),
        "playbook.rules.similar": ("_NEGATIONS", "FILLERS"),
        "playbook.rules.ranking": ("_NOTHING", "_LITTLE"),
    },
    "the writer of a document, in its headings and the ends of its sentences": {
        "team.drafting.part_request": ("_POLITE", "_PLAIN"),
        "team.rules.drafting.headings": ("_NUMBERED",),
    },
    "a person, in a request: whether it instructs to change something": {
        "run.rules.calls.change_requests": (
            *("_READS", "_INSTRUCTS", "_SOCIAL", "_LEAVES", "_POLITE_QUESTION"),
            *("_JAPANESE_QUESTION", "_JAPANESE_REQUEST", "_JAPANESE_ANSWERS"),
        ),
        "run.rules.verdict": ("_RUN_REQUEST",),
    },
    "git, in a diff or on stderr": {
        "edits.rules.changes.choose": ("'rename from '",),
        "edits.rules.udiff": (
            "'^(?:GIT binary patch|Binary files .* differ)'",
            "'(rename from|rename to|copy to|new file|deleted",
            "'(?:index|similarity|dissimilarity|old mode|new ",
            "'copy to'",
            "'new file'",
            "'deleted file'",
            "'rename to'",
            "_NO_NEWLINE",
            "('@@', 'diff --git ', 'Index: ')",
        ),
        "playbook.rules.outcome": ("mark",),
        "tools.git.repository": ("pattern",),
        "tools.git.remote": ("_CONCURRENT_PUSH", "_SERVER_FAILURE"),
    },
    "another program: test runners, npm, SQL, code that a command carries": {
        "tools.rules.code.project": ("_NO_TESTS",),
        "guard.rules.commands.dangers": ("_DROPS",),
        "guard.rules.commands.inlinecode": ("_STARTS",),
        "playbook.rules.replaced": ("_WRONG_CALL", "_NO_FILE"),
        "playbook.rules.commands": ("_FOUND_SOMETHING",),
        "team.rules.proof.check_strength": ("_NO_TESTS",),
        "team.rules.proof.failures": ("_NO_SUCH",),
        "tools.files.engines": ("'error: '",),
        "texts.rules.decisive": ("_STRONG", "mark"),
        "tools.shell.printed": ("sign",),
    },
    "a model service that has no code for it": {
        "models.ollama.provider": ("'does not support tools'",),
        "models.cures": ("_LISTED", "_PATH", "_NOT_FOUND"),
        "models.transport.failures": ("_NO_CREDIT", "_BAD_KEY"),
        "models.transport.vendor_errors": (
            "_OVERFLOW",
            "_PLACEHOLDER_MESSAGE",
            "_RETRY_IN",
            "'request too large'",
        ),
    },
    "a person, in a comment on a request: words that thank or agree and ask for nothing": {
        "items.rules.assent": ("_PHRASES",)
    },
    "a forge that has no field for it": {"items.gitlab.repository": ("_CHANGES",)},
    "a library whose exception has no field for it": {
        "models.rules.replies.parse": ("'Unterminated string'",),
        "tools.files.syntax": (r"'\\(at line (\\d+)'",),
        "tools.mcp.connection": ("'Session terminated'",),
        "tools.functions": ("'Error serializing to JSON: '",),
    },
    "click, in its own help, which is translated": {
        "fronts.cli.main": ("'Show this message and exit.'", "'Show the version and exit.'")
    },
    "a web page": {
        "tools.web.client": ("'no results'", "'bots use DuckDuckGo'"),
        "tools.web.extract": ("('<!doctype html', '<html')",),
    },
    "nobody: names of files and commands, marks of keys, kinds of letters, words of SQL": {
        "tools.rules.code.repomap": ("COMMON_NAMES",),
        "guard.rules.redact": ("_BEGINS", "'PRIVATE KEY'"),
        "texts.rules.words": ("_PIECE",),
        "memory.rules.hashed": ("_COMMON_WORDS",),
        "models.tokens": ("_PIECES", "_JSON_PIECES", "_KANA", "_IDEOGRAPHS"),
        "store.postgres": ("_TOKENS",),
        "texts.text": ("_OF_JAPAN",),
    },
}


def test_no_sentence_of_ours_decides_anything() -> None:
    allowed = {
        (f"daiku.{module}", needle)
        for places in WRITTEN_BY_OTHERS.values()
        for module, needles in places.items()
        for needle in needles
    }
    sites = compared_sentences({name: module.tree for name, module in modules().items()})
    ours = [f"{s.module}:{s.line}: {s.needle}" for s in sites if (s.module, s.needle) not in allowed]
    assert not ours, "decided by a sentence:\n" + "\n".join(ours)
    gone = sorted(allowed - {(site.module, site.needle) for site in sites})
    assert not gone, f"nothing reads this any more, take it off the list: {gone}"


SAID = """
NOBODY = "Nobody is there to approve this."
DENIED = text("guard.denied")
YES, NO = OFFERED = ("Go on", "Stop here")
CODES = {"limit", "failed"}
def why(path: str) -> str:
    return f"{path} is outside the workspace" if path else ""
def which(path: str) -> tuple[str, str]:
    return "npm", "no lock file"
"""
DECIDES = (
    'result.text == "No such tool."',
    '"nobody is there" in result.text',
    '"nobody is there" not in result.text.lower()',
    'result.text.startswith("Not side by side")',
    'result.text.endswith(("to approve this", "nobody is there"))',
    'result.text.removeprefix("Note: ")',
    'result.text.partition("The answer:\\n")[2]',
    'result.text.find("was not run") >= 0',
    're.match(r"Nobody\\s+is", result.text)',
    're.compile("nobody is there").search(result.text)',
    're.search(rf"{name} was not run", result.text)',
    "result.text in (NOBODY, '')",
    "NOBODY in result.text",
    "said.NOBODY in result.text",
    "answer in OFFERED",
    "answer == YES",
    "answer == (NO if name else YES)",
    "answer == f'{name} is there'",
    "answer == 'Nobody is ' + name",
    "answer == '承認する人がいません'",
    "result.text != why(name)",
    "which(name)[1].endswith('file')",
    'result.text == text("guard.nobody")',
    "result.text in renderings(NOBODY)",
    "result.text.startswith(DENIED)",
    "{NOBODY: 1, 'nobody is there': 2} == answer",
    'result.message.startswith("denied")',
    '"refused" in event.result',
)
DECIDES_NOT = (
    'result.outcome == "unattended"',
    '"exitCode" in result.data',
    "name in CODES",
    "answer.choice == OFFERED.index(NO)",
    'result.text == ""',
    'result.text.endswith((".", "?"))',
    'result.text.split("\\n\\n")',
    'print("nobody is there", NOBODY)',
    're.match(r"[a-z]+", name)',
)
HEAD = "import re\nfrom daiku import said\nfrom daiku.said import CODES, DENIED, NO, NOBODY, OFFERED, YES, which, why\n"


def sites(line: str) -> list[str]:
    source = f"{HEAD}def decide(result, event, answer, name):\n    return {line}\n"
    trees = {"daiku.said": ast.parse(SAID), "daiku.deciding": ast.parse(source)}
    return [site.needle for site in compared_sentences(trees) if site.module == "daiku.deciding"]


@for_each("line", DECIDES)
def test_a_comparison_with_a_sentence_is_found(line: str) -> None:
    assert sites(line)


@for_each("line", DECIDES_NOT)
def test_a_comparison_with_a_value_is_none(line: str) -> None:
    assert not sites(line)


def test_it_is_found_by_way_of_a_name_and_in_a_match() -> None:
    assert sites("[found for found in (NOBODY, name) if found in answer]")
    lines = (
        "text = why(answer)\n    match answer:\n        case {'text': 'Nobody is there.'}: pass\n    return"
    )
    assert len(sites(f"0\n    {lines} text == name")) == 2
