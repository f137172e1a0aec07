"""What runs find that began earlier."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.machinery import codec
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.store.stored import Recent, Stored
from kcm_cli.sandbox.kubelet_api import commands
from kcm_cli.sandbox.kubelet_api.commands import Commands
from kcm_cli.sandbox.kubelet_api.pods import PODS, Pod, Run

BEGAN = datetime(2026, 1, 2, tzinfo=UTC)


def pod(name: str) -> Stored:
    doc = {"metadata": {"name": name, "namespace": "d", "uid": name}, "spec": {"containers": [{"name": "c"}]}}
    return Stored("d", name, 1, codec.encode(doc), Recent(1 << 20))


async def test_the_beginnings_of_the_runs_looked_at_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def shown_since(store: Store, of: Pod, run: Run) -> Stored:
        asked.append(run.id)
        return pod(of.name)

    monkeypatch.setattr(commands, "shown_since", shown_since)
    monkeypatch.setattr(commands, "_MOST_BEGINNINGS", 2)
    issue: Any = None
    known = Commands(Store(), LoopClock(BEGAN), issue)
    for name in ("a", "b", "a", "c", "a", "b"):
        assert known.began(Pod(pod(name), lambda view: view.annotations), Run(BEGAN, None, id=name)) is not None
    assert asked == ["a", "b", "c", "b"]


async def test_files_of_pods_are_dropped_without_a_look_at_all_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "_MOST_PODS", 3)
    issue: Any = None
    store = Store()
    known = Commands(store, LoopClock(BEGAN), issue)
    listed: list[Any] = []
    list_ = store.list
    monkeypatch.setattr(store, "list", lambda gvr, *rest, **more: listed.append(gvr) or list_(gvr, *rest, **more))

    def write(name: str) -> None:
        of = Pod(pod(name), lambda view: view.annotations)
        known.run(of, of.view.spec.containers[0], ("touch", "/tmp/a"))

    for name in "abc":
        store.create(PODS, "d", name, codec.decode_doc(pod(name).data))
        write(name)
    store.delete(PODS, "d", "b")
    store.create(PODS, "d", "d", codec.decode_doc(pod("d").data))
    write("d")
    assert list(known.written) == ["a", "c", "d"]
    store.delete(PODS, "d", "c")
    store.create(PODS, "d", "c", codec.decode_doc(pod("another").data) | {"kind": "Pod"})  # with another uid
    write("e")
    assert list(known.written) == ["a", "d"]
    assert PODS not in listed
    known.written = {"d": known.written["d"]}
    assert list(known._places) == ["d"], "a reset leaves nothing of others"
