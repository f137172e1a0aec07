"""Logs of go test, and the table made of them."""

from tests.upstream.results import Case, cases, skipping, table

LOG = """\
=== RUN   TestA
=== RUN   TestA/one_thing
    a_test.go:7: --- FAIL: not a result
--- FAIL: TestA (3.50s)
    --- PASS: TestA/one_thing (1.00s)
    --- FAIL: TestA/another (2.00s)
=== RUN   TestB
--- SKIP: TestB (0.00s)
=== RUN   TestC
panic: test timed out
"""
FOUND = [
    Case("TestA/one_thing", "PASS", 1.0),
    Case("TestA/another", "FAIL", 2.0),
    Case("TestB", "SKIP", 0.0),
    Case("TestC", "FAIL", -1.0),
]


def test_cases_are_the_leaves() -> None:
    assert {case.name: case for case in cases(LOG.splitlines())} == {case.name: case for case in FOUND}


def test_the_table_names_what_was_left_out() -> None:
    assert table(FOUND, {"TestD": "needs 1.32"}) == (
        [
            "PASS TestA/one_thing (1 s)",
            "FAIL TestA/another (2 s)",
            "SKIP TestB (0 s)",
            "FAIL TestC (did not end)",
            "N/A  TestD (needs 1.32)",
            "cases: 1 PASS, 2 FAIL, 1 SKIP",
        ],
        2,
    )


def test_what_is_left_out_is_named_exactly() -> None:
    assert skipping(["TestA/one;_two(3)", "TestB"]) == r"^TestA$/^one;_two\(3\)$|^TestB$"
