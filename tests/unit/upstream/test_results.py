"""Logs of go test, and the table made of them."""

from tests.upstream.results import Case, cases, table

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


def test_a_failure_that_was_expected_is_not_counted() -> None:
    assert table(FOUND, {"TestA/another": "needs 1.32", "TestB": "not failed"}) == (
        [
            "PASS TestA/one_thing (1 s)",
            "N/A  TestA/another (needs 1.32)",
            "SKIP TestB (0 s)",
            "FAIL TestC (did not end)",
            "cases: 1 PASS, 1 FAIL, 1 SKIP, 1 N/A",
        ],
        1,
    )
