"""The metrics APIs of the twin. The load is what autoscalers last saw, or what a change sets.

The status of an autoscaler has values per pod. Their sum over its pods is kept, and divided by the present number of
pods: twice the pods have half the load each. Metrics that do not belong to pods (external metrics, metrics of objects)
stay constant.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.component.clock import Clock
from kcm_cli.machinery import codec, labels, quantity
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_list, nested_map, nested_str
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.meta import Object, controller_of
from kcm_cli.machinery.times import format_time
from kcm_cli.plan.changes import Metric
from kcm_cli.rest.transport import Request, Response
from kcm_cli.sandbox.apiserver.errors import not_found
from kcm_cli.sandbox.apiserver.registry.catalog import Group, Served
from kcm_cli.sandbox.apiserver.store import Event, Store
from kcm_cli.sandbox.apiserver.types import RequestInfo
from kcm_cli.sandbox.requests import of_pod
from kcm_cli.sandbox.views import PODS, SimulatedPod

AUTOSCALERS = GVR("autoscaling", "v2", "horizontalpodautoscalers")
_SETS = GVR("apps", "v1", "replicasets")
RESOURCE, CUSTOM, EXTERNAL = "metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"
_PREFIXES = tuple(f"/apis/{group}/" for group in (RESOURCE, CUSTOM, EXTERNAL))
_JSON = {"content-type": "application/json"}
_MOST_REPLICAS = 2**31 - 1


class _Load(msgspec.Struct, frozen=True):
    """The value of one metric of one autoscaler. total: the sum over its pods, in thousandths; None if it is not a
    sum."""

    type: str
    name: str
    container: str
    total: float | None
    value: float


class Discoverable:
    """A metrics API for discovery. Its requests are answered before they reach the server."""

    resources: tuple[Served, ...] = ()

    def __init__(self, name: str, version: str) -> None:
        self.group = Group(name, (version,), version)

    async def answer(self, info: RequestInfo, query: Mapping[str, str], accept: str) -> Response:
        """Raises NotFound, since controllers do not request it."""
        raise not_found(info.group, info.plural, info.name)


GROUPS = ((RESOURCE, "v1beta1"), (CUSTOM, "v1beta2"), (EXTERNAL, "v1beta1"))


class FrozenMetrics:
    """Answers requests to the metrics APIs from a twin's store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._loads: dict[tuple[str, str, str], list[_Load]] = {}
        self._running: dict[str, dict[tuple[str, str], list[SimulatedPod]]] = {}
        """By namespace, the running pods of each workload. All autoscalers of a namespace ask for them at a time."""
        for gvr in (PODS.gvr, _SETS):
            store.subscribe(gvr, self._changed)
        for autoscaler in self._docs(AUTOSCALERS, ""):
            target = _target(autoscaler)
            if target is not None:
                self._loads[target] = list(_loads(autoscaler))

    def _changed(self, event: Event) -> None:
        self._running.pop(event.stored.namespace, None)

    @property
    def groups(self) -> Iterator[tuple[str, str]]:
        """The metrics APIs that have values."""
        yield GROUPS[0]
        types = {load.type for loads in self._loads.values() for load in loads}
        if types & {"Pods", "Object"}:
            yield GROUPS[1]
        if "External" in types:
            yield GROUPS[2]

    def give(self, metric: Metric) -> str:
        """Set an autoscaler's metric. Returns the error as text, or an empty string."""
        key = metric.namespace, metric.kind, metric.name
        autoscaler = next((a for a in self._docs(AUTOSCALERS, metric.namespace) if _target(a) == key), None)
        if key not in self._loads or autoscaler is None:
            return f"--metric: no HorizontalPodAutoscaler scales {metric.kind} {metric.namespace}/{metric.name}"
        pods = self._pods(*key)
        type_, container = _type(autoscaler, metric.metric)
        if not type_:
            return f"--metric: {metric.kind} {metric.namespace}/{metric.name} is not scaled by {metric.metric}"
        if metric.percent is not None:
            asked = sum(of_pod(pod).get(metric.metric, 0) * _thousandths(metric.metric) for pod in pods)
            if not asked:
                return (
                    f"--metric: the pods of {metric.kind} {metric.namespace}/{metric.name} request no {metric.metric}"
                )
            total = asked * metric.percent / 100
            value = total / max(1, len(pods))
        else:
            value = metric.value
            total = value * max(1, len(pods))
        kept = [load for load in self._loads[key] if load.name != metric.metric]
        summed = total if type_ in ("Resource", "ContainerResource", "Pods") else None
        self._loads[key] = [*kept, _Load(type_, metric.metric, container, summed, value)]
        return ""

    def answer(self, request: Request) -> Response | None:
        """The answer to a request about metrics; None for other requests."""
        if not request.path.startswith(_PREFIXES):
            return None
        parts = request.path.split("/")[2:]
        group, rest, query = parts[0], parts[2:], dict(request.query)
        namespace = rest[1] if rest[:1] == ["namespaces"] and len(rest) > 1 else ""
        selector = labels.parse(query.get("labelSelector", ""))
        items: list[Doc]
        if group == RESOURCE:
            items = list(self._resource(namespace, selector))
        elif group == EXTERNAL:
            items = list(self._values(namespace, "External", rest[-1]))
        elif rest[2:4] == ["pods", "*"]:
            items = list(self._of_pods(namespace, selector, rest[-1]))
        else:
            items = list(self._values(namespace, "Object", rest[-1]))
        if not items and group != RESOURCE:
            text = f"the server could not find the metric {rest[-1]}"
            status: Doc = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
            return Response(404, _JSON, codec.encode({**status, "message": text}))
        return Response(200, _JSON, codec.encode({"metadata": {}, "items": items}))

    # -- items

    def _resource(self, namespace: str, selector: labels.Selector) -> Iterator[Doc]:
        for pod, loads, count in self._loaded(namespace, selector):
            usage: dict[str, dict[str, object]] = {container.name: {} for container in pod.spec.containers}
            for load in loads:
                if load.type in ("Resource", "ContainerResource") and load.total is not None:
                    share = load.total / count if load.name == "cpu" else load.value
                    names = [load.container] if load.container in usage else list(usage)
                    for name in names:
                        usage[name][load.name] = f"{round(share * 1e6 / len(names))}n"
            if any(usage.values()):
                metadata: Doc = {"name": pod.name, "namespace": namespace, "labels": dict(pod.labels)}
                containers = [{"name": name, "usage": found} for name, found in usage.items()]
                yield {"metadata": metadata, "timestamp": self._now(), "window": "10s", "containers": containers}

    def _of_pods(self, namespace: str, selector: labels.Selector, metric: str) -> Iterator[Doc]:
        for pod, loads, count in self._loaded(namespace, selector):
            for load in loads:
                if load.type == "Pods" and load.name == metric and load.total is not None:
                    about: Doc = {"kind": "Pod", "namespace": namespace, "name": pod.name, "apiVersion": "v1"}
                    value = f"{round(load.total / count)}m"
                    yield {"describedObject": about, "timestamp": self._now(), "windowSeconds": 60, "value": value}

    def _values(self, namespace: str, type_: str, metric: str) -> Iterator[Doc]:
        for (space, _, _), loads in self._loads.items():
            for load in loads:
                if space == namespace and load.type == type_ and load.name == metric:
                    yield {"metricName": metric, "timestamp": self._now(), "value": f"{round(load.value)}m"}
                    return

    def _loaded(self, namespace: str, selector: labels.Selector) -> Iterator[tuple[SimulatedPod, list[_Load], int]]:
        """The pods with load, their loads, and the number of pods that share them."""
        for key, loads in self._loads.items():
            if key[0] == namespace and loads:
                pods = self._pods(*key)
                for pod in pods:
                    if selector.matches(pod.labels):
                        yield pod, loads, len(pods)

    def _pods(self, namespace: str, kind: str, name: str) -> Sequence[SimulatedPod]:
        """The running pods of a workload."""
        found = self._running.get(namespace)
        if found is None:
            found = self._running[namespace] = {}
            for stored in self._store.list(PODS.gvr, namespace):
                pod = codec.decode_or_none(stored.data, SimulatedPod)
                if pod is not None and pod.status.phase == "Running" and not pod.deleting:
                    for above in self._above(pod):
                        found.setdefault(above, []).append(pod)
        return found.get((kind, name), ())

    def _above(self, pod: SimulatedPod) -> Iterator[tuple[str, str]]:
        ref = controller_of(pod)
        if ref is None:
            return
        yield ref.kind, ref.name
        stored = self._store.get(_SETS, pod.namespace, ref.name) if ref.kind == "ReplicaSet" else None
        owned = codec.decode_or_none(stored.data, Object) if stored is not None else None
        above = controller_of(owned) if owned is not None else None
        if above is not None:
            yield above.kind, above.name

    def _docs(self, gvr: GVR, namespace: str) -> Iterator[Doc]:
        for stored in self._store.list(gvr, namespace):
            yield stored.doc

    def _now(self) -> str:
        return format_time(self._clock.now())


