"""Reads the metrics APIs that the cluster serves.

Every failure raises ``Uncomputable`` with upstream's text.

upstream: pkg/controller/podautoscaler/metrics/client.go, k8s.io/metrics pkg/client
"""

from typing import TypeVar
from urllib.parse import quote

import msgspec

from kcm_cli.api.autoscaling import MetricSpec, TargetReference
from kcm_cli.component.clock import Clock
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.proposals import is_valid, source_of
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.snapshot import Reading, Sample, Uncomputable
from kcm_cli.engine.door import Door
from kcm_cli.machinery.durations import parse_duration
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.labels import Selector, from_label_selector
from kcm_cli.machinery.meta import ObjectMeta, View
from kcm_cli.machinery.quantity import from_json
from kcm_cli.machinery.times import parse_time, span
from kcm_cli.rest.errors import UNEXPECTED_RESPONSE, ApiError
from kcm_cli.rest.mapper import Mapper, NoMatch
from kcm_cli.rest.transport import Request, RequestError, TransportError
from kcm_cli.runtime.turns import Turns

CUSTOM, EXTERNAL = "custom.metrics.k8s.io", "external.metrics.k8s.io"
_CUSTOM_VERSIONS = ("v1beta2", "v1beta1")
_CUSTOM_WINDOW_S = 60
T = TypeVar("T", bound=View)


class ContainerUsage(View, frozen=True, gc=False):
    name: str = ""
    usage: dict[str, str | int | float] = msgspec.field(default_factory=dict)


