"""What a report claims is held against the records: by kind, whatever words it chooses."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daiku.core.proof import check_strength
from daiku.core.proof.check_strength import is_test_command, weaknesses
from daiku.core.proof.claims import check_report, claim_kinds, fitting_proofs, judge_claim, split_claims
from daiku.core.proof.evidence import Evidence
from daiku.domain.work.handovers import Claim, CommandOutcome, Proof, Report
from daiku.domain.work.patches import FileStat
from daiku.texts.text import Text
from tests.cases import for_each


def ran(command: str, code: int = 0, ref: str = "call_1", **more: object) -> Proof:
    given = {"kind": "exit_code", "subject": command, "ref": ref, "ok": not code, "value": str(code)}
    return Proof.model_validate(given | more)


DIFF = Proof(kind="diff", subject="src/x.py", ref="cp_1", ok=True, value="+1 -0")
LOOK, TESTS, BUILD, DEPLOY = ran("test -f x.py"), ran("pytest -q"), ran("make"), ran("fly deploy")
CLAIMS = {
    "tests": ("All 500 tests pass.", "The test suite is green.", "Tests ran successfully.", "テストはすべて合格しました。", "Fully tested."),
    "deployed": ("Deployed to production.", "Released as 1.2.", "It is live.", "Pushed to main.", "本番にデプロイしました。"),
    "fixed": ("Fixed the security hole.", "The bug is resolved.", "不具合を修正しました。"),
    "works": ("All of it works.", "Everything is done.", "The feature is production-ready.", "All is done.", "すべて完了しました。", "Done."),
    "changed": ("Added a parser.", "I rewrote the loop.", "設定を追加しました。"),
    "checked": ("The build succeeds.", "Verified by hand.", "Lint is clean."),
}  # fmt: skip
NEUTRAL = (
    "You asked for a game.", "Tests were not run.", "Not all tests pass.", "The tests fail.", "It was not deployed.",
    "The library has two modules.", "Step 2 failed.", "If the tests pass, deploy it.", "テストは通っていません。",
    "The person wanted it deployed.", "It uses pytest for its tests.",
)  # fmt: skip


@for_each(("kind", "sentence"), [(k, s) for k, each in CLAIMS.items() for s in each])
def test_a_claim_is_known_for_what_it_is_and_nothing_on_record_means_not_proven(
    kind: str, sentence: str
) -> None:
    assert kind in claim_kinds(sentence)
    text, claims = split_claims(sentence, Evidence(), finished=True)
    assert text == ""
    assert [(c.text, c.proofs, c.unfit) for c in claims] == [(sentence, (), True)]


@for_each("sentence", NEUTRAL)
def test_what_claims_nothing_stays_as_it_is(sentence: str) -> None:
    assert split_claims(sentence, Evidence(), finished=False) == (sentence, ())


@for_each(
    ("sentence", "proofs", "fit"),
    [
        ("All tests pass.", (TESTS,), (TESTS,)),
        ("All tests pass.", (DIFF, LOOK, BUILD), ()),
        ("All tests pass.", (ran("pytest -q", 1),), ()),
        ("All tests pass.", (ran("pytest -q", remarks=("no_tests",)),), ()),
        ("Deployed to production.", (LOOK, TESTS, BUILD), ()),
        ("Deployed to production.", (DEPLOY, LOOK), (DEPLOY,)),
        ("Pushed to main.", (DEPLOY,), ()),
        ("Pushed to main.", (ran("git push origin main"),), (ran("git push origin main"),)),
        ("Fixed the crash.", (DIFF,), ()),
        ("Fixed the crash.", (TESTS,), ()),
        ("Fixed the crash.", (DIFF, TESTS), (DIFF, TESTS)),
        ("Added src/x.py.", (DIFF,), (DIFF,)),
        ("Added y.py.", (DIFF,), ()),
        ("Added a parser.", (DIFF,), (DIFF,)),
        ("Fixed it; all tests pass and it is deployed.", (DIFF, TESTS), ()),
        ("It flies.", (LOOK,), ()),
        ("There is an x.py.", (LOOK,), (LOOK,)),
    ],
)
def test_only_a_proof_of_the_right_kind_shows_a_claim(
    sentence: str, proofs: tuple[Proof, ...], fit: tuple[Proof, ...]
) -> None:
    assert set(fitting_proofs(sentence, proofs, Evidence(proofs=proofs))) == set(fit)
    claim = judge_claim(Claim(text=Text(sentence), proofs=proofs), Evidence(proofs=proofs), finished=True)
    assert claim.unfit is (not fit)
    assert not judge_claim(Claim(text=Text(sentence)), Evidence(proofs=proofs), finished=True).proofs


@given(st.sampled_from(sorted(CLAIMS)), st.data())
def test_no_look_at_a_file_and_no_diff_shows_tests_or_a_deployment(kind: str, data: st.DataObject) -> None:
    sentence = data.draw(st.sampled_from(CLAIMS[kind]))
    proofs = tuple(data.draw(st.sets(st.sampled_from([DIFF, LOOK, ran("ls", ref="call_2")]))))
    if {"tests", "deployed"} & claim_kinds(sentence):
        assert fitting_proofs(sentence, proofs, Evidence(proofs=proofs)) == ()


@given(st.lists(st.sampled_from([s for each in CLAIMS.values() for s in each] + list(NEUTRAL)), max_size=6))
def test_over_nothing_on_record_no_claim_stands_in_the_text(parts: list[str]) -> None:
    report = check_report(Report(text=Text(" ".join(parts))), Evidence(), finished=False)
    assert not claim_kinds(report.text)
    assert all(claim.unfit and not claim.proofs for claim in report.claims)
    assert {c.text for c in report.claims} == {part for part in parts if claim_kinds(part)}


def test_while_something_is_left_nothing_shows_that_all_is_well() -> None:
    done = Evidence(proofs=(TESTS, DIFF))
    for finished in (True, False):
        for sentence in ("All of it works.", "All tests pass."):
            text, claims = split_claims(sentence, done, finished=finished)
            assert (text == sentence, claims == ()) == (finished, finished)


def test_a_number_of_tests_has_to_be_the_one_that_ran() -> None:
    output = CommandOutcome(command="pytest -q", exit_code=0, output="3 passed in 0.1s", call_id="call_1")
    done = Evidence(proofs=(TESTS,), commands=(output,))
    assert fitting_proofs("All 3 tests pass.", (TESTS,), done) == (TESTS,)
    assert fitting_proofs("All 500 tests pass.", (TESTS,), done) == ()


@for_each(
    ("command", "tests"),
    [
        ("pytest -q", True), ("python3 -m unittest test_cart", True), ("npm test", True), ("npm run test:unit", True),
        ("make check", True), ("cargo test", True), ("go test ./...", True), ("node --test a.test.mjs", True),
        ("cc -o test_cart cart.c && ./test_cart", True), ("./run_tests.sh", True), ("tox -e py", True),
        ("test -f x.py", False), ("grep -q tests a", False), ("ls tests", False), ("make", False), ("npm run build", False),
        ("python -m py_compile test_a.py", False), ("cat test_a.py", False), ("[ -f test_a.py ]", False),
    ],
)  # fmt: skip
def test_a_command_that_runs_tests_is_told_from_one_that_looks_at_them(command: str, tests: bool) -> None:
    assert is_test_command(command) is tests


@for_each(
    ("output", "count"),
    [
        ("Ran 0 tests in 0.000s\n\nOK", 0), ("Ran 12 tests in 0.1s", 12), ("no tests ran in 0.01s", 0),
        ("===== 5 passed in 0.1s =====", 5), ("# tests 4\n# pass 4", 4), ("Tests:       7 passed, 7 total", 7),
        ("test result: ok. 9 passed; 0 failed", 9), ("?   x [no test files]", 0), ("  6 passing (5ms)", 6), ("done", None),
    ],
)  # fmt: skip
def test_the_number_of_tests_is_read_from_what_the_runner_prints(output: str, count: int | None) -> None:
    assert check_strength.tests_ran(output) == count


@for_each(
    ("command", "path", "kind", "changed"),
    [
        ("make test", "Makefile", "edit", True),
        ("make test", "src/a.c", "edit", False),
        ("sh check.sh", "check.sh", "edit", True),
        ("./scripts/verify", "scripts/verify", "edit", True),
        ("npm test", "package.json", "edit", True),
        ("pytest -q", "tests/test_a.py", "edit", True),
        ("pytest -q", "tests/test_a.py", "create", False),
        ("pytest -q", "a.py", "edit", False),
        ("python main.py", "main.py", "edit", False),
        ("grep -q one check.sh", "check.sh", "edit", False),
    ],
)
def test_a_check_whose_own_files_the_work_changed_says_so(
    command: str, path: str, kind: str, changed: bool
) -> None:
    stat = FileStat.model_validate({"path": path, "kind": kind, "added": 1, "removed": 1})
    assert ("check_changed" in weaknesses(command, "", (stat,), passed_before=False)) is changed
