"""Every controller declares its kinds, queues and passes."""

import ast
from pathlib import Path

import pytest

from kcm_cli.engine.controller import Controller
from kcm_cli.engine.descriptor import Descriptor
from kcm_cli.manager.controller_map import CONTROLLERS
from tests.kit.places import ROOT

OURS = [descriptor for descriptor in CONTROLLERS if not descriptor.cloud_only]
FOLDER = ROOT / "kcm_cli" / "controllers"
LISTENING = {
    "garbage_collector/monitors.py": "its kinds are those that discovery names",
    "resourcequota/monitors.py": "its kinds are those that quotas name",
    "persistentvolume_binder/caches.py": "a cache in front of a cache",
    "persistentvolume_binder/recycler.py": "waits for one pod",
    "pod_garbage_collector/controller.py": "keeps why a node is gone, for the record of causes",
}
"""What listens to a cache by itself, and why."""


def named(descriptor: Descriptor) -> str:
    return descriptor.name


@pytest.mark.parametrize("descriptor", OURS, ids=named)
def test_a_controller_is_declared(descriptor: Descriptor) -> None:
    declared = descriptor.load()
    assert isinstance(declared, Controller)
    assert declared.all_queues or declared.passes
    for queue in declared.all_queues:
        assert queue.name
        assert not queue.owns or queue.main.resource
        written = {kind.gvr for kind in queue.writes}
        followed = {watch.resource.gvr for watch in declared.followed}
        assert written <= followed, "`writes` waits for caches: name kinds that the controller watches"


@pytest.mark.parametrize("descriptor", OURS, ids=named)
def test_a_kind_is_watched_in_one_scope(descriptor: Descriptor) -> None:
    scopes: dict[object, object] = {}
    for watch in descriptor.load().followed:
        assert scopes.setdefault(watch.resource.gvr, watch.scope) == watch.scope, watch.resource


def calls(path: Path, method: str) -> int:
    tree = ast.walk(ast.parse(path.read_text()))
    return sum(isinstance(one, ast.Call) and getattr(one.func, "attr", "") == method for one in tree)


def test_nothing_else_listens_to_caches() -> None:
    found = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.py") if calls(path, "listen")}
    assert found == LISTENING.keys(), "declare a Watch, or say in LISTENING why not"
