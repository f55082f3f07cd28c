"""Near-copies and honest texts for the similarity guard, and their scores: `python -m tests.guardrails.similarity`."""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import random
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from daiku.guard.rules.guardrails.fingerprints import WARN, Fingerprints, fingerprints, similarity
from daiku.texts.text import sentences

REFERENCES = (
    "textwrap:TextWrapper", "difflib:SequenceMatcher.find_longest_match", "string:Formatter", "shlex:shlex",
    "csv:Sniffer", "configparser:RawConfigParser._read", "heapq:merge", "statistics:NormalDist",
    "calendar:TextCalendar", "fractions:Fraction.limit_denominator", "ipaddress:_BaseV6", "zipfile:ZipFile._RealGetContents",
)  # fmt: skip
"""What is copied: pieces of Python's own library, read where the test runs."""
HONEST = (
    "argparse", "ast", "asyncio.queues", "asyncio.streams", "bdb", "cmd", "codeop", "collections", "concurrent.futures.thread",
    "contextlib", "copy", "dataclasses", "datetime", "email.message", "enum", "filecmp", "fileinput", "ftplib", "functools",
    "getopt", "glob", "graphlib", "gzip", "hmac", "html.parser", "http.client", "http.cookies", "imaplib", "inspect",
    "json.decoder", "json.encoder", "linecache", "locale", "logging", "logging.handlers", "mailbox", "mimetypes",
    "numbers", "optparse", "pathlib", "pickle", "pprint", "queue", "random", "sched", "selectors", "shutil", "smtplib",
    "socketserver", "tarfile", "tempfile", "threading", "tokenize", "traceback", "types", "unittest.case",
    "urllib.parse", "urllib.request", "uuid", "warnings", "weakref", "xml.dom.minidom",
)  # fmt: skip
"""Modules whose functions are nobody's copy of the references."""
ENGLISH = (
    (
        "The night ferry leaves the harbour a little after ten, when the last lorries have been chained to the lower deck. "
        "Most travellers sleep in their seats, but a few walk around the ship until the lights of the coast are gone. The "
        "kitchen closes at midnight. After that the only sound is the engine, which makes every cup on every table tremble. "
        "In the morning the islands rise out of the fog one by one, and the children count them aloud."
    ),
    (
        "A cache is a promise about time. Whoever reads from it accepts that the answer may be old, and whoever writes to it "
        "must know how old it may become. Trouble begins where nobody has said so. A value that is kept for a minute is a "
        "value that is wrong for up to a minute, and a program that cannot live with that should ask the source itself "
        "instead of adding a second cache in front of the first."
    ),
    (
        "Grandmother kept her recipes in a biscuit tin, written on the backs of envelopes. The soup of leeks and potatoes was "
        "on the oldest of them. She never measured the cream, and when we asked how much was needed she held up the jug and "
        "let us look. After she died we cooked it every winter, each of us with a different amount, and each of us was sure "
        "that ours was the right one."
    ),
    (
        "The council decided to plant two hundred trees along the canal, although the gardeners had warned that the soil there "
        "was poor. In the first summer a third of them withered. Volunteers carried water in cans from the lock, every "
        "evening for six weeks, and wrote the numbers of the trees on a list so that none was forgotten. By the autumn of the "
        "next year the path was in the shade for the first time in its history."
    ),
    (
        "Reviewers are asked to read the summary first and the code second. If the summary cannot be understood, the review "
        "ends there and the author is asked to write another one. Remarks about style belong to the tool, not to people. A "
        "remark that begins with a question is answered with words; one that begins with an example is answered with a test. "
        "Nobody approves a change that they would not be able to repair at night."
    ),
)
JAPANESE = (
    (
        "夜のフェリーは十時を少し過ぎたころに港を出る。最後のトラックが下の甲板に鎖でつながれると、乗客の多くは座席で眠り始める。"
        "しかし何人かは海岸の明かりが見えなくなるまで船の中を歩き回る。食堂は真夜中に閉まり、そのあと聞こえるのは機関の音だけである。"
        "朝になると霧の中から島が一つずつ現れ、子どもたちは声に出してその数を数える。"
    ),
    (
        "キャッシュとは時間についての約束である。読む側は答えが古いかもしれないことを受け入れ、書く側はどこまで古くなってよいかを知っていなければならない。"
        "それを誰も決めていないところから問題が始まる。一分間保存された値は、最長で一分間まちがっている値でもある。"
        "それに耐えられないプログラムは、二つ目のキャッシュを足すのではなく、元の場所に直接たずねるべきである。"
    ),
    (
        "祖母は料理の作り方を封筒の裏に書き、ビスケットの缶にしまっていた。ねぎとじゃがいものスープは、その中でもいちばん古い封筒に書かれていた。"
        "祖母がクリームの量を量ることは一度もなく、どれだけ入れるのかと聞くと、水差しを持ち上げて見せるだけだった。"
        "亡くなったあとも私たちは毎年の冬にそれを作り、それぞれ違う量を入れて、自分のものこそ正しいと信じていた。"
    ),
    (
        "町議会は運河に沿って二百本の木を植えることに決めたが、庭師たちはそこの土がやせていると前もって注意していた。"
        "最初の夏に三分の一が枯れた。住民たちは六週間のあいだ毎晩、水門からじょうろで水を運び、忘れる木がないように番号を紙に書きとめた。"
        "次の年の秋には、その道は歴史上はじめて日かげになった。"
    ),
    (
        "査読する人は、まず要約を読み、それからコードを読むように求められる。要約が理解できなければ査読はそこで終わり、書いた人は新しい要約を頼まれる。"
        "書き方についての指摘は道具の仕事であって、人の仕事ではない。質問で始まる指摘には言葉で答え、例で始まる指摘にはテストで答える。"
        "自分が夜中に直せないような変更を、だれも承認してはならない。"
    ),
)
_NAMES = {
    "フェリー": "客船",
    "トラック": "貨物車",
    "祖母": "母",
    "キャッシュ": "一時保存",
    "町議会": "市議会",
    "査読": "確認",
    "子ども": "生徒",
    "冬": "正月",
}
_POLITE = {
    "である。": "です。",
    "れる。": "れます。",
    "める。": "めます。",
    "した。": "しました。",
    "なった。": "なりました。",
}
_SYNONYMS = {
    "little": "bit", "travellers": "passengers", "trouble": "difficulty", "answer": "result", "oldest": "earliest",
    "winter": "december", "council": "board", "evening": "night", "remarks": "comments", "reviewers": "readers",
    "kept": "stored", "wrong": "outdated", "volunteers": "neighbours", "ship": "boat", "author": "writer",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """A text with the score of the reference that it is most like."""

    name: str
    score: float


def source_of(path: str) -> str:
    module, _, inner = path.partition(":")
    found: object = importlib.import_module(module)
    for part in inner.split(".") if inner else ():
        found = getattr(found, part)
    return inspect.cleandoc("\n" + inspect.getsource(found))  # pyright: ignore[reportArgumentType]  # classes and functions


def renamed(code: str) -> str:
    """The code with every name of its own renamed, and without its comments."""
    own = _own_names(code)
    kept: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            continue
        text = own.get(token.string, token.string) if token.type == tokenize.NAME else token.string
        kept.append((token.type, text))
    return tokenize.untokenize(kept)


def _own_names(code: str) -> dict[str, str]:
    names: dict[str, str] = {}
    for node in ast.walk(ast.parse(code)):
        name = ""
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            name = node.attr
        if name and name != "self" and not name.startswith("__"):
            names.setdefault(name, f"item_{len(names)}")
    return names


def reordered(code: str, seed: int) -> str:
    """The code with its methods, or the halves of its function, in another order, its texts changed."""
    chance, tree = random.Random(seed), ast.parse(code)  # cases, not secrets
    body = next((node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef)), None)
    if body is not None:
        chance.shuffle(body)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = f"other {len(node.value)}"
        if isinstance(node, ast.FunctionDef) and len(node.body) > 3:
            at = len(node.body) // 2
            node.body = [*node.body[at:], *node.body[:at]]
    return ast.unparse(tree)


