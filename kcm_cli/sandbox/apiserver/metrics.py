"""/metrics of the API server (requests, watches, stored objects, seats, the process) and /metrics/slis.

upstream: apiserver pkg/endpoints/metrics/metrics.go, pkg/storage/etcd3/metrics, pkg/util/flowcontrol (v1.36)
"""

from collections.abc import Mapping

from kcm_cli.api.resource import GVR
from kcm_cli.component.health import SliMetrics
from kcm_cli.component.metrics import Counter, Histogram, Registry, Stability
from kcm_cli.component.metrics.families import Families, family
from kcm_cli.component.metrics.process import ProcessMetrics
from kcm_cli.rest.transport import Request, Response, Stream
from kcm_cli.sandbox.apiserver.controllers.flow_schemas import PRIORITY_LEVELS
from kcm_cli.sandbox.apiserver.discovery.health import CHECKS
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import RequestInfo, Tree

_HEADERS = {"content-type": "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"}
_WHERE = ("group", "version", "resource", "subresource", "scope", "component")
_DURATION_BUCKETS = (
    *(0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0),
    *(4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0),
)
_VERBS: Mapping[str, str] = {
    **{"get": "GET", "list": "LIST", "watch": "WATCH", "create": "POST", "update": "PUT", "patch": "PATCH"},
    **{"delete": "DELETE", "deletecollection": "DELETECOLLECTION"},
}
_REPORTED = frozenset(
    ("APPLY", "CONNECT", "CREATE", "DELETE", "DELETECOLLECTION", "GET", "LIST", "PATCH", "POST", "PROXY", "PUT")
    + ("UPDATE", "WATCH", "WATCHLIST")
)
"""Methods with series of their own. Clients may send any word."""
SEATS = 600
"""Concurrent requests of a kube-apiserver with default flags, which the priority levels share."""
_Place = tuple[str, str, str, str, str, str, str]


class ServerMetrics:
    """Counts requests. The other values are read from the store at each scrape."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.registry = Registry()
        stable = Stability.STABLE
        self._requests = self.registry.counter(
            "apiserver_request_total",
            "Requests by verb, dry run, resource, scope and response code.",
            labels=("verb", "dry_run", *_WHERE, "code"),
            stability=stable,
        )
        self._durations = self.registry.histogram(
            "apiserver_request_duration_seconds",
            "Latency of responses by verb, dry run, resource and scope.",
            _DURATION_BUCKETS,
            labels=("verb", "dry_run", *_WHERE),
            stability=stable,
        )
        self._slis = Registry(about_itself=False)
        self._checks = SliMetrics(self._slis)
        self._known: dict[tuple[_Place, int], tuple[Counter, Histogram]] = {}
        self.registry.add(_Stored(store))
        self.registry.add(ProcessMetrics())

    def answer(self, request: Request) -> Response | None:
        """The response to /metrics or /metrics/slis (health check results, reset by DELETE); None for other paths."""
        if request.path == "/metrics":
            return Response(200, _HEADERS, self.registry.expose())
        if request.path != "/metrics/slis":
            return None
        if request.method == "DELETE":
            self._checks.reset()
            return Response(200, {"content-type": "text/plain; charset=utf-8"}, b"metrics reset\n")
        return Response(200, _HEADERS, self._slis.expose())

    def observe_checks(self, request: Request) -> None:
        """Count the checks of a requested health endpoint. Ignores other paths."""
        probe = request.path.removeprefix("/")
        excluded = {value for key, value in request.query if key == "exclude"}
        for check in CHECKS.get(probe, ()):
            if check not in excluded:
                self._checks.observe(check, probe, healthy=True)

    def observe(self, request: Request, info: RequestInfo, answer: Response | Stream, duration_s: float) -> None:
        """Count a routed request at its response (a watch when it begins)."""
        scope = "resource" if info.name else "namespace" if info.namespace else "cluster"
        if not info.is_resource:
            scope = ""
        dry_run = "All" if request.query and any(key == "dryRun" for key, _ in request.query) else ""
        verb = _VERBS.get(info.verb) or _reported(request.method)
        place = (verb, info.group, info.version, info.plural, info.subresource, scope, dry_run)
        found = self._known.get((place, answer.status))
        if found is None:
            where = (info.group, info.version, info.plural, info.subresource, scope, "apiserver")
            counter = self._requests.labels(verb, dry_run, *where, str(answer.status))
            found = self._known[place, answer.status] = counter, self._durations.labels(verb, dry_run, *where)
        found[0].inc()
        found[1].observe(duration_s)


def _reported(method: str) -> str:
    """The verb of a request without a resource."""
    if method == "HEAD":
        return "GET"
    return method if method in _REPORTED else "other"


class _Stored:
    """A collector of the numbers of objects and watches per resource."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self) -> Families:
        """The metric families with current values; those without any are left out."""
        name = "apiserver_resource_objects"
        objects = [
            (name, {"group": gvr.group, "resource": gvr.plural}, count) for gvr, count in self._store.sizes().items()
        ]
        if objects:
            yield family(name, "[STABLE] How many objects are stored, by resource.", "gauge", objects)
        name = "apiserver_longrunning_requests"
        watches = [(name, _watch_labels(gvr), count) for gvr, count in self._store.watchers().items()]
        if watches:
            yield family(name, "[STABLE] Open watches, by resource.", "gauge", watches)
        name = "apiserver_flowcontrol_nominal_limit_seats"
        shares = {level.name: _shares(level.doc) for level in self._store.list(PRIORITY_LEVELS)}
        total = max(sum(shares.values()), 1)
        seats = [(name, {"priority_level": level}, -(-SEATS * share // total)) for level, share in shares.items()]
        if seats:
            yield family(name, "[BETA] Seats of each priority level. Nothing is throttled.", "gauge", seats)


def _watch_labels(gvr: GVR) -> dict[str, str]:
    labels = {"verb": "WATCH", "group": gvr.group, "version": gvr.version, "resource": gvr.plural}
    return {**labels, "subresource": "", "scope": "", "component": "apiserver"}


def _shares(level: Tree) -> int:
    spec = level["spec"]
    configuration: Tree = spec.get("limited") or spec.get("exempt") or {}
    return int(configuration.get("nominalConcurrencyShares") or 0)
