"""metrics.k8s.io/v1beta1: the metrics of simulated nodes and pods.

They are computed from the store on each request, in turns, so that an annotation takes effect at once.

upstream: kubernetes-sigs/metrics-server pkg/api
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import TypeVar

from kcm_cli.api.resource import GVR
from kcm_cli.component.clock import Clock
from kcm_cli.machinery import codec, fields, labels
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.fields import FieldSelector
from kcm_cli.machinery.meta import PartialObject, controller_of, object_key
from kcm_cli.machinery.times import format_time
from kcm_cli.rest.transport import Response
from kcm_cli.runtime.turns import Turns
from kcm_cli.sandbox.apiserver.errors import bad_request, method_not_allowed, not_found
from kcm_cli.sandbox.apiserver.registry import negotiation
from kcm_cli.sandbox.apiserver.registry.catalog import Group, Served
from kcm_cli.sandbox.apiserver.registry.responses import doc_response
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import ApiError, RequestInfo, ResourceInfo
from kcm_cli.sandbox.nodes.shape import SIMULATED
from kcm_cli.sandbox.nodes.usage import IDLE, Holder, Usage, Usages, written
from kcm_cli.sandbox.requests import CPU, MEMORY
from kcm_cli.sandbox.usage.tables import table
from kcm_cli.sandbox.views import NODES, PODS, SimulatedNode, SimulatedPod

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
API_VERSION = f"{GROUP}/{VERSION}"
WINDOW = "10s"
SYSTEM: Mapping[str, int] = {CPU: 50_000_000, MEMORY: 256 << 20}
"""The usage of a node besides its pods, in nano-cores and bytes."""
_VERBS = frozenset(("get", "list"))
_CONTROLLERS = {
    ("apps/v1", "ReplicaSet"): GVR("apps", "v1", "replicasets"),
    ("apps/v1", "Deployment"): GVR("apps", "v1", "deployments"),
    ("apps/v1", "StatefulSet"): GVR("apps", "v1", "statefulsets"),
    ("apps/v1", "DaemonSet"): GVR("apps", "v1", "daemonsets"),
    ("batch/v1", "Job"): GVR("batch", "v1", "jobs"),
    ("v1", "ReplicationController"): GVR("", "v1", "replicationcontrollers"),
}
NODE_METRICS = ResourceInfo(GVR(GROUP, VERSION, "nodes"), "NodeMetrics", "", False, _VERBS)
POD_METRICS = ResourceInfo(GVR(GROUP, VERSION, "pods"), "PodMetrics", "", True, _VERBS)
T = TypeVar("T")


class MetricsApi:
    """Serves metrics.k8s.io."""

    group = Group(GROUP, (VERSION,), VERSION)
    resources = tuple(Served(info, info.gvr, list_kind=f"{info.kind}List") for info in (NODE_METRICS, POD_METRICS))

    def __init__(
        self, store: Store, clock: Clock, annotations: Callable[[SimulatedPod], Mapping[str, str]] | None = None
    ) -> None:
        """annotations: the effective annotations of a pod; its own by default."""
        self._store = store
        self._clock = clock
        self._annotations = annotations or (lambda pod: pod.annotations)

    async def answer(self, info: RequestInfo, query: Mapping[str, str], accept: str) -> Response:
        """The response to a request. Raises ApiError: 400, 404, 405, 406."""
        if info.verb not in _VERBS:
            raise method_not_allowed()
        labelled, named_so = _selector(query.get("labelSelector", "")), _fields(query.get("fieldSelector", ""))
        nodes = info.plural == "nodes"
        found = self._nodes() if nodes else self._pods(info.namespace)
        resource = NODE_METRICS if nodes else POD_METRICS
        if info.verb == "get":
            docs = [doc async for doc, _ in found if _named(doc)["metadata.name"] == info.name]
            if not docs:
                raise self._not_found(info, resource)
        else:
            docs = [doc async for doc, own in found if labelled.matches(own) and named_so.matches(_named(doc))]
        form = negotiation.wanted(accept)
        if form.transform == "Table":
            named: list[Doc] = [{"kind": resource.kind, "apiVersion": API_VERSION, **doc} for doc in docs]
            return doc_response(200, table(named, self._clock.now(), form.version))
        if info.verb == "get":
            return doc_response(200, {"kind": resource.kind, "apiVersion": API_VERSION, **docs[0]})
        listed: Doc = {"kind": f"{resource.kind}List", "apiVersion": API_VERSION, "metadata": {}, "items": list(docs)}
        return doc_response(200, listed)

    def _not_found(self, info: RequestInfo, resource: ResourceInfo) -> ApiError:
        """The 404 for an object that does not exist, or that exists without metrics."""
        measured = NODES.gvr if resource is NODE_METRICS else PODS.gvr
        if self._store.get(measured, info.namespace, info.name) is None:
            return not_found("", info.plural, info.name)
        name = object_key(info.namespace, info.name)
        return not_found(GROUP, resource.kind.lower(), name)

    async def _pods(self, namespace: str) -> AsyncIterator[tuple[Doc, Mapping[str, str]]]:
        async for usage in self._usages(namespace):
            pod = usage.pod
            metadata = self._metadata(pod.name, pod.labels)
            metadata["namespace"] = pod.namespace
            containers = [{"name": name, "usage": written(figures)} for name, figures in usage.containers.items()]
            yield {"metadata": metadata, **self._when(), "containers": containers}, pod.labels

    async def _nodes(self) -> AsyncIterator[tuple[Doc, Mapping[str, str]]]:
        used: dict[str, dict[str, int]] = {}
        async for usage in self._usages(""):
            sums = used.setdefault(usage.pod.spec.node_name, {CPU: 0, MEMORY: 0})
            for name in sums:
                sums[name] += usage.total(name)
        async for node in self._read(NODES.gvr, "", SimulatedNode):
            if node.annotations.get(SIMULATED) != "true":
                continue
            sums = used.get(node.name, {})
            figures = {name: SYSTEM[name] + sums.get(name, 0) for name in IDLE}
            doc: Doc = {"metadata": self._metadata(node.name, node.labels), **self._when(), "usage": written(figures)}
            yield doc, node.labels

    async def _usages(self, namespace: str) -> AsyncIterator[Usage]:
        known: dict[str, tuple[Holder, ...]] = {}
        found, turns = Usages(), Turns.of_loop()
        async for pod in self._read(PODS.gvr, namespace, SimulatedPod):
            found.add(pod, tuple(self._holders(pod, known)))
        for usage in found:
            yield usage
            await turns.step()

    async def _read(self, gvr: GVR, namespace: str, type_: type[T]) -> AsyncIterator[T]:
        """The objects of a kind, but for those that cannot be decoded: they have no metrics."""
        turns = Turns.of_loop()
        turns.begin()
        for stored in self._store.list(gvr, namespace):
            obj = codec.decode_or_none(stored.data, type_)
            if obj is not None:
                yield obj
            await turns.step()

    def _holders(self, pod: SimulatedPod, known: dict[str, tuple[Holder, ...]]) -> Iterator[Holder]:
        """The objects whose annotations apply to a pod, in order of precedence; last the rules, without totals."""
        yield Holder(pod.uid, pod.annotations)
        yield from self._above(pod, known)
        ruled = self._annotations(pod)
        if ruled is not pod.annotations:
            yield Holder(pod.uid, {key: value for key, value in ruled.items() if not key.endswith("-total")})

    def _above(self, pod: SimulatedPod, known: dict[str, tuple[Holder, ...]]) -> tuple[Holder, ...]:
        """The controller of a pod, and the controller of that."""
        owner = controller_of(pod)
        if owner is None:
            return ()
        if owner.uid not in known:
            known[owner.uid] = tuple(self._chain(pod))
        return known[owner.uid]

    def _chain(self, obj: SimulatedPod | PartialObject) -> Iterator[Holder]:
        for _ in range(2):
            owner = controller_of(obj)
            gvr = _CONTROLLERS.get((owner.api_version, owner.kind)) if owner is not None else None
            stored = self._store.get(gvr, obj.namespace, owner.name) if gvr is not None and owner is not None else None
            if stored is None:
                return
            found = codec.decode_or_none(stored.data, PartialObject)
            if found is None:
                return
            obj = found
            yield Holder(obj.uid, obj.annotations)

    def _metadata(self, name: str, own: Mapping[str, str]) -> Doc:
        metadata: Doc = {"name": name, "creationTimestamp": format_time(self._clock.now())}
        if own:
            metadata["labels"] = dict(own)
        return metadata

    def _when(self) -> Doc:
        return {"timestamp": format_time(self._clock.now()), "window": WINDOW}


def _selector(text: str) -> labels.Selector:
    try:
        return labels.parse(text)
    except FormatError as error:
        raise bad_request(str(error)) from error


def _fields(text: str) -> FieldSelector:
    try:
        selector = fields.parse(text)
    except FormatError as error:
        raise bad_request(str(error)) from error
    return selector


def _named(doc: Doc) -> dict[str, str]:
    """The selectable fields."""
    metadata = doc["metadata"]
    assert isinstance(metadata, dict)
    return {f"metadata.{field}": str(metadata.get(field, "")) for field in ("name", "namespace")}
