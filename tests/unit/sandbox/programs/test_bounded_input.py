"""How much of its input a command reads at most."""

import pytest

from kcm_cli.sandbox.programs.bounded_input import most_read


@pytest.mark.parametrize(
    ("words", "most"),
    [
        (["head", "-c", "9"], 9),
        (["/usr/bin/head", "-c9"], 9),
        (["sh", "-c", "mkdir -p /a && head -c 9 > /a/b"], 9),
        (["/bin/bash", "-c", "head -c 9 | tar xf - -C /"], 9),
        (["sh", "-c", "head -c 9 > /a; head -c 9 > /b"], None),
        (["sh", "-c", "cat > /a; head -c 9 /a"], None),
        (["sh", "-c", "head -c 9 < /a; cat"], None),
        (["sh", "-c", "if true; then head -c 9; fi"], None),
        (["sh", "-c", "head -c $N > /a"], None),
        (["sh", "-c", "head -c 1$N > /a"], None),
        (["sh", "-c", "head -c 1$(cat)"], None),
        (["sh", "-c", "$X head -c 9"], None),
        (["sh", "-c", "X=$(cat); head -c 3"], None),
        (["sh", "-c", "X=$((`cat`)); head -c 3"], None),
        (["sh", "-c", "echo ${X:-$(cat)}; head -c 3"], None),
        (["sh", "-c", "echo > /$(cat); head -c 3"], None),
        (["sh", "-c", "head -c 3 > /$(cat)"], None),
        (["sh", "-c", "D=/a; mkdir -p $D && head -c 9 > $D/b"], 9),
        (["sh", "-c", "head -c"], None),
        (["sh", "-c", "head -c '"], None),
        (["sh", "-c", "head -c 9 /d/f"], None),
        (["head", "-c", "-9"], None),
        (["head", "-n", "9"], None),
        (["cat"], None),
        ([], None),
    ],
)
def test_the_most_that_a_command_reads(words: list[str], most: int | None) -> None:
    assert most_read(words) == most
