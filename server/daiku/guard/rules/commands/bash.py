"""A command line as bash would read it: its simple commands, what it writes, and what we do not understand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from daiku.dataclass import dataclass, replace
from daiku.texts.text import Text, text


@dataclass(frozen=True, slots=True)
class Word:
    """One word after quotes and escapes.

    `plain`: what bash passes on is exactly `text`; else a part of it is computed and stands in `text` as written.
    `glob`: bash replaces it by file names.
    """

    text: str
    plain: bool = True
    glob: bool = False


_UNSAFE_IN_WORD = re.compile(r"(?<!\\)(?:\\\\)*[$`(){}<>|&;\"'\s]")
_GLOB = re.compile(r"(?<!\\)(?:\\\\)*[*?\[]")
_BACKSLASH = re.compile(r"\\(\n|.)", re.DOTALL)
_IN_QUOTES = re.compile(r"\\([$`\"\\\n])")
_COMPUTED = re.compile(r"(?<!\\)(?:\\\\)*[$`]")


def read_word(node: Node, source: bytes) -> Word:
    """Return the shell word for `node` of the syntax tree of `source`."""
    raw = source[node.start_byte : node.end_byte].decode("utf-8", "replace")
    match node.type:
        case "word" | "number":
            return _word(raw)
        case "raw_string":
            return Word(raw[1:-1])
        case "string":
            plain = not _COMPUTED.search(raw[1:-1])
            return Word(_IN_QUOTES.sub(_after_backslash, raw[1:-1]), plain)
        case "ansi_c_string":
            return _ansi(raw[2:-1])
        case "concatenation":
            parts = [read_word(child, source) for child in node.children]
            joined = "".join(p.text for p in parts)
            # Bytes between the parts would be text that nothing accounts for.
            whole = sum(c.end_byte - c.start_byte for c in node.children) == node.end_byte - node.start_byte
            return Word(joined, whole and all(p.plain for p in parts), any(p.glob for p in parts))
        case _:
            return Word(raw, plain=False)


def _after_backslash(found: re.Match[str]) -> str:
    return "" if found[1] == "\n" else found[1]


def _word(raw: str) -> Word:
    plain = not _UNSAFE_IN_WORD.search(raw) and not raw.endswith("\\") and raw.isprintable()
    return Word(_BACKSLASH.sub(_after_backslash, raw), plain, bool(_GLOB.search(raw)))


_ANSI = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL)
_ANSI_NAMED = dict(zip("ntrabeEfv", "\n\t\r\a\b\x1b\x1b\f\v", strict=True))


def _ansi(raw: str) -> Word:
    plain = True

    def one(found: re.Match[str]) -> str:
        nonlocal plain
        code = found[1]
        if code[0] in "xuU" and len(code) > 1:
            number = int(code[1:], 16)
        elif code[0] in "01234567":
            number = int(code, 8)
        elif code[0] == "c" and len(code) > 1:
            number = ord(code[1]) & 0x1F
        else:
            return _ANSI_NAMED.get(code, code)
        if not 0 < number < 0x110000:
            plain = False
            return ""
        return chr(number)

    text = _ANSI.sub(one, raw)
    return Word(text, plain)


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One simple command: assignments before it, and its words, the program first."""

    words: tuple[Word, ...]
    assigned: tuple[tuple[str, Word], ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.words)


@dataclass(frozen=True, slots=True)
class ParsedCommands:
    """All simple commands of a line, those inside substitutions, loops and functions included.

    `doubts` says what was not understood; without any, `commands` is all that runs. `writes` are the
    files that redirections write, `fed` the texts that are piped in as here-documents.
    `bomb`: a function that starts itself over and over. `broken`: it is no bash that we can read, and
    `commands` are a guess. `torn`: a word goes on behind a line end, as few people read it.
    """

    commands: tuple[SimpleCommand, ...]
    doubts: tuple[Text, ...] = ()
    writes: tuple[Word, ...] = ()
    fed: tuple[str, ...] = ()
    bomb: bool = False
    broken: bool = False
    torn: bool = False


