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
from kcm_cli.sandbox.kubelet_api.pods import Pod, Run

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
