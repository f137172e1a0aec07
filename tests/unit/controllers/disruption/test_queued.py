"""Which budgets a change of a pod queues: all that it may matter to, whatever comes together."""

from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from kcm_cli.api.core import PODS, Pod
from kcm_cli.api.policy import POD_DISRUPTION_BUDGETS, PodDisruptionBudget
from kcm_cli.controllers.disruption.controller import DisruptionController
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import controller_of
from kcm_cli.planning.pods import is_ready
from kcm_cli.runtime.store import Store

STATES: dict[str, tuple[Any, ...]] = {
    "app": ("web", "db", None),
    "owner": (None, "a", "b"),
    "deleting": (False, True),
    "ready": ("True", "False"),
    "node": ("", "n"),
    "note": ("x", "y"),
}


def pod(app: str | None, owner: str | None, deleting: bool, ready: str, node: str, note: str) -> Pod:
    metadata: dict[str, Any] = {"name": "p", "namespace": "ns", "uid": "p", "annotations": {"note": note}}
    if app is not None:
        metadata["labels"] = {"app": app}
    if owner is not None:
        metadata["ownerReferences"] = [{"kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}]
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}
    return PODS.decode(codec.encode({"metadata": metadata, "spec": {"nodeName": node}, "status": status}))


def counted(budget: PodDisruptionBudget, one: Pod) -> object:
    """What a budget sees of a pod."""
    wanted = budget.spec.selector.match_labels if budget.spec.selector is not None else None
    if not (wanted or {}).items() <= one.labels.items():
        return None
    return is_ready(one), one.deleting, controller_of(one), one.status


@pytest.fixture
def budgets() -> Store[PodDisruptionBudget]:
    """Of web, of db, and of all pods."""
    store: Store[PodDisruptionBudget] = Store()
    for name, labels in (("web", {"app": "web"}), ("db", {"app": "db"}), ("all", {})):
        doc = {"metadata": {"name": name, "namespace": "ns"}, "spec": {"selector": {"matchLabels": labels}}}
        store.put(POD_DISRUPTION_BUDGETS.decode(codec.encode(doc)))
    return store


def test_each_budget_that_sees_a_difference_is_queued(budgets: Store[PodDisruptionBudget]) -> None:
    """Versions in between may be missing, so that all fields may change at once."""
    controller = object.__new__(DisruptionController)
    controller._budgets = SimpleNamespace(store=budgets)  # type: ignore[assignment]
    controller._recorder = SimpleNamespace(emit=lambda notice: None)  # type: ignore[assignment]
    pods = [pod(*state) for state in product(*STATES.values())]
    for old, new in product(pods[::2], pods[1::2]):
        queued = set(controller.budgets_of_changed(old, new))
        seeing = {budget.key for budget in budgets.list() if counted(budget, old) != counted(budget, new)}
        assert seeing <= queued
    for same in pods:
        assert set(controller.budgets_of_changed(same, same)) == set(controller.budgets_of(same))


def test_a_note_on_a_pod_queues_no_budget(budgets: Store[PodDisruptionBudget]) -> None:
    controller = object.__new__(DisruptionController)
    controller._budgets = SimpleNamespace(store=budgets)  # type: ignore[assignment]
    rest = ("web", "a", False, "True", "n")
    assert controller.budgets_of_changed(pod(*rest, "x"), pod(*rest, "y")) == ()