UNDERSTOOD = frozenset(
    {
        "program", "list", "pipeline", "command", "command_name", "word", "number", "string", "string_content", "raw_string",
        "ansi_c_string", "concatenation", "redirected_statement", "file_redirect", "file_descriptor", "negated_command",
        "subshell", "variable_assignment", "variable_name",
        ";", "&&", "||", "|", "|&", "!", "(", ")", '"', "=", ">", ">>", ">|", ">&", "&>", "&>>",
    }
)  # fmt: skip
SAYS = {
    "ERROR": text("commands.unreadable"),
    "command_substitution": text("commands.runs_inside_word"),
    "process_substitution": text("commands.runs_as_file"),
    "simple_expansion": text("commands.uses_variable"),
    "expansion": text("commands.uses_variable"),
    "arithmetic_expansion": text("commands.calculates"),
    "heredoc_redirect": text("commands.feeds_text"),
    "herestring_redirect": text("commands.feeds_text"),
    "function_definition": text("commands.defines_function"),
    "test_command": text("commands.test_runs"),
    "declaration_command": text("commands.changes_variables"),
    "unset_command": text("commands.changes_variables"),
    "variable_assignments": text("commands.changes_variables"),
    "comment": text("commands.has_comment"),
    "&": text("commands.background"),
    "<": text("commands.reads_as_input"),
    "compound_statement": text("commands.groups"),
    "for_statement": text("commands.loop"),
    "while_statement": text("commands.loop"),
    "if_statement": text("commands.branches"),
    "case_statement": text("commands.branches"),
}
_OPAQUE = frozenset({"string", "raw_string", "ansi_c_string", "heredoc_body", "heredoc_content", "comment"})
_WORDS = frozenset(
    {
        "word", "number", "string", "raw_string", "ansi_c_string", "concatenation", "simple_expansion", "expansion",
        "command_substitution", "process_substitution", "arithmetic_expansion", "translated_string", "brace_expression",
        "extglob_pattern", "regex",
    }
)  # fmt: skip
_COMMANDS = frozenset({"command", "declaration_command", "unset_command", "test_command"})


# To bash a character beyond ASCII is a letter of a word like any other. The grammar's scanner asks C's
# isalpha() about them, which is undefined and ends the process: it is shown `x` for each byte instead.
_AS_LETTERS = bytes(byte if byte < 0x80 else ord("x") for byte in range(256))


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_bash.language()))


def tree_of(command: str) -> Node:
    """Return the syntax tree of `command`; places in it are byte offsets. Never raises."""
    return _parser().parse(command.encode("utf-8", "replace").translate(_AS_LETTERS)).root_node


_TORN = re.compile(r"(?<=[^\s\\])(?:\\\\)*\\\n(?=\S)")
_LINE_END = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")


def read_script(command: str) -> ParsedCommands:
    """Read `command`; never raises. Where a word goes on in the next line, also as bash joins it."""
    script = _read(command)
    if not _TORN.search(command):
        return script
    joined = _read(_LINE_END.sub(r"\1", command))
    return replace(
        script,
        commands=(*script.commands, *joined.commands),
        doubts=(*script.doubts, text("commands.torn")),
        writes=(*script.writes, *joined.writes),
        torn=True,
    )


def _read(command: str) -> ParsedCommands:
    source = command.encode("utf-8", "replace")
    root = tree_of(command)
    reader = _Reader(source)
    reader.walk(root)
    if root.has_error:
        reader.doubt("ERROR")
        reader.commands.extend(_split_crudely(command))
    if reader.gaps():
        reader.doubts[text("commands.not_understood")] = None
    return ParsedCommands(
        commands=tuple(reader.commands),
        doubts=tuple(reader.doubts),
        writes=tuple(reader.writes),
        fed=tuple(reader.fed),
        bomb=reader.bomb,
        broken=root.has_error,
    )


