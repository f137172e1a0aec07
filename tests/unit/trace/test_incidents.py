"""The incidents, as an observer and an audit log of a cluster with the original manager tell them, and kcm's record."""

import pytest

from kcm_cli.trace.behind import Linked
from kcm_cli.trace.join import Target, deletion
from kcm_cli.trace.steps import AUDIT, DELETED, EVICTED, KUBELET
from kcm_cli.trace.text import HEAD, head, lines
from tests.incidents.replay import AUDITED, LISTED, METADATA, WATCHED, history, target, traced
from tests.incidents.simulated import problems, unlike
from tests.incidents.table import INCIDENTS, OF_METADATA, Incident
from tests.incidents.table import LISTED as AFTERWARDS


def told(one: Incident, source: str) -> str:
    word = one.observed_target if source in (WATCHED, LISTED) else ""
    found = head(traced(one.name, source, word))
    assert 0 < len(found) <= HEAD
    return "\n".join(found)


def check(text: str, parts: tuple[str, ...]) -> None:
    assert unlike(text, parts) == [], text


@pytest.mark.parametrize("one", INCIDENTS, ids=lambda one: one.name)
def test_an_observer_that_watched(one: Incident) -> None:
    text = told(one, WATCHED)
    check(text, one.observed)
    assert "audit log" not in text


@pytest.mark.parametrize("one", INCIDENTS, ids=lambda one: one.name)
def test_an_audit_log_with_bodies(one: Incident) -> None:
    check(told(one, AUDITED), one.audited)


@pytest.mark.parametrize("one", INCIDENTS, ids=lambda one: one.name)
def test_an_audit_log_of_metadata_invents_nothing(one: Incident) -> None:
    """It names who wrote; what only bodies say is not there, and nothing is put in its place."""
    check(told(one, METADATA), OF_METADATA.get(one.name, one.audited))


@pytest.mark.parametrize("one", INCIDENTS, ids=lambda one: one.name)
def test_an_observer_that_comes_afterwards_is_right_or_does_not_know(one: Incident) -> None:
    check(told(one, LISTED), AFTERWARDS.get(one.name, one.observed))


OTHER_SEEDS = [*((name, seed) for name in ("rollout", "node-loss", "pressure") for seed in (1, 3, 4, 7)), ("budget", 8)]
"""Names, places and times differ. Once these were told otherwise."""


@pytest.mark.parametrize(
    ("name", "seed"), [*((one.name, 2) for one in INCIDENTS), *OTHER_SEEDS], ids=lambda one: str(one)
)
def test_a_sandbox_with_kcm(name: str, seed: int) -> None:
    """On virtual time: its audit log says what that of a kube-apiserver does, and its record what everybody did. In
    kcm's own record, what others did is inferred from the cluster."""
    (one,) = [one for one in INCIDENTS if one.name == name]
    assert problems(one, seed) == []


@pytest.mark.parametrize("source", [WATCHED, LISTED, AUDITED, METADATA])
@pytest.mark.parametrize("one", INCIDENTS[:4], ids=lambda one: one.name)
def test_each_line_is_marked(one: Incident, source: str) -> None:
    for line in lines(traced(one.name, source), []):
        if " " in line and not line.startswith(("Times are", "Nothing is recorded", "  <- ...")):
            assert "known" in line or "inferred" in line, line


def deletions(one: Incident) -> dict[Target, str]:
    """Who deleted which object, as the audit log of the cluster knows it."""
    found: dict[Target, str] = {}
    for step in history(one.name, AUDITED, target(one.name)).steps:
        namespace, _, name = step.key.rpartition("/")
        if step.verb in (DELETED, EVICTED) and step.source == AUDIT and name and not step.actor.startswith(KUBELET):
            found.setdefault(Target(step.kind, namespace, name), step.actor)
    return found


@pytest.mark.parametrize("source", [WATCHED, LISTED])
def test_an_observer_is_right_about_who_deleted_or_does_not_know(source: str) -> None:
    """Of all objects that went in all incidents, not only of the targets."""
    right = 0
    for one in INCIDENTS:
        seen = history(one.name, source, target(one.name))
        linked = Linked(seen.steps, seen.relations)
        for about, actor in deletions(one).items():
            node = deletion(linked.about(about))
            told = getattr(node.what, "actor", "") if node is not None else ""
            if told in ("", "the eviction API"):
                continue  # it does not know who
            assert told == ("taint-eviction-controller" if actor == "node-controller" else actor), (one.name, about)
            right += 1
    assert right > 20