class PodMetrics(View, frozen=True, gc=False):
    """The PodMetrics of metrics.k8s.io."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    timestamp: str | None = None
    window: str = "0s"
    containers: tuple[ContainerUsage, ...] = ()


class PodMetricsList(View, frozen=True, gc=False):
    items: tuple[PodMetrics, ...] = ()


class MetricValue(View, frozen=True, gc=False):
    """A value of custom.metrics.k8s.io (``window`` in v1beta1) or external.metrics.k8s.io."""

    described_object: TargetReference = TargetReference()
    timestamp: str | None = None
    window_seconds: int | None = None
    window: int | None = None
    value: str | int | float = "0"


class MetricValueList(View, frozen=True, gc=False):
    items: tuple[MetricValue, ...] = ()


class MetricsApis:
    """A client of the three metrics APIs. upstream: MetricsClient."""

    def __init__(self, client: Door, clock: Clock, mapper: Mapper) -> None:
        self._client, self._clock = client, clock
        self._mapper = mapper

    async def read(self, namespace: str, selector: Selector, spec: MetricSpec) -> Reading:
        """Read one metric: of the pods of this selector, or of the object that the metric names."""
        if not is_valid(spec):
            return Reading()
        started = self._clock.monotonic()
        try:
            value, failure = await self._value(namespace, selector, spec), None
        except Uncomputable as error:
            value, failure = None, error
        return Reading(value, failure, self._clock.monotonic() - started)

    async def _value(
        self, namespace: str, selector: Selector, spec: MetricSpec
    ) -> dict[str, Sample] | int | tuple[int, ...]:
        source = source_of(spec)
        name, labels = source.metric.name, from_label_selector(source.metric.selector)
        match spec.type:
            case "Pods":
                return await self.pods(namespace, selector, name, labels)
            case "Object":
                return await self.object(namespace, source.described_object, name, labels)
            case "External":
                return await self.external(namespace, name, labels)
            case _:
                return await self.resource(namespace, selector, source.name, source.container)

    async def resource(self, namespace: str, selector: Selector, resource: str, container: str) -> dict[str, Sample]:
        """The usage of pods, or of one container in each, by pod name. Raises Uncomputable."""
        path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods"
        request = Request("GET", path, _query(labelSelector=str(selector)))
        try:
            found = (await self._read(request, "pods.metrics.k8s.io", PodMetricsList)).items
            if not found:
                raise Uncomputable("no metrics returned from resource metrics API")
            samples, turns = dict[str, Sample](), Turns.of_loop()
            for item in found:
                await turns.step()
                if (value := _used(item, resource, container)) is not None:
                    samples[item.metadata.name] = _sample(item, value)
        except (_Unread, FormatError) as error:
            raise Uncomputable(f"unable to fetch metrics from resource metrics API: {error}") from None
        return samples

    async def pods(
        self, namespace: str, selector: Selector, metric: str, metric_selector: Selector
    ) -> dict[str, Sample]:
        """A custom metric of pods, by pod name. Raises Uncomputable."""
        query = _query(labelSelector=str(selector), metricLabelSelector=str(metric_selector))
        try:
            version = await self._custom_version()
            path = f"namespaces/{namespace}/pods/*/{quote(metric)}"
            found = await self._custom(version, path, query, f"pods.{CUSTOM} *")
            samples, turns = dict[str, Sample](), Turns.of_loop()
            for item in found:
                await turns.step()
                samples[item.described_object.name] = _custom_sample(item)
        except (_Unread, FormatError) as error:
            raise Uncomputable(f"unable to fetch metrics from custom metrics API: {error}") from None
        if not found:
            raise Uncomputable("no metrics returned from custom metrics API")
        return samples

    async def object(self, namespace: str, target: TargetReference, metric: str, metric_selector: Selector) -> int:
        """A custom metric of one object. Raises Uncomputable."""
        query = _query(metricLabelSelector=str(metric_selector))
        try:
            version = await self._custom_version()
            path, named = await self._address(namespace, target, metric)
            found = await self._custom(version, path, query, named)
            if len(found) != 1:
                text = f"the custom metrics API server returned {len(found)} results when we asked for exactly one"
                raise _Unread(text)
            return from_json(found[0].value).milli_value()
        except (_Unread, FormatError) as error:
            raise Uncomputable(f"unable to fetch metrics from custom metrics API: {error}") from None

    async def external(self, namespace: str, metric: str, metric_selector: Selector) -> tuple[int, ...]:
        """The values of an external metric. Raises Uncomputable."""
        path = f"/apis/{EXTERNAL}/v1beta1/namespaces/{namespace}/{quote(metric)}"
        request = Request("GET", path, _query(labelSelector=str(metric_selector)))
        try:
            found = (await self._read(request, f"{metric}.{EXTERNAL}", MetricValueList)).items
            values = tuple(from_json(item.value).milli_value() for item in found)
        except (_Unread, FormatError) as error:
            raise Uncomputable(f"unable to fetch metrics from external metrics API: {error}") from None
        if not values:
            raise Uncomputable("no metrics returned from external metrics API")
        return values

    async def _address(self, namespace: str, target: TargetReference, metric: str) -> tuple[str, str]:
        """The path of an object's metric below the API's root, and the metric's name in errors."""
        group = target.api_version.rpartition("/")[0]
        if target.kind == "Namespace" and not group:  # always the autoscaler's own
            return f"namespaces/{namespace}/metrics/{quote(metric)}", f"metrics.{CUSTOM} {metric}"
        try:
            gvr = (await self._mapper.kind(group, target.kind)).gvr
        except (NoMatch, RequestError) as error:
            kind = f"{target.kind}.{group}" if group else target.kind
            raise _Unread(f"unable to map kind {kind} to resource: {error}") from None
        plural = f"{gvr.plural}.{group}" if group else gvr.plural
        path = f"namespaces/{namespace}/{plural}/{quote(target.name)}/{quote(metric)}"
        return path, f"{plural}.{CUSTOM} {target.name}"

    async def _custom_version(self) -> str:
        """The version of the custom metrics API: the first one that the server lists and this client supports."""
        try:
            groups = (await self._mapper.discovery()).groups
        except RequestError as error:
            raise _Unread(str(error)) from None
        versions = next(((group.preferred, *group.versions) for group in groups if group.name == CUSTOM), None)
        if versions is None:
            raise _Unread(f"no custom metrics API ({CUSTOM}) registered")
        version = next((version for version in versions if version in _CUSTOM_VERSIONS), None)
        if version is None:
            raise _Unread("no known available metric versions found")
        return version

    async def _custom(self, version: str, path: str, query: "_Query", named: str) -> tuple[MetricValue, ...]:
        request = Request("GET", f"/apis/{CUSTOM}/{version}/{path}", query)
        return (await self._read(request, named, MetricValueList)).items

    async def _read(self, request: Request, named: str, view: type[T]) -> T:
        try:
            return await self._client.ask(request, view)
        except ApiError as error:
            raise _Unread(refusal(error, request.path, named)) from None
        except TransportError as error:
            raise _Unread(str(error)) from None


class _Unread(Exception):
    """The API returned no metrics; the text says why."""


_Query = tuple[tuple[str, str], ...]


def refusal(error: ApiError, path: str, named: str) -> str:
    """The text of an error response. Without a message of the server, the request is named by its resource."""
    if not error.has_cause(UNEXPECTED_RESPONSE):
        return error.message
    return error.message.replace(f"(get {path})", f"(get {named})")


def _query(**parameters: str) -> _Query:
    return tuple((name, value) for name, value in parameters.items() if value)


def _used(item: PodMetrics, resource: str, container: str) -> int | None:
    """The usage in thousandths; None if a container has no value, or the named one does not exist."""
    wanted = [each for each in item.containers if not container or each.name == container]
    values = [each.usage.get(resource) for each in wanted]
    if not values or any(value is None for value in values):
        return None
    return sum(from_json(value).milli_value() for value in values)


def _sample(item: PodMetrics, value: int) -> Sample:
    at = parse_time(item.timestamp) if item.timestamp else None
    return Sample(value, at, span(parse_duration(item.window)))


def _custom_sample(item: MetricValue) -> Sample:
    seconds = item.window_seconds if item.window_seconds is not None else item.window
    window = span(_CUSTOM_WINDOW_S if seconds is None else seconds)
    return Sample(from_json(item.value).milli_value(), parse_time(item.timestamp) if item.timestamp else None, window)
