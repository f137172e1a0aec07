"""Events are deleted an hour after their last write."""

import asyncio
import random
from pathlib import Path
from typing import Any

from kcm_cli.component.clock import LoopClock
from kcm_cli.sandbox.apiserver.controllers.event_expiry import EVENTS, EventExpiry
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.apiserver.store import NotKept, SqliteJournal, Store
from kcm_cli.sandbox.assembly import assemble


def event(name: str, **content: object) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default", "finalizers": ["x.test/f"]}, **content}


def serve(store: Store, certificates: Certificates) -> None:
    assemble(store, LoopClock(), random.Random(1), certificates, address="127.0.0.1:6443")


def names(store: Store) -> list[str]:
    return [stored.name for stored in store.list(EVENTS)]


def write(store: Store, *created: str) -> None:
    for name in created:
        store.create(EVENTS, "default", name, event(name))


async def test_an_event_is_deleted_an_hour_after_its_last_write(certificates: Certificates) -> None:
    store = Store()
    serve(store, certificates)
    write(store, "a", "b", "c")
    await asyncio.sleep(1800)
    write(store, "later")
    store.update(EVENTS, "default", "b", event("b", count=2))
    store.delete(EVENTS, "default", "c")
    write(store, "c")
    watcher = store.watch(EVENTS, "", store.revision)
    await asyncio.sleep(1799)
    assert names(store) == ["a", "b", "c", "later"]
    await asyncio.sleep(2)
    assert names(store) == ["b", "c", "later"]
    assert [(one.type, one.stored.name) for one in watcher.take()] == [("DELETED", "a")]
    await asyncio.sleep(1800)
    assert names(store) == []


async def test_events_on_disk_get_an_hour_from_the_start(tmp_path: Path, certificates: Certificates) -> None:
    before = Store(SqliteJournal(tmp_path))
    write(before, "a")
    before.close()
    store = Store(SqliteJournal(tmp_path))
    serve(store, certificates)
    await asyncio.sleep(3599)
    assert names(store) == ["a"]
    await asyncio.sleep(2)
    assert names(store) == []
    store.close()


async def test_a_deletion_that_the_disk_refuses_is_tried_again(monkeypatch: Any, certificates: Certificates) -> None:
    def refuse(*args: object, **named: object) -> None:
        raise NotKept("the disk is full")

    store = Store()
    serve(store, certificates)
    write(store, "a")
    with monkeypatch.context() as patch:
        patch.setattr(store, "delete", refuse)
        await asyncio.sleep(3700)
    assert names(store) == ["a"]
    await asyncio.sleep(60)
    assert names(store) == []


async def test_the_writes_of_an_event_take_no_memory(certificates: Certificates) -> None:
    store = Store()
    server = assemble(store, LoopClock(), random.Random(1), certificates, address="127.0.0.1:6443")
    expiry = EventExpiry(server.core)
    write(store, "a", "b")
    for number in range(20):
        store.update(EVENTS, "default", "a", event("a", count=number))
    assert [name for _, name in expiry._due] == ["b", "a"]
    store.delete(EVENTS, "default", "b")
    assert [name for _, name in expiry._due] == ["a"]