class _Reader:
    """Collects what one walk over a syntax tree finds."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.commands: list[SimpleCommand] = []
        self.doubts: dict[Text, None] = {}
        self.writes: list[Word] = []
        self.fed: list[str] = []
        self.bomb = False
        self.leaves: list[tuple[int, int]] = []

    def _word(self, node: Node) -> Word:
        return read_word(node, self.source)

    def text(self, node: Node) -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def doubt(self, kind: str) -> None:
        self.doubts[SAYS.get(kind, text("commands.beyond_plain"))] = None

    def walk(self, root: Node) -> None:
        pending = [root]
        while pending:
            node = pending.pop()
            if node.type not in UNDERSTOOD or node.is_missing:
                self.doubt("ERROR" if node.is_missing else node.type)
            if node.type in _COMMANDS:
                self._command(node)
            elif node.type == "file_redirect":
                self._redirect(node)
            elif node.type in ("heredoc_redirect", "herestring_redirect"):
                self.fed.append(self._fed(node))
            elif node.type == "function_definition":
                self._function(node)
            elif node.type == "variable_assignment" and (parent := node.parent) and parent.type != "command":
                self._loose_assignment(node)
            if node.child_count == 0 or node.type in _OPAQUE:
                self.leaves.append((node.start_byte, node.end_byte))
            pending.extend(reversed(node.children))

    def gaps(self) -> bool:
        """Report whether text other than blanks stands between two tokens: no token accounts for it."""
        at = 0
        for start, end in sorted(self.leaves):
            if self.source[at:start].strip(b" \t"):
                return True
            at = max(at, end)
        return bool(self.source[at:].strip(b" \t\n"))

    def _command(self, node: Node) -> None:
        words: list[Word] = []
        assigned: list[tuple[str, Word]] = []
        for child in node.children:
            if child.type == "variable_assignment":
                assigned.append(self._assignment(child))
            elif child.type == "command_name":
                words.extend(self._word(part) for part in child.children or [child])
            elif child.type in _WORDS:
                words.append(self._word(child))
            elif node.type != "command" and not child.is_named:
                words.append(Word(child.type))
            elif node.type == "test_command":
                words.append(Word(self.text(child), plain=False))
        for word in words:
            if not word.plain:
                self.doubts[text("commands.computed_part")] = None
        for name, value in assigned:
            if name not in HARMLESS_VARIABLES or not value.plain:
                self.doubts[text("commands.sets_for_program", name=name)] = None
        self.commands.append(SimpleCommand(tuple(words), tuple(assigned)))

    def _assignment(self, node: Node) -> tuple[str, Word]:
        name, *rest = node.named_children or [node]
        value = self._word(rest[-1]) if rest else Word("")
        return self.text(name), value

    def _loose_assignment(self, node: Node) -> None:
        name, value = self._assignment(node)
        if name not in HARMLESS_VARIABLES or not value.plain:
            self.doubts[text("commands.sets", name=name)] = None

    def _redirect(self, node: Node) -> None:
        operator = next((c.type for c in node.children if not c.is_named), "")
        target = self._word(node.named_children[-1]) if node.named_children else Word("", plain=False)
        if operator in (">&", "<&") and target.plain and re.fullmatch(r"\d+-?|-", target.text):
            return
        if operator != "<" and target == Word("/dev/null"):
            return
        if operator == "<":
            self.doubts[text("commands.reads_path", path=target.text)] = None
        else:
            self.writes.append(target)
            self.doubts[text("commands.writes_path", path=target.text)] = None

    def _fed(self, node: Node) -> str:
        if node.type == "heredoc_redirect":
            # From line to line: the grammar takes lines that begin with a backslash for words of the redirection.
            begin = self.source.find(b"\n", node.start_byte) + 1
            end = next((c.start_byte for c in node.children if c.type == "heredoc_end"), node.end_byte)
            return self.source[begin:end].decode("utf-8", "replace") if begin else ""
        return self._word(node.named_children[-1]).text if node.named_children else ""

    def _function(self, node: Node) -> None:
        if not node.named_children:
            return
        name = self.text(node.named_children[0])
        body = self.text(node)[len(name) :]
        calls = re.findall(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", body)
        self.bomb = self.bomb or (len(calls) >= 1 and ("&" in body or "|" in body))


HARMLESS_VARIABLES = frozenset(
    {
        "CI", "NODE_ENV", "LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "TZ", "TERM", "COLUMNS", "LINES", "NO_COLOR",
        "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED",
        "RUST_BACKTRACE", "DEBUG", "VERBOSE", "GOFLAGS_", "CGO_ENABLED", "GOOS", "GOARCH", "RUST_LOG", "LOG_LEVEL",
        "MYPY_FORCE_COLOR", "PY_COLORS", "SOURCE_DATE_EPOCH",
    }
)  # fmt: skip


_SEPARATOR = re.compile(r"[;&|\n\r(){}`<>]+")
_QUOTES = re.compile(r"[\"'\\]")


def _split_crudely(command: str) -> Iterator[SimpleCommand]:
    """Yield the text between separators as simple commands, for input that is not valid bash.

    Enough to find denied programs.
    """
    for piece in _SEPARATOR.split(command):
        words = _QUOTES.sub("", piece).split()
        if words:
            yield SimpleCommand(tuple(Word(w, plain=not set(w) & set("$*?[]~,")) for w in words))
