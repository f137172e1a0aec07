"""The store: revisions, concurrency, watches, history, durability."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.store import (
    AlreadyExists,
    Compacted,
    Conflict,
    DirectoryInUse,
    NotFound,
    NotKept,
    SqliteJournal,
    Store,
)
from kcm_cli.sandbox.apiserver.store.log import EventLog, Watcher
from kcm_cli.sandbox.apiserver.store.stored import Event, Recent, Stored

PODS = GVR("", "v1", "pods")
NODES = GVR("", "v1", "nodes")


def doc(name: str, namespace: str = "", **content: object) -> Doc:
    return {"metadata": {"name": name, "namespace": namespace}, **content}


def test_revisions_grow_across_resources() -> None:
    store = Store()
    first = store.create(PODS, "a", "p", doc("p", "a"))
    second = store.create(NODES, "", "n", doc("n"))
    assert (first.revision, second.revision, store.revision) == (2, 3, 3)
    assert second.doc["metadata"] == {"name": "n", "namespace": "", "resourceVersion": "3"}


def test_writes_of_existing_missing_and_outdated_objects_are_refused() -> None:
    store = Store()
    stored = store.create(PODS, "a", "p", doc("p", "a"))
    with pytest.raises(AlreadyExists):
        store.create(PODS, "a", "p", doc("p", "a"))
    with pytest.raises(NotFound):
        store.update(PODS, "a", "q", doc("q", "a"))
    with pytest.raises(Conflict):
        store.update(PODS, "a", "p", doc("p", "a", x=1), stored.revision + 1)
    with pytest.raises(Conflict):
        store.delete(PODS, "a", "p", expected=1)
    assert store.revision == stored.revision


def test_an_equal_update_is_no_write() -> None:
    store = Store()
    stored = store.create(PODS, "a", "p", doc("p", "a", x=1))
    assert store.update(PODS, "a", "p", doc("p", "a", x=1)) is stored
    assert store.update(PODS, "a", "p", doc("p", "a", x=2)).revision == 3


def test_lists_one_namespace_only() -> None:
    store = Store()
    for namespace, name in (("a", "x"), ("a-b", "x"), ("a", "b"), ("b", "x")):
        store.create(PODS, namespace, name, doc(name, namespace))
    assert [s.key for s in store.list(PODS)] == ["a-b/x", "a/b", "a/x", "b/x"]
    assert [s.key for s in store.list(PODS, "a")] == ["a/b", "a/x"]
    assert store.count(PODS, "a", start="a/c") == 1


def test_the_deleted_state_carries_the_revision_of_the_deletion() -> None:
    store = Store()
    store.create(PODS, "a", "p", doc("p", "a", x=1))
    watcher = store.watch(PODS, "", store.revision)
    store.delete(PODS, "a", "p")
    (event,) = watcher.take()
    assert event.frame == (
        b'{"type":"DELETED","object":{"metadata":{"name":"p","namespace":"a","resourceVersion":"3"},"x":1}}\n'
    )


def test_a_watch_from_cut_history_is_refused() -> None:
    store = Store(keep=5)
    for number in range(30):
        store.create(PODS, "a", f"p{number}", doc(f"p{number}", "a"))
    with pytest.raises(Compacted):
        store.watch(PODS, "", 2)
    assert [e.revision for e in store.watch(PODS, "", store.revision - 2).take()] == [30, 31]


def test_a_slow_watcher_gets_an_error() -> None:
    store = Store(keep=5)
    watcher = store.watch(PODS, "", store.revision)
    for number in range(30):
        store.create(PODS, "a", f"p{number}", doc(f"p{number}", "a"))
    with pytest.raises(Compacted):
        watcher.take()


async def test_a_waiting_watcher_wakes_on_a_write_and_on_close() -> None:
    store = Store()
    watcher = store.watch(PODS, "a", store.revision)
    loop = asyncio.get_running_loop()
    loop.call_later(1, store.create, PODS, "b", "other", doc("other", "b"))
    loop.call_later(2, store.create, PODS, "a", "p", doc("p", "a"))
    loop.call_later(3, watcher.close)
    seen = []
    while not watcher.closed:
        await watcher.wait()
        seen += [f"{loop.time():.0f} {event.stored.key}" for event in watcher.take()]
    assert [*seen, f"{loop.time():.0f}"] == ["2 a/p", "3"]


operations = st.lists(
    st.tuples(
        st.sampled_from(["create", "update", "delete"]),
        st.sampled_from(["a", "a-b", "b"]),
        st.sampled_from("pqr"),
        st.integers(0, 3),
        st.booleans(),
    ),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(operations, st.sampled_from(["", "a", "b"]), st.integers(0, 60))
def test_a_watch_shows_exactly_the_writes_and_the_past_can_be_listed(
    steps: list[tuple[str, str, str, int, bool]], namespace: str, when: int
) -> None:
    store = Store()
    written: list[tuple[str, str, int]] = []
    seen: list[tuple[str, str, int]] = []
    states: dict[int, list[bytes]] = {store.revision: []}
    watcher = store.watch(PODS, namespace, store.revision)
    late_since = store.revision
    for number, (verb, ns, name, content, read) in enumerate(steps):
        before = store.revision
        try:
            if verb == "create":
                store.create(PODS, ns, name, doc(name, ns, x=content))
            elif verb == "update":
                store.update(PODS, ns, name, doc(name, ns, x=content))
            else:
                store.delete(PODS, ns, name)
        except (AlreadyExists, NotFound):
            pass
        if store.revision != before and namespace in ("", ns):
            kind = {"create": "ADDED", "update": "MODIFIED", "delete": "DELETED"}[verb]
            written.append((kind, f"{ns}/{name}", store.revision))
        states[store.revision] = [s.data for s in store.list(PODS, namespace)]
        if read:
            seen += [(e.type, e.stored.key, e.revision) for e in watcher.take(2)]
        if number == when:
            late_since = store.revision
    while events := watcher.take():
        seen += [(e.type, e.stored.key, e.revision) for e in events]
    assert seen == written
    late = store.watch(PODS, namespace, late_since).take(1000)
    assert [(e.type, e.stored.key, e.revision) for e in late] == [w for w in written if w[2] > late_since]
    for revision, state in states.items():
        found = list(store.scan(PODS, namespace, at=revision))
        assert [s.data for s in found] == state
        for number, stored in enumerate(found):
            rest = list(store.scan(PODS, namespace, start=stored.key, at=revision))
            assert rest == found[number:]
            assert store.count(PODS, namespace, start=stored.key, at=revision) == len(rest)


@pytest.mark.parametrize(("before", "after"), [(1, True), (0, False), (1, 1.0)])
def test_a_change_of_nothing_but_a_type_is_a_write(before: object, after: object) -> None:
    store = Store()
    first = store.create(PODS, "a", "p", doc("p", "a", x=[{"y": before}]))
    second = store.update(PODS, "a", "p", doc("p", "a", x=[{"y": after}]))
    assert second.revision == first.revision + 1
    assert second.doc["x"][0]["y"] is after


def test_survives_a_restart(tmp_path: Path) -> None:
    store = Store(SqliteJournal(tmp_path / "data"))
    store.create(PODS, "a", "p", doc("p", "a", x=1))
    store.create(PODS, "a", "q", doc("q", "a"))
    store.update(PODS, "a", "p", doc("p", "a", x=2))
    store.delete(PODS, "a", "q")
    store.close()
    again = Store(SqliteJournal(tmp_path / "data"))
    assert again.revision == 5
    assert [(s.key, s.revision, s.doc["x"]) for s in again.list(PODS)] == [("a/p", 4, 2)]
    with pytest.raises(Compacted):
        again.watch(PODS, "", 3)
    assert again.watch(PODS, "", 5).take() == []
    again.close()


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    first = SqliteJournal(tmp_path)
    with pytest.raises(DirectoryInUse, match="in use by another process"):
        SqliteJournal(tmp_path)
    first.close()
    SqliteJournal(tmp_path).close()


def test_a_full_disk_refuses_writes_and_changes_nothing(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path)
    store = Store(journal)
    store.create(PODS, "a", "p", doc("p", "a", x=1))
    (pages,) = journal._database.execute("PRAGMA page_count").fetchone()
    journal._database.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(NotKept, match="the data directory is not writable: database or disk is full"):
        store.update(PODS, "a", "p", doc("p", "a", x="y" * 100_000))
    with pytest.raises(NotKept):
        store.create(PODS, "a", "q", doc("q", "a", x="y" * 100_000))
    journal._database.execute(f"PRAGMA max_page_count={pages + 100}")
    store.update(PODS, "a", "p", doc("p", "a", x=2))
    store.close()
    again = Store(SqliteJournal(tmp_path))
    assert [(one.name, one.doc["x"]) for one in again.scan(PODS)] == [("p", 2)]
    assert again.revision == store.revision
    again.close()


def test_a_database_of_a_later_version_is_not_changed(tmp_path: Path) -> None:
    first = SqliteJournal(tmp_path)
    first._database.execute("PRAGMA user_version=7")
    first.close()
    with pytest.raises(ValueError, match=r"it was written by a newer kcm \(format 7; this one supports up to 1\)"):
        SqliteJournal(tmp_path)


def test_the_history_of_large_objects_is_short() -> None:
    log = EventLog(100, 1, size=1000)
    for revision in range(2, 42):
        log.append(Event("MODIFIED", Stored("", "n", revision, b"x" * 100, Recent(1)), None))
    assert 10 <= log.end - log.position_after(log.floor) <= 12
    with pytest.raises(Compacted):
        log.since(log.floor - 1)
    assert [event.revision for event in log.since(log.floor)] == list(range(log.floor + 1, 42))


@pytest.mark.parametrize(("size", "unread"), [(1 << 20, 25), (4000, 10)])
def test_a_watcher_is_late_when_a_fourth_of_what_fits_is_unread(size: int, unread: int) -> None:
    log = EventLog(100, 1, size=size)
    watcher, late = Watcher(log, "", 0), list[int]()
    for revision in range(2, 32):
        log.append(Event("MODIFIED", Stored("", "n", revision, b"x" * 100, Recent(1)), None))
        if watcher.late:
            late.append(revision - 1)
    assert late == [*range(unread + 1, 31)]
    watcher.take(20)
    assert not watcher.late


def test_a_forgotten_resource_starts_again_and_knows_no_history() -> None:
    store = Store()
    store.create(PODS, "a", "p", doc("p", "a"))
    before = store.revision
    store.forget(PODS)
    assert store.get(PODS, "a", "p") is not None, "one with objects is not forgotten"
    store.delete(PODS, "a", "p")
    store.forget(PODS)
    with pytest.raises(Compacted):
        store.watch(PODS, "", before)
    assert store.watch(PODS, "", store.revision).take() == []


def test_few_documents_of_large_objects_are_kept() -> None:
    recent = Recent(10, size=1000)
    large = [Stored("", f"n{at}", at, b'{"x":"%s"}' % (b"y" * 400), recent, {}) for at in range(4)]
    assert [one._doc is not None for one in large] == [False, False, True, True]
    huge = Stored("", "huge", 5, b'{"x":"%s"}' % (b"y" * 5000), recent, {"x": "y"})
    assert [one._doc is not None for one in [*large, huge]] == [False] * 4 + [True]
    small = [Stored("", f"s{at}", at, b"{}", recent, {}) for at in range(12)]
    assert [one._doc is not None for one in [huge, *small]] == [False] * 3 + [True] * 10
    assert large[0].doc == {"x": "y" * 400}