def near_copies() -> Iterator[tuple[str, str]]:
    """Fifty texts that are copies with changes."""
    for at, path in enumerate(REFERENCES):
        code = source_of(path)
        yield f"renamed {path}", renamed(code)
        yield f"reordered and renamed {path}", reordered(renamed(code), at)
    for at, text in enumerate(ENGLISH):
        sentences_ = re.split(r"(?<=\.) ", text)
        random.Random(at).shuffle(sentences_)  # cases, not secrets
        yield f"English reordered {at}", " ".join(sentences_)
        yield (
            f"English in other words {at}",
            " ".join(_SYNONYMS.get(w.lower().strip(",."), w) for w in text.split()),
        )
        yield f"English without a sentence {at}", "As I see it: " + " ".join(sentences_[1:]) + " That is all."
    for at, text in enumerate(JAPANESE):
        sentences_ = re.findall(r"[^。]+。", text)
        random.Random(at).shuffle(sentences_)  # cases, not secrets
        yield f"Japanese reordered {at}", "".join(sentences_)
        changed = text
        for ours, theirs in (_NAMES | _POLITE).items():
            changed = changed.replace(ours, theirs)
        yield f"Japanese with other names and endings {at}", changed
    yield (
        "Japanese inside a longer text",
        "まえがきです。" * 3 + JAPANESE[0] + "ここから先は自分の文章である。",
    )


