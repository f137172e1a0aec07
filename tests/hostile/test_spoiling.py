"""What the hostile proxy makes of objects."""

import json

from tests.hostile.spoiling import WORDS, past_validation


def test_no_object_changes_what_the_next_one_gets() -> None:
    """A word that was shared once held itself, and no event reached the manager any more."""
    before = json.dumps(WORDS)
    for number in range(3000):
        metadata = {"name": "a", "uid": f"u{number}", "labels": {"odd": "yes"}}
        obj = {
            "kind": "Odd",
            "metadata": metadata,
            "spec": {"a": [{"b": [1, {"neverHeardOf": [2]}]}], "neverHeardOf": [3]},
        }
        json.dumps(past_validation(obj, 1.0, 1))
    assert json.dumps(WORDS) == before
