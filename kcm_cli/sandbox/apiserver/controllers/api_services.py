"""Keeps APIServices for the groups and versions of CustomResourceDefinitions.

upstream: kube-aggregator pkg/controllers/autoregister/autoregister_controller.go,
pkg/controlplane/controller/crdregistration/crdregistration_controller.go (v1.36)
"""

from kcm_cli.api.resource import GVR
from kcm_cli.sandbox.apiserver.registry.core import Core, Kinds
from kcm_cli.sandbox.apiserver.store import Event
from kcm_cli.sandbox.apiserver.store.next_tick import NextTick
from kcm_cli.sandbox.apiserver.types import Tree

API_SERVICES = GVR("apiregistration.k8s.io", "v1", "apiservices")
DEFINITIONS = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_PRIORITIES: Tree = {"groupPriorityMinimum": 1000, "versionPriority": 100}
_LABEL, _ALWAYS, _ONCE = "kube-aggregator.kubernetes.io/automanaged", "true", "onstart"


class CustomApiServices:
    """Keeps an APIService for each served version of a custom group. Reverts changes by clients."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._next_tick = NextTick(self._settle)
        self._served: dict[str, tuple[int, dict[str, tuple[str, str]]]] = {}
        """The groups and versions that definitions serve, with the revisions at which they were read."""
        core.store.subscribe(DEFINITIONS, self._next_tick.ask)
        core.store.subscribe(API_SERVICES, self._service_written)
        if core.store.count(DEFINITIONS):
            self._settle()

    def _service_written(self, event: Event) -> None:
        if _is_ours(event.stored.doc):
            self._next_tick.ask(event)

    def _settle(self) -> None:
        # atomic: no await
        wanted = self._wanted()
        for stored in self._core.store.list(API_SERVICES):
            known: Tree = stored.doc
            place = wanted.pop(stored.name, None)
            if not _is_ours(known):
                continue
            if place is None:
                self._core.own.delete(API_SERVICES, stored)
            elif known["spec"] != (spec := _spec(*place)):
                self._core.own.update(API_SERVICES, stored, stored.copy() | {"spec": spec})
        for place in wanted.values():
            self._core.own.create(API_SERVICES, _api_service(*place))

    def _wanted(self) -> dict[str, tuple[str, str]]:
        """The groups and versions that definitions serve, by the names of their APIServices."""
        found: dict[str, tuple[str, str]] = {}
        before, self._served = self._served, {}
        for stored in self._core.store.list(DEFINITIONS):
            known = before.get(stored.name)
            if known is None or known[0] != stored.revision:
                known = stored.revision, _served(stored.doc)
            self._served[stored.name] = known
            found |= known[1]
        return found


def _served(definition: Tree) -> dict[str, tuple[str, str]]:
    spec: Tree = definition["spec"]
    names = [version["name"] for version in spec["versions"] if version.get("served")]
    return {f"{name}.{spec['group']}": (spec["group"], name) for name in names}


def of_declared(kinds: Kinds) -> list[Tree]:
    """The APIServices of the groups of built-in kinds that are not recorded of upstream."""
    places = {kind.facts.gv for kind in kinds if kind.facts is not None and kind.group}
    return [_api_service(group, version, _ONCE) for group, version in sorted(places)]


def _api_service(group: str, version: str, managed: str = _ALWAYS) -> Tree:
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}", "labels": {_LABEL: managed}},
        "spec": _spec(group, version),
    }


def _spec(group: str, version: str) -> Tree:
    return {"group": group, "version": version, **_PRIORITIES}


def _is_ours(doc: Tree) -> bool:
    return (doc["metadata"].get("labels") or {}).get(_LABEL) == _ALWAYS