def honest() -> Iterator[tuple[str, str]]:
    """Two hundred texts that nobody copied."""
    functions = [found for name in HONEST for found in _functions(name)]
    chance = random.Random(7)  # cases, not secrets
    for name, code, _doc in chance.sample(functions, 110):
        yield name, code
    for name, _code, doc in chance.sample([found for found in functions if len(found[2]) > 300], 45):
        yield f"words of {name}", doc
    said = sorted(sentences("ja").values(), key=len)[-270:]
    for at in range(0, 270, 6):
        yield f"Japanese {at}", "".join(said[at : at + 6])


def _functions(module: str) -> Iterator[tuple[str, str, str]]:
    source = inspect.getsource(importlib.import_module(module))
    lines = source.split("\n")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            code = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            if len(code) > 400:
                yield f"{module}:{node.name}", code, ast.get_docstring(node) or ""


def references() -> dict[str, Fingerprints]:
    every = [
        *((path, source_of(path)) for path in REFERENCES),
        *((f"English {n}", t) for n, t in enumerate(ENGLISH)),
    ]
    every += [(f"Japanese {n}", t) for n, t in enumerate(JAPANESE)]
    return {name: fingerprints(text) for name, text in every}


def scored(texts: Iterator[tuple[str, str]], known: dict[str, Fingerprints]) -> list[Case]:
    """Each text with its best score, the highest first."""
    found: list[Case] = []
    for name, text in texts:
        own = fingerprints(text)
        found.append(Case(name, max(similarity(own, other) for other in known.values())))
    return sorted(found, key=lambda case: -case.score)


def shares() -> tuple[list[Case], list[Case]]:
    """The near-copies and the honest texts with their scores."""
    known = references()
    return scored(near_copies(), known), scored(honest(), known)


def report() -> str:
    """The scores as text."""
    copies, others = shares()
    caught = sum(case.score >= WARN for case in copies)
    wrong = sum(case.score >= WARN for case in others)
    lines = [f"{case.score:.2f} {case.name}" for case in copies]
    lines += ["…", *(f"{case.score:.2f} {case.name}" for case in others[:12])]
    lines.append(f"near-copies caught: {caught} of {len(copies)} ({caught / len(copies):.0%})")
    lines.append(f"honest texts warned of: {wrong} of {len(others)} ({wrong / len(others):.1%})")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(f"{report()}\n")
