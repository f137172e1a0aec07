"""A bounded set of recent values."""

from kcm_cli.machinery.recent import Recent


def test_the_least_recently_used_entry_is_evicted() -> None:
    known = Recent(2)
    known.add("a")
    known.add("b")
    assert "a" in known
    known.add("c")
    assert ("a" in known, "b" in known, "c" in known) == (True, False, True)
