"""Search and replace: exactly one place, the file's own line ends and indentation, in doubt refused."""

from __future__ import annotations

from daiku.domain.work.patches import SearchReplace
from daiku.edits.rules.edits import apply_edits
from daiku.edits.rules.matching.refusal import Refusal
from tests.cases import for_each


def edit(text: str, search: str, replace: str, *, everywhere: bool = False) -> str | Refusal:
    return apply_edits(text, [SearchReplace(search=search, replace=replace, replace_all=everywhere)])


def refused(result: str | Refusal) -> str:
    assert isinstance(result, Refusal), result
    return result.text


def test_an_exact_place_is_replaced_and_nothing_else() -> None:
    assert edit("a\n\tb = 1  \nc", "b = 1", "b = 2\n\td") == "a\n\tb = 2\n\td  \nc"


def test_several_places_are_refused_with_their_lines() -> None:
    said = refused(edit("x\ny\nx\n", "x", "z"))
    assert "2 places: lines 1, 3" in said
    assert edit("x\ny\nx\n", "x", "z", everywhere=True) == "z\ny\nz\n"


def test_a_search_that_overlaps_itself_stands_in_two_places() -> None:
    assert "2 places" in refused(edit("aaa", "aa", "b"))


def test_what_is_absent_is_refused_with_the_nearest_lines_numbered() -> None:
    text = "".join(f"line {i}\n" for i in range(50)) + "def area(radius):\n    return 3.14 * radius\n"
    said = refused(edit(text, "def area(radius):\n    return 3.15 * radius\n", "x"))
    assert "51 | def area(radius):" in said
    assert "52 |     return 3.14 * radius" in said
    assert "line 2 of the search:     return 3.15 * radius" in said


def test_what_is_like_nothing_is_refused_too() -> None:
    assert "no line of the file is like it" in refused(edit("alpha\n", "zzz_qqq", "x"))


def test_indentation_may_drift_when_it_drifts_alike() -> None:
    text = "class A:\n    def f(self):\n        return 1\n"
    new = edit(
        text, "def f(self):\n    return 1\n", "def f(self):\n    if x:\n        return 2\n    return 1\n"
    )
    assert new == "class A:\n    def f(self):\n        if x:\n            return 2\n        return 1\n"


def test_blanks_for_tabs_come_out_as_tabs() -> None:
    text = "func f() {\n\tif x {\n\t\ty()\n\t}\n}\n"
    new = edit(
        text,
        "    if x {\n        y()\n    }\n",
        "    if x {\n        for {\n            y()\n        }\n    }\n",
    )
    assert new == "func f() {\n\tif x {\n\t\tfor {\n\t\t\ty()\n\t\t}\n\t}\n}\n"


def test_another_shape_of_indentation_is_refused() -> None:
    text = "if a:\n    b()\n    c()\n"
    assert "not alike in all lines" in refused(
        edit(text, "  if a:\n      b()\n  c()\n", "  if a:\n      d()\n  c()\n")
    )


def test_a_drifted_place_must_be_the_only_one_too() -> None:
    text = "  a = call(x)\n  b = 2\n\n    a = call(x)\n    b = 2\n"
    assert "lines 1, 4" in refused(edit(text, "a = call(x)\nb = 2\n", "c\n"))


def test_blanks_at_line_ends_and_look_alikes_are_seen_through_and_kept_where_nothing_changes() -> None:
    text = "say(“hello”)   \nnext = 1\nlast – one\n"
    new = edit(text, 'say("hello")\nnext = 1\nlast - one\n', 'say("hello")\nnext = 2\nlast - one\n')
    assert new == "say(“hello”)   \nnext = 2\nlast – one\n"


@for_each("search", ["b\nc\n", "b\r\nc\r\n", "b\nc", "\nb\nc\n"])
def test_line_ends_of_the_file_are_kept_whatever_the_model_writes(search: str) -> None:
    result = edit("a\r\nb\r\nc\r\nd\r\n", search, search.replace("c", "x\ny"))
    assert result == "a\r\nb\r\nx\r\ny\r\nd\r\n"


