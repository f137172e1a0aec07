"""Which entry is the cause of which: by uid and version, never by time or name."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kcm_cli.runtime.cause_ring import Entry, Later, Saw, Sync, Wrote
from kcm_cli.runtime.causes import Change, Tick
from kcm_cli.trace.join import (
    AT_START,
    FORGOTTEN,
    KNOWN,
    LOST,
    OTHERS,
    UNKNOWN,
    Node,
    Target,
    deletion,
    refused,
    trace,
)
from kcm_cli.trace.text import HEAD, document, head, lines, new_lines, sentence, tree

WEB = Target("rs", "n", "web")


def change(
    at: float = 10.0,
    type: str = "MODIFIED",
    uid: str = "u",
    version: str = "2",
    kind: str = "ReplicaSet",
    deleting: bool = False,
) -> Change:
    return Change(type, "apps", kind, "n/web", uid, version, at, deleting)


def wrote(
    sync: int = 1, at: float = 5.0, verb: str = "update", code: int = 200, version: str = "2", **more: str
) -> Wrote:
    return Wrote(sync, at, 0.1, "dc", verb, "apps", "replicasets", "ReplicaSet", "n/web", code, "u", version, **more)


def sync(number: int, *causes: Change | Tick, at: float = 11.0, controller: str = "rc") -> Sync:
    return Sync(number, at, controller, "replicaset", "ReplicaSet", "n/web", causes)


def unread(key: str) -> Wrote:
    return Wrote(0, 5.0, 0.1, "dc", "create", "", "pods", "Pod", key, 201)


def last(entries: list[Entry], forgotten: int = 0) -> Node:
    """The node of the last sync."""
    found = trace(entries, WEB, forgotten=forgotten)
    return max(
        (node for node in found.nodes if isinstance(node.what, Sync)),
        key=lambda node: getattr(node.what, "number", 0),
    )


@pytest.mark.parametrize(
    ("entries", "cause"),
    [
        pytest.param([sync(1, Tick("pass"), at=4.0), wrote(), sync(2, change())], "update", id="its version"),
        pytest.param([wrote(sync=0), sync(2, change())], "update", id="written outside of a sync"),
        pytest.param([wrote(sync=0), sync(2, change(version="3"))], OTHERS, id="another version"),
        pytest.param([wrote(sync=0), sync(2, change(uid="v"))], OTHERS, id="another object of the name"),
        pytest.param([wrote(sync=0, at=10.5), sync(2, change())], OTHERS, id="written later: it changed nothing"),
        pytest.param([wrote(sync=0, code=409), sync(2, change())], OTHERS, id="refused"),
        pytest.param([wrote(sync=0, code=0, version=""), sync(2, change())], LOST, id="a lost answer"),
        pytest.param([wrote(sync=0, code=504, version=""), sync(2, change())], LOST, id="a timeout of the server"),
        pytest.param([unread("n/web"), sync(2, change())], LOST, id="an answer without a uid"),
        pytest.param([unread("n/"), sync(2, change())], LOST, id="a collection that was deleted"),
        pytest.param([unread("m/"), sync(2, change())], OTHERS, id="a collection elsewhere"),
        pytest.param(
            [unread("n/a-"), sync(2, Change("ADDED", "", "Pod", "n/a-12345", "p", "1", 10.0))],
            LOST,
            id="a generated name",
        ),
        pytest.param([sync(2, change(type="LISTED"))], AT_START, id="there at the start"),
        pytest.param(
            [wrote(sync=0, verb="delete", version=""), sync(2, change(type="DELETED", version="9"))],
            "delete",
            id="a deletion by its uid",
        ),
        pytest.param(
            [wrote(sync=0, verb="delete", version=""), sync(2, change(version="9"))],
            OTHERS,
            id="a deletion is the cause of the end alone",
        ),
        pytest.param([sync(2)], "unknown: what queued it was not recorded", id="no cause"),
        pytest.param([sync(2, Tick("resync"))], "the clock: resync", id="the clock"),
        pytest.param([sync(2, Tick("retry", 1))], FORGOTTEN, id="a sync that is not there"),
        pytest.param([sync(1, Tick("pass")), sync(2, Tick("retry", 1))], "rc synced", id="a retry"),
        pytest.param(
            [wrote(sync=0), sync(2, change(version="1", kind="Pod"), change())], "update", id="the better of two causes"
        ),
    ],
)
def test_causes(entries: list[Entry], cause: str) -> None:
    node = last(entries)
    if node.parent is None:
        assert node.origin == cause
    elif isinstance(node.parent.what, Change):
        assert node.parent.origin == cause and node.parent.edge == (KNOWN if cause == OTHERS else UNKNOWN)
    else:
        assert cause in sentence(node.parent)


def test_where_the_record_does_not_reach_back_nothing_is_said_to_be_another_clients() -> None:
    entries: list[Entry] = [sync(1, change(at=30.0, version="1"), at=30.0), sync(2, change(at=100.0), at=101.0)]
    assert [node.origin for node in trace(entries, WEB, forgotten=1).roots] == [FORGOTTEN, OTHERS]
    assert [node.origin for node in trace(entries, WEB).roots] == [OTHERS, OTHERS]


def test_only_what_belongs_to_the_target_is_kept() -> None:
    def pod(name: str) -> Wrote:
        return Wrote(1, 12.0, 0.1, "rc", "create", "", "pods", "Pod", f"n/{name}", 201, name, "5")

    entries: list[Entry] = [sync(1, change()), pod("a"), pod("b"), Later(1, 13.0, 5.0)]
    text = "\n".join(tree(trace(entries, Target("po", "n", "a"))))
    assert "n/a" in text and "n/b" not in text and "waits" not in text
    assert "n/b" in "\n".join(tree(trace(entries, WEB)))
    assert trace(entries, Target("po", "n", "a"), earliest=12.5).nodes == ()


def test_refusals_that_were_overcome_are_none() -> None:
    no = wrote(at=6.0, code=403, refusal="Forbidden: exceeded quota small")
    yes = wrote(at=7.0)
    start: list[Entry] = [sync(1, change(at=1.0, version="1"), at=4.0)]
    assert len(refused(trace([*start, no, no], WEB))) == 2
    assert refused(trace([*start, no, yes], WEB)) == []
    assert refused(trace([*start, wrote(at=6.0, code=409, refusal="Conflict")], WEB)) == []


def test_an_object_that_was_made_again_is_not_deleted() -> None:
    gone, made = wrote(verb="delete", sync=0), wrote(verb="create", sync=0, at=9.0, code=201)
    assert deletion(trace([gone], WEB)) is not None
    assert deletion(trace([gone, made], WEB)) is None


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ([Saw(change(deleting=True)), Saw(change(at=12.0, type="DELETED", version="9"))], "marked for deletion"),
        ([Saw(change(type="DELETED", version="9"))], "was deleted (version 9) - a change by another client"),
        ([wrote(verb="delete", sync=0), Saw(change(deleting=True))], "was deleted by dc"),
        ([Saw(change(type="LISTED", deleting=True))], AT_START),
    ],
)
def test_who_deleted_it(entries: list[Entry], text: str) -> None:
    assert text in head(trace(entries, WEB))[0]


@pytest.mark.parametrize(
    "mark", [wrote(verb="delete", sync=0), Saw(change(at=9.0, deleting=True))], ids=["deleted by kcm", "seen before"]
)
def test_a_later_change_of_an_object_that_ends_is_not_its_end(mark: Entry) -> None:
    """Another client writes a status, say; it did not mark the object."""
    found = trace([mark, sync(2, change(version="3", deleting=True)), wrote(sync=2, at=12.0)], WEB)
    texts = [sentence(node) for node in found.nodes]
    assert f"ReplicaSet n/web was changed (version 3) - {OTHERS}" in texts
    assert not any("marked for deletion (version 3)" in text for text in texts)


@pytest.mark.parametrize(
    ("causes", "cause"),
    [
        ((change(), change(version="3", deleting=True)), "marked for deletion"),
        ((Tick("delay", 8), Tick("delay", 9)), "a"),
    ],
    ids=["the end of its own object", "the last delay"],
)
def test_under_which_of_several_causes_a_sync_is_shown(causes: tuple[Change | Tick, ...], cause: str) -> None:
    entries = [
        sync(8, change(version="7"), at=1.0, controller="b"),
        sync(9, change(version="8"), at=2.0, controller="a"),
    ]
    found = trace([*entries, sync(10, *causes), wrote(sync=10, at=12.0)], WEB)
    node = next(node for node in found.nodes if isinstance(node.what, Sync) and node.what.number == 10)
    assert node.parent is not None and cause in sentence(node.parent)


CLIENT = Wrote(0, 5.0, 0.1, "alice", "patch", "apps", "replicasets", "ReplicaSet", "n/web", 200, "u", "2", agent="k/1")


def test_a_write_of_a_client_is_a_first_cause() -> None:
    found = trace([CLIENT, sync(2, change()), wrote(sync=2, at=12.0, version="3")], WEB)
    (root,) = found.roots
    assert root.edge == KNOWN and not root.origin
    assert sentence(root) == "alice (k/1): patch ReplicaSet n/web: 200"
    assert head(found)[-1].endswith("<- 00:00:05.000 alice (k/1): patch ReplicaSet n/web: 200")


def test_who_a_client_is() -> None:
    for user, agent, actor in (
        ("system:kube-scheduler", "kube-scheduler/v1", "kube-scheduler"),
        ("system:node:n1", "kubelet/v1", "kubelet of n1"),
        ("system:kcm-sandbox", "csi-driver/v1", "csi-driver"),
    ):
        (node,) = trace([replace(CLIENT, controller=user, agent=agent)], WEB).nodes
        assert isinstance(node.what, Wrote) and node.what.controller == actor


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"verb": "delete"}, "ReplicaSet n/web was deleted by alice (k/1) (known)"),
        ({"verb": "create", "resource": "replicasets/eviction"}, "ReplicaSet n/web was evicted by alice (k/1) (known)"),
        ({"reason": "evicted: low", "sync": 3}, 'ReplicaSet n/web was evicted by alice, for "low" (known)'),
        ({"verb": "delete", "manager": "m"}, "was deleted by alice (k/1, field manager m) (known)"),
    ],
)
def test_a_client_that_ends_an_object(more: dict[str, Any], text: str) -> None:
    """What its kubelet deletes in the end is not the answer."""
    last = replace(CLIENT, controller="system:node:n", agent="kubelet/1", verb="delete", at=9.0)
    assert text in head(trace([replace(CLIENT, **more), last], WEB))[0]
    assert "by kubelet of n" in head(trace([last], WEB))[0]


def test_a_change_of_an_object_that_the_manager_created_leads_back_to_its_creation() -> None:
    deployed = Change("MODIFIED", "apps", "Deployment", "n/d", "d", "1", 1.0)
    made = Wrote(1, 2.0, 0.1, "rc", "create", "", "pods", "Pod", "n/p", 201, "p", "5")
    ready = Change("MODIFIED", "", "Pod", "n/p", "p", "6", 3.0)
    told = head(trace([sync(1, deployed, at=1.5), made, sync(2, ready), wrote(sync=2, at=12.0)], WEB))
    assert "Pod n/p was changed (version 6) - a change by another client" in told[-2]
    assert "it was created at 00:00:02.000 by rc, which followed from" in told[-1] and "Deployment n/d" in told[-1]
    assert len(told) <= HEAD


def test_nothing_recorded_is_told_as_unknown() -> None:
    (line,) = head(trace([], WEB))
    assert line == "Nothing is recorded about ReplicaSet n/web: what happened to it, and why, is unknown."


def test_a_way_back_of_any_length_is_told_in_five_lines() -> None:
    entries: list[Entry] = []
    for number in range(1, 3000):
        at = float(number)
        entries.append(sync(number, change(at=at - 0.1, version=str(number)), at=at, controller=f"c{number % 2}"))
        entries.append(wrote(number, at=at, version=str(number + 1)))
    found = trace(entries, WEB)
    told = head(found)
    assert len(told) == HEAD and "steps between them" in told[-2] and "another client" in told[-1]
    assert max(map(len, tree(found))) < 400


ENTRIES = st.lists(
    st.one_of(
        st.builds(
            Sync,
            st.integers(-1, 4),
            st.floats(),
            st.text(max_size=3),
            st.just("q"),
            st.just("ReplicaSet"),
            st.sampled_from(["n/web", "n/x", ""]),
            st.lists(
                st.one_of(
                    st.builds(Tick, st.just("retry"), st.integers(-1, 4)),
                    st.builds(
                        change, st.floats(), st.sampled_from(["ADDED", "DELETED", "?"]), st.sampled_from(["u", ""])
                    ),
                ),
                max_size=3,
            ).map(tuple),
        ),
        st.builds(wrote, st.integers(-1, 4), st.floats(), st.sampled_from(["delete", "create"]), st.integers(0, 599)),
        st.builds(Saw, st.builds(change, st.floats(), st.sampled_from(["DELETED", "MODIFIED"]))),
        st.builds(Later, st.integers(-1, 4), st.floats(), st.floats(), st.text(max_size=3)),
    ),
    max_size=12,
)


@given(ENTRIES)
def test_whatever_a_manager_answers_is_told(entries: list[Entry]) -> None:
    found = trace(entries, WEB, forgotten=3)
    text = "\n".join(lines(found, ["The manager records since ?."]))
    assert text.replace("\n", "").isprintable() and len(head(found)) <= HEAD
    assert len(document(found, [], 0.0, 3)["nodes"]) == len(found.nodes)  # type: ignore[arg-type]  # a list
    assert len(list(new_lines(found, set()))) <= len(found.nodes)
