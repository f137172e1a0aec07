"""How steps are linked: what a step followed from, at what cost, and without inventing anything."""

from collections.abc import Callable, Sequence
from itertools import count, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.trace import history
from kcm_cli.trace.behind import NOT_SEEN, Linked
from kcm_cli.trace.history import Relations
from kcm_cli.trace.join import INFERRED, KNOWN, Target, deletion
from kcm_cli.trace.steps import AUDIT, CHANGED, CREATED, DELETED, EVENT, MARKED, OBJECT, SCALED, Ref, Step
from kcm_cli.trace.text import lines
from kcm_cli.trace.views import Seen
from tests.kit.growth import grows_less, grows_linearly

DEPLOYMENT = Ref("Deployment", "n/web", "d")
OLD, NEW = Ref("ReplicaSet", "n/web-1", "r1"), Ref("ReplicaSet", "n/web-2", "r2")
POD = Ref("Pod", "n/web-1-abcde", "p")
RS, DC = "replicaset-controller", "deployment-controller"
TARGET = Target("pod", "n", "web-1-abcde")


def relations() -> Relations:
    found = Relations()
    found.owners[POD.place], found.owners[OLD.place], found.owners[NEW.place] = OLD, DEPLOYMENT, DEPLOYMENT
    return found


def step(at: float, verb: str, about: Ref, actor: str = "", source: str = AUDIT, **more: object) -> Step:
    return Step(at, verb, about, actor, source, **more)  # type: ignore[arg-type]


def link(*steps: Step) -> dict[Step, Step | None]:
    linked = Linked(steps, relations())
    return {node.what: node.parent.what if node.parent is not None else None for node in linked.nodes}  # type: ignore[misc]


def test_the_last_change_before_is_the_cause() -> None:
    made = step(1, CREATED, DEPLOYMENT, "alice")
    set_, scaled = step(2, CREATED, OLD, DC), step(8, SCALED, OLD, DC)
    again, gone = step(7, SCALED, DEPLOYMENT, "bob"), step(9, DELETED, POD, RS)
    later = step(10, SCALED, DEPLOYMENT, "carol")
    found = link(made, set_, again, scaled, gone, later)
    assert (found[gone], found[scaled], found[set_], found[made]) == (scaled, again, made, None)


def test_a_pod_is_made_for_one_that_went() -> None:
    other = Ref("Pod", "n/web-1-zzzzz", "q")
    known = relations()
    known.owners[other.place] = OLD
    steps = (step(1, CREATED, OLD, DC), step(5, DELETED, other, "alice"), step(6, CREATED, POD, RS))
    node = Linked(steps, known).nodes[-1]
    assert node.parent is not None and node.parent.what == steps[1] and node.edge == INFERRED


def test_only_an_owner_by_uid_is_known() -> None:
    steps = (step(1, CREATED, OLD, DC), step(2, CREATED, POD, RS))
    assert Linked(steps, relations()).nodes[-1].edge == KNOWN
    assert Linked(steps, Relations()).nodes[-1].edge == INFERRED  # by its name alone


@pytest.mark.parametrize(
    ("before", "why"),
    [
        ((), "nothing"),
        ((step(20, SCALED, OLD, DC),), "it is later"),
        ((step(1, SCALED, Ref("ReplicaSet", "n/web-1", "other"), DC),), "another object of this name"),
        ((step(1, SCALED, NEW, DC),), "another owner"),
        ((step(1, CHANGED, OLD, RS),), "it is the controller's own"),
    ],
)
def test_nothing_is_made_up(before: Sequence[Step], why: str) -> None:
    gone = step(9, DELETED, POD, RS)
    node = next(node for node in Linked((*before, gone), relations()).nodes if node.what == gone)
    assert node.parent is None and node.origin == NOT_SEEN, why


def test_what_is_shown_is_what_another_source_tells() -> None:
    shown, told = step(9, MARKED, POD, source=OBJECT), step(9, DELETED, POD, RS, EVENT, rough=True)
    assert link(shown, told)[shown] == told


@pytest.mark.parametrize("which_first", ["some", "all"])
def test_a_deletion_of_some_objects_of_a_kind_says_nothing_about_one(which_first: str) -> None:
    everything = Ref("Pod", "n/")
    some, each = "all that match", ""
    first, second = (some, each) if which_first == "some" else (each, some)
    steps = (
        step(1, DELETED, everything, "alice", detail=first),
        step(2, DELETED, everything, "bob", detail=second),
    )
    found = Linked(steps, Relations()).about(TARGET)
    (told,) = [one for one in steps if not one.detail]
    assert [node.what for node in found.nodes] == [told]
    ended = deletion(found)
    assert ended is not None and ended.what == told