def test_a_file_with_both_line_ends_keeps_each_where_it_is() -> None:
    assert edit("a\r\nb\nc\r\nd\n", "b\nc\n", "b\nx\n") == "a\r\nb\nx\nd\n"
    assert edit("a\r\nb\nc\r\nd\n", "c", "x\ny") == "a\r\nb\nx\r\ny\r\nd\n"


def test_a_replacement_with_crlf_becomes_what_the_file_has() -> None:
    assert edit("a\nb\n", "b", "x\r\ny") == "a\nx\ny\n"


def test_a_line_end_searched_in_a_crlf_file_takes_the_whole_line_end() -> None:
    assert edit("a\r\nb\r\n", "\nb", "") == "a\r\n"


def test_a_missing_final_newline_stays_missing() -> None:
    assert edit("a\nb", "b\n", "c\n") == "a\nc"
    assert edit("a\n  b", "b\n", "c\n") == "a\n  c"


def test_line_numbers_copied_from_a_listing_are_taken_off() -> None:
    assert edit("a\nb\nc\n", " 2 | b\n 3 | c\n", " 2 | B\n 3 | c\n") == "a\nB\nc\n"
    assert "not in the file" in refused(edit("a\nb\n", "1 | a\n7 | b\n", "x"))


def test_the_same_words_in_another_layout_are_found() -> None:
    text = "    if ready(x):\n        start(x)\n\nrest\n"
    assert edit(text, "if ready(x): start(x)", "if ready(x): stop(x)") == "    if ready(x): stop(x)\n\nrest\n"


def test_words_are_never_run_together_or_torn() -> None:
    refused(edit("constant = value;\n", "const ant = value ;", "x"))


def test_edits_follow_on_one_another_and_all_are_done_or_none() -> None:
    edits = [SearchReplace(search="a", replace="b"), SearchReplace(search="bb", replace="c")]
    assert apply_edits("ab", edits) == "c"
    said = refused(apply_edits("ab", [*edits, SearchReplace(search="zz", replace="")]))
    assert said.startswith("Edit 3 of 3")


def test_an_empty_search_stands_before_the_first_line_and_puts_whole_lines_there() -> None:
    assert edit("", "", "a\n") == "a\n"
    assert edit("", "", "a") == "a"
    assert edit("b\r\n", "", "a\n") == "a\r\nb\r\n"
    assert "empty" in refused(edit("b\n", "", "a"))


def test_a_file_is_never_emptied_by_an_edit() -> None:
    assert "empty" in refused(edit("a\nb\n", "a\nb\n", ""))
    assert "empty" in refused(edit("a\n", "a", " "))


def test_edits_that_change_nothing_say_that_the_text_is_as_wanted() -> None:
    both = [SearchReplace(search="a", replace="b"), SearchReplace(search="b", replace="a")]
    for result in (edit("a\n", "a", "a"), apply_edits("a\n", both), edit("a\na\n", "a", "a")):
        assert isinstance(result, Refusal)
        assert result.as_wanted
    absent = edit("a\n", "b", "b")
    assert isinstance(absent, Refusal)
    assert not absent.as_wanted
    refused(apply_edits("a\n", []))


def test_a_drifted_empty_replacement_takes_the_lines_out() -> None:
    assert edit("a\n  b\n  c\nd\n", "b\nc\n", "") == "a\nd\n"


def test_a_common_line_does_not_hide_a_unique_block() -> None:
    body = "".join(f"    if x{i}:\n        }}\n" for i in range(3000))
    assert "x2999" in str(edit(body, "if x1500:\n    }\n", "if y:\n    }\n"))


