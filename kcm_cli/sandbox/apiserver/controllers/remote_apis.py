"""APIServices with a Service: their Available condition, and their groups in discovery.

Nothing listens behind the Services of a sandbox. So requests to such a group get 503, and its discovery check fails.

upstream: kube-aggregator pkg/controllers/status/remote/remote_available_controller.go, pkg/apiserver/handler_proxy.go
"""

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.times import format_time
from kcm_cli.sandbox.apiserver.controllers.api_services import API_SERVICES
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.store import Event, Stored
from kcm_cli.sandbox.apiserver.store.next_tick import NextTick
from kcm_cli.sandbox.apiserver.trees import condition
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.webhooks.targets import SLICES, service_of, slices_of

_SERVICES = GVR("", "v1", "services")


class RemoteApis:
    """Keeps the Available conditions and the groups in the catalog."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._next_tick = NextTick(self._settle)
        self._used: frozenset[tuple[str, str]] = frozenset()
        core.store.subscribe(API_SERVICES, self._next_tick.ask)
        core.store.subscribe(_SERVICES, self._service_written)
        core.store.subscribe(SLICES, self._slice_written)
        if core.store.count(API_SERVICES):
            self._settle()

    def _service_written(self, event: Event) -> None:
        if (event.stored.namespace, event.stored.name) in self._used:
            self._next_tick.ask(event)

    def _slice_written(self, event: Event) -> None:
        if self._used and (event.stored.namespace, service_of(event.stored.doc)) in self._used:
            self._next_tick.ask(event)

    def _settle(self) -> None:
        # atomic: no await
        remote = [stored for stored in self._core.store.list(API_SERVICES) if _service(stored) is not None]
        self._used = frozenset((each["namespace"], each["name"]) for each in map(_service, remote) if each)
        self._core.catalog.set_remote([_address(stored.doc) for stored in _by_priority(remote)])
        for stored in remote:
            self._judge(stored)

    def _judge(self, stored: Stored) -> None:
        doc: Tree = stored.doc
        status, reason, message = self._state(doc["spec"])
        known: list[Tree] = (doc.get("status") or {}).get("conditions") or []
        old = condition(doc, "Available")
        if old is not None and (old["status"], old.get("reason"), old.get("message")) == (status, reason, message):
            return
        now = self._core.clock.now()
        since = old["lastTransitionTime"] if old is not None and old["status"] == status else format_time(now)
        new_condition = {"type": "Available", "status": status, "lastTransitionTime": since}
        new_condition |= {"reason": reason, "message": message}
        new: Tree = stored.copy()
        new["status"] = {"conditions": [one for one in known if one["type"] != "Available"] + [new_condition]}
        self._core.own.update_status(API_SERVICES, stored, new)

    def _state(self, spec: Tree) -> tuple[str, str, str]:
        """Status, reason and message of the condition."""
        if self._core.catalog.has_version(spec.get("group", ""), spec["version"]):  # such as metrics.k8s.io
            return "True", "Passed", "all checks passed"
        return "False", *self._problem(spec)

    def _problem(self, spec: Tree) -> tuple[str, str]:
        """Reason and message of an APIService that is not available."""
        service: Tree = spec["service"]
        namespace, name, number = service["namespace"], service["name"], service.get("port", 443)
        where = f"service/{name} in {quote(namespace)}"
        stored = self._core.store.get(_SERVICES, namespace, name)
        if stored is None:
            return "ServiceNotFound", f"{where} is not present"
        found: Tree = stored.doc["spec"]  # type: ignore[assignment]
        if found.get("type") == "ClusterIP":
            port = next((each for each in found.get("ports") or () if each["port"] == number), None)
            if port is None:
                return "ServicePortError", f"{where} is not listening on port {number}"
            slices = list(slices_of(self._core.store, namespace, name))
            if not slices:
                return "EndpointsNotFound", f"cannot find endpointslices for {where}"
            if not any(_has_address(each, port.get("name", "")) for each in slices):
                text = f"endpointslices for {where} have no addresses with port name {quote(port.get('name', ''))}"
                return "MissingEndpoints", text
        host = found.get("externalName") or found.get("clusterIP", "")
        url = f"https://{host}:{number}/apis/{spec['group']}/{spec['version']}"
        why = f'Get "{url}": dial tcp: pods of a sandbox cannot be reached'
        return "FailedDiscoveryCheck", f"failing or missing response from {url}: {why}"


def _service(stored: Stored) -> Tree | None:
    spec: Tree = stored.doc["spec"]  # type: ignore[assignment]
    return spec.get("service")


def _by_priority(remote: list[Stored]) -> list[Stored]:
    def rank(stored: Stored) -> tuple[int, int, str]:
        spec: Tree = stored.doc["spec"]  # type: ignore[assignment]
        return -spec["groupPriorityMinimum"], -spec["versionPriority"], stored.name

    return sorted(remote, key=rank)


def _address(doc: Tree) -> tuple[str, str]:
    return doc["spec"].get("group", ""), doc["spec"]["version"]


def _has_address(piece: Tree, port: str) -> bool:
    if not any((each.get("name") or "") == port for each in piece.get("ports") or ()):
        return False
    return any(
        each.get("addresses") and (each.get("conditions") or {}).get("ready") is not False
        for each in piece.get("endpoints") or ()
    )