def _target(autoscaler: Doc) -> tuple[str, str, str] | None:
    kind, name = (nested_str(autoscaler, "spec", "scaleTargetRef", field) for field in ("kind", "name"))
    return (nested_str(autoscaler, "metadata", "namespace"), kind, name) if kind and name else None


def _loads(autoscaler: Doc) -> Iterator[_Load]:
    status = nested_map(autoscaler, "status")
    count = status.get("currentReplicas")
    replicas = min(count, _MOST_REPLICAS) if isinstance(count, int) and count > 0 else 1
    for metric in nested_list(status, "currentMetrics"):
        type_, found = _metric(metric)
        current = nested_map(found, "current")
        average, value = _milli(current.get("averageValue")), _milli(current.get("value"))
        if type_ in ("Resource", "ContainerResource", "Pods") and average is not None:
            yield _Load(type_, _name(found), nested_str(found, "container"), average * replicas, average)
        elif type_ in ("Object", "External") and (average is not None or value is not None):
            whole = value if value is not None else (average or 0.0) * replicas
            yield _Load(type_, _name(found), "", None, whole)


def _type(autoscaler: Doc, metric: str) -> tuple[str, str]:
    """(the type of an autoscaler's metric, its container)."""
    for one in nested_list(autoscaler, "spec", "metrics"):
        type_, found = _metric(one)
        if metric == _name(found):
            return type_, nested_str(found, "container")
    return "", ""


def _metric(metric: object) -> tuple[str, Doc]:
    """(the type of a metric, in a spec or a status, its part for this type)."""
    type_ = nested_str(metric, "type")
    return type_, nested_map(metric, f"{type_[:1].lower()}{type_[1:]}")


def _name(found: Doc) -> str:
    return nested_str(found, "name") or nested_str(found, "metric", "name")


def _thousandths(resource: str) -> int:
    """The factor from the scheduler's amounts to thousandths."""
    return 1 if resource == "cpu" else 1000


def _milli(text: object) -> float | None:
    try:
        return float(quantity.from_json(text).milli_value()) if isinstance(text, str | int | float) else None
    except (FormatError, OverflowError):
        return None