@for_each("end", ["", "\n"])
@for_each(
    ("replace", "new"),
    [
        ("bar()\nbaz()", "    bar()\n    baz()"),
        ("bar()\n\nbaz()", "    bar()\n\n    baz()"),
        ("if x:\n    foo()", "    if x:\n        foo()"),
        ("if (x) {\n    foo()\n}", "    if (x) {\n        foo()\n    }"),
        ("bar()\n    baz()", "    bar()\n    baz()"),
        ("if x:\n        foo()", "    if x:\n        foo()"),
        ("x = f(\n    1,\n)", "    x = f(\n        1,\n    )"),
    ],
)
def test_a_whole_line_searched_without_its_indentation_gives_it_to_every_line(
    end: str, replace: str, new: str
) -> None:
    for name in ("def f():", "- list", "function f() {"):
        text = f"{name}\n    foo()\nend\n"
        assert edit(text, f"foo(){end}", f"{replace}{end}") == f"{name}\n{new}\nend\n"
        crlf = text.replace("\n", "\r\n")
        wanted = f"{name}\n{new}\nend\n".replace("\n", "\r\n")
        assert edit(crlf, f"foo(){end}", f"{replace}{end}") == wanted


def test_a_replacement_that_goes_on_with_a_definition_of_no_indentation_is_in_doubt() -> None:
    said = refused(edit("def f():\n    return 1\n", "return 1", "return 2\n\n\ndef g():\n    return 3"))
    assert "indentation" in said
    assert edit("def f():\n    return 1\n", "    return 1", "    return 2\n\n\ndef g():\n    return 3") == (
        "def f():\n    return 2\n\n\ndef g():\n    return 3\n"
    )


def test_every_place_of_a_line_without_its_indentation_has_its_own() -> None:
    text = "a:\n  foo()\nb:\n    foo()\n"
    assert edit(text, "foo()\n", "bar()\nbaz()\n", everywhere=True) == (
        "a:\n  bar()\n  baz()\nb:\n    bar()\n    baz()\n"
    )


def test_a_part_of_a_line_is_replaced_as_it_is_written() -> None:
    assert edit("    x = foo()\n", "foo()", "bar()\nbaz()") == "    x = bar()\nbaz()\n"


def test_a_last_line_without_its_line_end_is_found_as_a_line_only() -> None:
    assert edit("max = 1", "x = 1\n", "x = 2\n") != "max = 2"
    assert edit("a\n  x = 1", "x = 1\n", "x = 2\ny = 2\n") == "a\n  x = 2\n  y = 2"


def test_blanks_within_lines_that_are_kept_moved_or_changed_in_part_stay_the_files() -> None:
    text = 'const s = "a  b";\nlet t = 1;\n'
    assert edit(text, 'const s = "a b";\nlet t = 1;\n', 'const s = "a b";\nlet t = 2;\n') == (
        'const s = "a  b";\nlet t = 2;\n'
    )
    assert edit(text, 'const s = "a b";\nlet t = 1;\n', 'let t = 1;\nconst s = "a b";\n') == (
        'let t = 1;\nconst s = "a  b";\n'
    )
    assert edit(text, 'const s = "a b";\n', 'const s = "a b"; // why\n') == (
        'const s = "a  b"; // why\nlet t = 1;\n'
    )
    table = "| name   | n |\n| ------ | - |\n| a      | 1 |\n"
    assert edit(
        table, "| name | n |\n| ------ | - |\n| a | 1 |\n", "| name | n |\n| ------ | - |\n| a | 2 |\n"
    ) == ("| name   | n |\n| ------ | - |\n| a      | 2 |\n")


def test_blank_lines_too_many_at_the_edges_of_a_search_do_no_harm() -> None:
    assert edit("a\n  b\nc\n", "\n\n  b\n\n", "\n\n  d\n\n") == "a\n  d\nc\n"


def test_a_search_whose_first_line_alone_lost_its_indentation_is_found() -> None:
    text = "class A:\n    def f(self):\n        return 1\n"
    assert edit(text, "def f(self):\n        return 1", "def g(self):\n        return 2") == (
        "class A:\n    def g(self):\n        return 2\n"
    )


def test_other_words_at_the_end_of_a_line_make_it_another_line() -> None:
    assert edit("f( a, b) + 1\n", "f(a, b)", "g(a, b)") == "g( a, b) + 1\n"
    assert "not in the file" in refused(edit("f( a, b) + 1\n", "f(a, b)\n", "g(a, b)\n"))
