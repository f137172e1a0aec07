"""What the lives of cluster objects are made of: the lives themselves need a real API server."""

import json
import random

import pytest

from tests.differential.cluster_lives.kinds import KINDS, One, drawn
from tests.differential.cluster_lives.pictures import face, shown
from tests.differential.cluster_lives.site import PATHS
from tests.differential.living import Doc

SELF_MADE = {"MEASURE", "QUEUE"}


@pytest.mark.parametrize("name", KINDS)
def test_each_step_is_of_a_known_kind_and_can_be_sent(name: str) -> None:
    kind = KINDS[name]
    for step in (*kind.first, *kind.steps, *kind.last):
        assert step.verb in SELF_MADE or step.plural in PATHS
        json.dumps([drawn(random.Random(0), step.body), drawn(random.Random(0), step.where)])


def test_a_life_is_drawn_anew_from_its_seed() -> None:
    choice = {"a": One([1, 2, 3]), "b": [One([4, 5]), One([6, 7])]}
    assert drawn(random.Random(1), choice) == drawn(random.Random(1), choice)


def test_what_is_random_is_not_compared() -> None:
    def pod(end: str, uid: str, time: str) -> Doc:
        meta = {"name": f"w-{end}", "generateName": "w-", "uid": uid, "creationTimestamp": time}
        return {"metadata": meta, "spec": {"volumes": [{"name": f"api-{end}"}]}, "status": {"startTime": time}}

    pods = pod("x7k2p", "a", "2026-01-01T00:00:00Z"), pod("bbbbb", "b", "2026-01-02T00:00:00Z")
    first, second = (shown("pods", face("pods", one)) for one in pods)
    assert first == second
