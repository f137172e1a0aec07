from kcm_cli.planning.endpoints.trigger_time import ANNOTATION, annotated, trigger_time
from tests.unit.planning.endpoints.making import BORN, pod, service

ONE, TWO, THREE = (f"2026-01-01T00:00:0{n}Z" for n in (1, 2, 3))


def test_the_first_sync_uses_the_creation_of_the_service():
    time, seen = trigger_time(None, service(), [pod("a", since=TWO)])
    assert time == BORN
    assert seen.pods == {"a": TWO}


def test_earliest_new_change_counts():
    _, seen = trigger_time(None, service(), [pod("a", since=ONE)])
    time, seen = trigger_time(seen, service(), [pod("a", since=THREE), pod("b", since=TWO)])
    assert time == TWO
    time, _ = trigger_time(seen, service(), [pod("a", since=THREE), pod("b", since=TWO)])
    assert time == ""


def test_a_removed_pod_does_not_count():
    _, seen = trigger_time(None, service(), [pod("a", since=ONE), pod("b", since=ONE)])
    assert trigger_time(seen, service(), [pod("b", since=ONE)])[0] == ""


def test_a_pod_without_readiness_has_no_time():
    assert trigger_time(None, service(), [pod("a", ready=None)])[1].pods == {}


def test_annotation_is_set_or_removed():
    assert annotated({"k": "v"}, ONE) == {"k": "v", ANNOTATION: ONE}
    assert annotated({"k": "v", ANNOTATION: ONE}, "") == {"k": "v"}
