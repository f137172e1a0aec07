"""Entries of the record, as spans."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.component.clock import LoopClock
from kcm_cli.component.tracing_config import ALL
from kcm_cli.runtime import spans as module
from kcm_cli.runtime.cause_ring import CauseRing, Later, Wrote
from kcm_cli.runtime.causes import DELAY, DELETED, LISTED, QUEUED, RETRY, Causes, Change, Due, Tick, Work
from kcm_cli.runtime.spans import (
    ANSWERED_LATER,
    BEFORE,
    CHANGE,
    CREATION,
    FURTHER,
    INFERRED,
    LONGEST_S,
    SYNC,
    WRITE,
    Link,
    Sending,
    Span,
    SpanContext,
    Spans,
)

SHIFT = 1000.0
APPLIED = Change("MODIFIED", "apps", "Deployment", "n/web", "d", "7", 1.0)


class Made:
    """Spans of one process, and what is needed to make them."""

    def __init__(self, instance: str = "one", rate: int = ALL, most: int = module.MOST) -> None:
        self.all: list[Span] = []
        self.spans = Spans(instance, rate, SHIFT, self.all.append, most)
        self.ring = CauseRing(LoopClock())
        self.ring.spans = self.spans

    def work(
        self, *causes: Change | Tick | Due, controller: str = "c", kind: str = "Pod", key: str = "n/a", at: float = 2.0
    ) -> Work:
        found = Causes(list(causes))
        return Work(controller=controller, queue="q", kind=kind, key=key, at=at, causes=found, note=self.ring.note)

    def sync(self, *causes: Change | Tick | Due, end: float = 3.0, at: float = 2.0, controller: str = "c") -> Span:
        """A sync that did something."""
        work = self.work(*causes, controller=controller, at=at)
        work.noted()
        self.spans.ended(work, end)
        return self.all[-1]

    def write(self, work: Work | None, uid: str, version: str, at: float = 2.0, code: int = 200) -> Span:
        sync = work.noted() if work is not None else 0
        context = self.sent(sync)
        entry = Wrote(sync, at, 0.5, "c", "update", "apps", "replicasets", "ReplicaSet", "n/web-1", code, uid, version)
        self.spans.wrote(entry, context)
        return self.all[-1]

    def sent(self, sync: int = 0, verb: str = "update", kind: str = "", key: str = "", at: float = 2.0) -> SpanContext:
        return self.spans.sent(Sending(sync, at, "c", verb, kind, key))

    def named(self, name: str) -> Span:
        (found,) = [span for span in self.all if span.name == name]
        return found


def test_a_sync_and_its_write_follow_from_a_change() -> None:
    made = Made()
    work = made.work(APPLIED, controller="deployment-controller", kind="Deployment", key="n/web")
    work.attempt, work.waited_s = 2, 0.25
    context = made.sent(work.noted())
    entry = Wrote(
        work.number, 2.5, 0.25, "deployment-controller", "create", "apps", "replicasets", "ReplicaSet", "n/w", 201
    )
    made.spans.wrote(msgspec.structs.replace(entry, uid="r", version="8", reason="no ReplicaSet has it"), context)
    made.spans.ended(work, 3.0)
    change, write, sync = made.all
    assert [span.name for span in made.all] == [
        "Deployment changed",
        "create replicasets",
        "deployment-controller sync",
    ]
    assert (change.kind, change.parent, change.start, change.end) == (CHANGE, None, 1001.0, 1001.0)
    assert (sync.kind, sync.parent, sync.start, sync.end, sync.error) == (SYNC, change.context, 1002.0, 1003.0, "")
    assert (write.kind, write.parent, write.start, write.end) == (WRITE, sync.context, 1002.5, 1002.75)
    assert {span.context.trace for span in made.all} == {change.context.trace}
    assert len({span.context.span for span in made.all}) == 3
    named = {"k8s.object.kind": "Deployment", "k8s.namespace.name": "n", "k8s.object.name": "web"}
    assert change.attributes == {
        **named,
        "k8s.object.group": "apps",
        "k8s.object.uid": "d",
        "k8s.object.resource_version": "7",
        "kcm.change": "MODIFIED",
    }
    assert sync.attributes == {
        **named,
        "kcm.controller": "deployment-controller",
        "kcm.queue": "q",
        "kcm.attempt": 2,
        "kcm.queue_wait_s": 0.25,
    }
    assert write.attributes == {
        "k8s.object.kind": "ReplicaSet",
        "k8s.namespace.name": "n",
        "k8s.object.name": "w",
        "kcm.controller": "deployment-controller",
        "k8s.verb": "create",
        "k8s.resource": "replicasets",
        "http.request.method": "POST",
        "k8s.object.group": "apps",
        "k8s.object.uid": "r",
        "k8s.object.resource_version": "8",
        "kcm.reason": "no ReplicaSet has it",
        "http.response.status_code": 201,
    }


def test_what_a_write_changed_belongs_to_its_trace() -> None:
    made = Made()
    write = made.write(made.work(APPLIED), "r", "8")
    sync = made.sync(Change("MODIFIED", "apps", "ReplicaSet", "n/web-1", "r", "8", 2.4))
    assert sync.parent == write.context
    gone = made.sync(Change(DELETED, "apps", "ReplicaSet", "n/web-1", "r", "99", 2.4))
    assert gone.parent != write.context  # it was an update


def test_a_deletion_is_joined_by_the_uid() -> None:
    made = Made()
    context = made.sent()
    made.spans.wrote(Wrote(0, 2.0, 0.1, "c", "delete", "", "pods", "Pod", "n/a", 200, "p"), context)
    assert made.sync(Change(DELETED, "", "Pod", "n/a", "p", "99", 2.4)).parent == context
    assert made.sync(Change(DELETED, "", "Pod", "n/a", "another", "99", 2.4)).parent != context


def test_a_write_that_changed_nothing_is_no_cause() -> None:
    made = Made()
    write = made.write(made.work(APPLIED), "r", "8", at=2.0)
    assert made.sync(Change("MODIFIED", "apps", "ReplicaSet", "n/web-1", "r", "8", 1.5)).parent != write.context


def test_a_change_has_one_span_however_many_syncs_follow() -> None:
    made = Made()
    syncs = [made.sync(APPLIED), made.sync(APPLIED)]
    assert {sync.parent for sync in syncs} == {made.named("Deployment changed").context}


def test_further_causes_are_links() -> None:
    made = Made()
    write = made.write(made.work(APPLIED, controller="other"), "r", "8")
    others = [Change("MODIFIED", "", "Pod", f"n/{n}", str(n), "1", 2.4) for n in range(3)]
    sync = made.sync(*others, Change("MODIFIED", "apps", "ReplicaSet", "n/web-1", "r", "8", 2.4), controller="d")
    assert sync.parent == write.context
    roots = [span.context for span in made.all if span.name == "Pod changed"]
    assert sync.links == tuple(Link(root, FURTHER) for root in roots) and len(roots) == 3
    assert sync.attributes["kcm.causes"] == 4


def test_a_change_is_linked_to_the_creation_of_its_object() -> None:
    made = Made()
    context = made.sent()
    made.spans.wrote(Wrote(0, 1.0, 0.1, "c", "create", "", "pods", "Pod", "n/a", 201, "p", "1"), context)
    made.sync(Change("MODIFIED", "", "Pod", "n/a", "p", "5", 2.0))
    assert made.named("Pod changed").links == (Link(context, CREATION),)


def test_an_answer_that_is_read_late_gets_a_link() -> None:
    """The watch was faster than the answer: what it began has a trace of its own by then."""
    made = Made()
    context = made.sent()
    sync = made.sync(Change("ADDED", "", "Pod", "n/a", "p", "1", 2.4))
    assert "kcm.parent" not in sync.attributes
    made.spans.wrote(Wrote(0, 2.0, 0.9, "c", "create", "", "pods", "Pod", "n/a", 201, "p", "1"), context)
    assert sync.parent is not None
    assert made.named("create pods").links == (Link(sync.parent, ANSWERED_LATER),)


@pytest.mark.parametrize(
    ("verb", "kind", "key", "change", "fits"),
    [
        ("create", "Pod", "n/web-1", ("ADDED", "n/web-1", 2.4), True),
        ("create", "Pod", "n/web-", ("ADDED", "n/web-x7k2p", 2.4), True),
        ("update", "Pod", "n/web-1", ("MODIFIED", "n/web-1", 2.4), True),
        ("delete", "Pod", "n/web-1", ("DELETED", "n/web-1", 2.4), True),
        ("create", "Pod", "n/web-1", ("ADDED", "n/web-1", 1.9), False),
        ("create", "Pod", "n/web-1", ("MODIFIED", "n/web-1", 2.4), False),
        ("update", "Pod", "n/web-1", ("ADDED", "n/web-1", 2.4), False),
        ("update", "Pod", "n/web-1", ("LISTED", "n/web-1", 2.4), False),
        ("create", "Pod", "n/web-1", ("ADDED", "n/web-10", 2.4), False),
        ("create", "Service", "n/web-1", ("ADDED", "n/web-1", 2.4), False),
        ("create", "", "n/web-1", ("ADDED", "n/web-1", 2.4), False),
    ],
)
def test_a_write_under_way_may_be_the_cause(
    verb: str, kind: str, key: str, change: tuple[str, str, float], fits: bool
) -> None:
    """The watch is faster than the answer."""
    made = Made()
    context = made.sent(verb=verb, kind=kind, key=key)
    type_, changed, at = change
    sync = made.sync(Change(type_, "", "Pod", changed, "p", "1", at))
    assert (sync.parent == context, sync.attributes.get("kcm.parent")) == (fits, INFERRED if fits else None)


def test_of_several_writes_under_way_the_sync_is_the_cause() -> None:
    made = Made()
    work = made.work(APPLIED)
    for _ in range(2):
        made.sent(work.noted(), "create", "Pod", "n/web-")
    added = Change("ADDED", "", "Pod", "n/web-x7k2p", "p", "1", 2.4)
    assert made.sync(added).parent == made.spans.context(work.number)
    made.sent(0, "create", "Pod", "n/web-")
    other = made.sync(msgspec.structs.replace(added, uid="q"))
    assert other.parent == made.named("Pod created").context  # nobody can tell
    again = made.sync(msgspec.structs.replace(added, uid="q"))
    assert again.parent == other.parent  # it stays so


def test_retries_are_beside_the_first_attempt_and_end_with_the_trace() -> None:
    made = Made()
    first = made.work(APPLIED)
    made.ring.note(first)
    made.ring.asked(Later(first.number, 2.5, 0.005, "Forbidden"))
    made.spans.ended(first, 3.0)
    failed = made.all[-1]
    assert (failed.error, failed.attributes["kcm.again_after_s"]) == ("Forbidden", 0.005)
    second = made.sync(Due(RETRY, first))
    assert (second.parent, second.links) == (failed.parent, (Link(failed.context, BEFORE),))
    assert second.attributes["kcm.clock"] == "retry"
    third = made.sync(Tick(DELAY, 2), at=2.0 + LONGEST_S)
    assert (third.parent, third.links) == (failed.parent, (Link(second.context, BEFORE),))
    fourth = made.sync(Tick(DELAY, 3), at=2.1 + LONGEST_S)
    assert fourth.context.trace != failed.context.trace
    assert (fourth.parent, fourth.links) == (None, (Link(third.context, BEFORE),))


def test_what_a_sync_queues_is_below_it_though_it_has_ended() -> None:
    made = Made()
    first = made.work(APPLIED)
    made.spans.ended(first, 3.0)
    assert made.all == []  # it did nothing
    second = made.sync(Due(QUEUED, first), end=5.0)
    _, before, _ = made.all
    assert (before.name, before.end, second.parent) == ("c sync", 1003.0, before.context)


def test_a_pass_and_a_write_outside_of_syncs_have_traces_of_their_own() -> None:
    made = Made()
    work = made.work(Tick("pass"))
    work.queue = work.kind = work.key = ""
    within = made.write(work, "a", "1")
    made.spans.ended(work, 3.0)
    alone = made.write(None, "b", "1")
    named = made.named("c pass")
    assert (named.parent, within.parent, alone.parent) == (None, named.context, None)
    assert alone.context.trace != within.context.trace
    assert named.attributes == {"kcm.controller": "c", "kcm.clock": "pass"}


def test_refusals_are_errors() -> None:
    made = Made()
    entry = Wrote(0, 2.0, 0.1, "c", "create", "", "pods", "Pod", "n/a", 403, refusal="Forbidden: exceeded quota q")
    made.spans.wrote(entry, made.sent())
    assert made.all[-1].error == "Forbidden: exceeded quota q"
    assert made.write(None, "", "", code=500).error == "500"


def test_syncs_that_are_cut_off_end_as_cancelled() -> None:
    made = Made()
    made.work(APPLIED).noted()
    made.spans.close(9.0)
    assert (made.all[-1].error, made.all[-1].end) == ("cancelled", 1009.0)
    made.spans.close(9.0)
    assert len(made.all) == 2


def test_another_process_goes_on_with_the_trace() -> None:
    """The next leader finds the version in its first list."""
    before, after = Made("one"), Made("two")
    first, second = before.sync(APPLIED), after.sync(msgspec.structs.replace(APPLIED, type=LISTED, at=9.0))
    assert first.context.trace == second.context.trace
    spans = [*before.all, *after.all]
    assert len({span.context.span for span in spans}) == len(spans) == 4
    assert after.named("Deployment listed").attributes["kcm.change"] == LISTED
    later = after.sync(msgspec.structs.replace(APPLIED, type=LISTED, version="8"))
    assert later.context.trace != first.context.trace


@given(st.sampled_from([0, 1, 250_000, ALL]), st.integers(0, 10_000))
def test_a_trace_is_exported_as_a_whole_or_not_at_all(rate: int, number: int) -> None:
    made = Made(rate=rate)
    change = msgspec.structs.replace(APPLIED, uid=str(number))
    work = made.work(change)
    context = made.sent(work.noted())
    made.spans.wrote(Wrote(work.number, 2.0, 0.1, "c", "delete", "", "pods", "Pod", "n/a", 200, "p"), context)
    made.spans.ended(work, 3.0)
    assert len(made.all) == (3 if context.sampled else 0)
    sampling = pytest.importorskip("opentelemetry.sdk.trace.sampling")
    assert (
        context.sampled
        is sampling.TraceIdRatioBased(rate / ALL).should_sample(None, context.trace, "").decision.is_sampled()
    )
    assert context.traceparent == f"00-{context.trace:032x}-{context.span:016x}-0{int(context.sampled)}"


def test_contexts_are_forgotten_but_nothing_fails() -> None:
    made = Made(most=2)
    works = [made.work(msgspec.structs.replace(APPLIED, uid=str(n))) for n in range(5)]
    for number, work in enumerate(works):
        made.write(work, f"r{number}", "1")
    for work in works:
        made.spans.ended(work, 3.0)
    assert [span.name for span in made.all].count("c sync") == 2
    assert made.spans.context(1) is None and made.spans.context(5) is not None
    late = made.write(works[0], "late", "1")
    assert late.parent is None