SET, AGENT, NEXT, ON = (
    Ref("DaemonSet", "n/agent", "s"),
    Ref("Pod", "n/agent-1"),
    Ref("Pod", "n/agent-2"),
    Ref("Node", "x"),
)
DS = "daemonset-controller"
SET_MADE, BORN = step(0, CREATED, SET, "alice"), step(1, CREATED, AGENT, DS)
IMAGE, LABEL = step(100, CHANGED, SET, "alice"), step(700, CHANGED, ON, "bob", detail="its labels: +a=b")
GONE, AGAIN = step(1300, DELETED, AGENT, DS), step(1302, CREATED, NEXT, DS)


@pytest.mark.parametrize(
    ("steps", "last", "cause"),
    [
        pytest.param((SET_MADE, BORN, IMAGE, LABEL), GONE, IMAGE, id="an old pod goes in its turn"),
        pytest.param((IMAGE, LABEL), GONE, IMAGE, id="a pod that was there before the log"),
        pytest.param((SET_MADE, BORN, IMAGE, LABEL, GONE), AGAIN, IMAGE, id="its replacement"),
        pytest.param((SET_MADE, BORN, IMAGE, LABEL), step(701, DELETED, AGENT, DS), LABEL, id="it goes at once"),
        pytest.param((SET_MADE, IMAGE, step(101, CREATED, AGENT, DS), LABEL), GONE, LABEL, id="a new pod"),
        pytest.param((SET_MADE, BORN, LABEL), GONE, LABEL, id="the set did not change"),
        pytest.param(
            (SET_MADE, BORN, step(90, DELETED, AGENT, DS), IMAGE, LABEL), AGAIN, LABEL, id="the node had no pod"
        ),
    ],
)
def test_a_daemon_is_replaced_for_its_set_and_not_for_any_later_change_of_its_node(
    steps: Sequence[Step], last: Step, cause: Step
) -> None:
    known = Relations()
    for pod in (AGENT, NEXT):
        known.owners[pod.place] = SET
        known.place(pod, "x")
    (node,) = [node for node in Linked((*steps, last), known).nodes if node.what == last]
    assert node.parent is not None and node.parent.what == cause and node.edge == INFERRED


STEPS = st.builds(
    Step,
    st.floats(0, 9),
    st.sampled_from([CREATED, CHANGED, SCALED, MARKED, DELETED]),
    st.sampled_from([DEPLOYMENT, OLD, NEW, POD, Ref("Pod", "n/"), Ref("Namespace", "n"), Ref("Node", "x")]),
    st.sampled_from(["", RS, DC, "kubelet of x", "garbage-collector-controller", "namespace-controller", "alice"]),
    st.sampled_from([AUDIT, EVENT, OBJECT]),
    rough=st.booleans(),
    vague=st.booleans(),
    behind=st.sampled_from([None, OLD, POD]),
)


@given(st.lists(STEPS, max_size=12))
def test_there_is_no_circle_and_no_step_is_lost(steps: list[Step]) -> None:
    linked = Linked(steps, relations())
    assert {node.what for node in linked.nodes} == set(steps)
    for node in linked.nodes:
        above, length = node.parent, 0
        while above is not None:
            assert above is not node
            above, length = above.parent, length + 1
            assert length <= len(steps)
    found = linked.about(Target("deploy", "n", "web"))
    assert len(list(lines(found, []))) >= len(found.nodes)


def ends(count: int) -> list[Step]:
    return [step(at / 1000, DELETED, POD) for at in range(count)]


def together(count: int) -> list[Step]:
    found = [step(at / 1000, DELETED, Ref("Pod", "n/"), "x") for at in range(count)]
    return found + [step(at / 1000, DELETED, Ref("Pod", f"n/{at}")) for at in range(count)]


def own(count: int) -> list[Step]:
    found = [step(at / 1000, CHANGED, DEPLOYMENT, DC) for at in range(count)]
    return found + [step(at / 1000, CHANGED, OLD, DC) for at in range(count)]


def pods(count: int) -> list[Step]:
    names = [Ref("Pod", f"n/web-1-{number}") for number in range(count)]
    found = [step(number / 1000, CREATED, name, RS) for number, name in enumerate(names)]
    return found + [step(9 + number / 1000, DELETED, name, RS) for number, name in enumerate(names)]


@pytest.mark.parametrize("make", [ends, together, own, pods])
def test_the_cost_grows_with_the_number_of_steps(make: Callable[[int], list[Step]]) -> None:
    def prepare(size: int) -> Callable[[], object]:
        steps = make(size)
        return lambda: Linked(steps, relations()).about(TARGET)

    assert grows_linearly(prepare, 300)


def test_old_objects_make_room_at_the_same_cost_in_a_long_log(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers, pod = count(), Seen()

    def prepare(size: int) -> Callable[[], None]:
        relations = Relations()

        def take(objects: int) -> None:
            monkeypatch.setattr(history, "MOST", size)
            for number in islice(numbers, objects):
                relations.take(Ref("Pod", "n/p", str(number)), pod)

        take(size)
        return lambda: take(20_000)

    assert grows_less(prepare, 1000, 2)
