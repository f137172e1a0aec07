"""Reads and writes the scale subresource of a target of any kind.

upstream: pkg/controller/podautoscaler/horizontal.go#scaleForResourceMappings
"""

import msgspec
from msgspec.structs import replace

from kcm_cli.api.autoscaling import Scale, TargetReference
from kcm_cli.api.resource import Resource
from kcm_cli.component.clock import Clock
from kcm_cli.controllers.horizontal_pod_autoscaler.metrics_apis import refusal
from kcm_cli.engine.door import Door
from kcm_cli.engine.own_writes import may_have_taken_effect
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_map, nested_str
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.labels import LabelSelector, from_label_selector, to_label_selector
from kcm_cli.rest.errors import ApiError, Conflict, NotFound
from kcm_cli.rest.mapper import Mapper, NoMatch
from kcm_cli.rest.transport import RequestError, TransportError

_ATTEMPTS = 5
_PAUSE_S = 0.01


class ScaleFailed(Exception):
    """The scale cannot be read or written. ``by_spec``: because of the autoscaler's spec. ``is_gone``: there is no such
    target."""

    def __init__(self, text: str, *, by_spec: bool = False, is_gone: bool = False) -> None:
        super().__init__(text)
        self.by_spec = by_spec
        self.is_gone = is_gone


class TargetScale(msgspec.Struct, frozen=True):
    """A scale and the resource that it was read from."""

    resource: Resource[Scale]
    namespace: str
    name: str
    doc: Doc
    scale: Scale


class Targets:
    """Reads and writes scales. Cluster-scoped targets are looked up in the namespace, and so not found."""

    def __init__(self, client: Door, clock: Clock, mapper: Mapper) -> None:
        self._client = client
        self._clock = clock
        self._mapper = mapper

    async def read(self, namespace: str, ref: TargetReference) -> TargetScale:
        """The scale of a target. Raises ScaleFailed."""
        if ref.api_version.count("/") > 1:
            raise ScaleFailed(f"unexpected GroupVersion string: {ref.api_version}", by_spec=True)
        group = ref.api_version.rpartition("/")[0]
        try:
            served = await self._mapper.kind(group, ref.kind)
            resource: Resource[Scale] = Resource(served.gvr, "Scale", Scale)
            doc = await self._get(resource, namespace, ref.name)
            return TargetScale(resource, namespace, ref.name, doc, _readable(codec.convert(doc, Scale)))
        except ApiError as error:
            raise ScaleFailed(str(error)) from None
        except (NoMatch, TransportError, ValueError) as error:
            raise ScaleFailed(str(error)) from None

    async def write(self, found: TargetScale, replicas: int, *, reason: str = "") -> None:
        """Set the number of replicas, with retries on conflict. If the answer is lost, the scale says whether it was
        set. Raises ScaleFailed, also where another object has the name by then: the number was not meant for that."""
        doc = found.doc
        for attempt in range(_ATTEMPTS):
            wanted = {**doc, "spec": {**nested_map(doc, "spec"), "replicas": replicas}}
            try:
                await self._client.update(
                    found.resource, found.namespace, found.name, wanted, subresource="scale", reason=reason
                )
            except Conflict as error:
                refused = ScaleFailed(str(error))
            except RequestError as error:
                if may_have_taken_effect(error) and await self._has(found, replicas):
                    return
                raise ScaleFailed(str(error)) from None
            else:
                return
            if attempt == _ATTEMPTS - 1:
                raise refused
            await self._clock.sleep(_PAUSE_S)
            doc = await self._again(found, doc)
            if _uid(doc) != _uid(found.doc):
                raise refused

    async def _has(self, found: TargetScale, replicas: int) -> bool:
        """Whether the target has this size at present; False if that is not known."""
        try:
            doc = await self._get(found.resource, found.namespace, found.name)
        except ScaleFailed:
            return False
        return _uid(doc) == _uid(found.doc) and (nested_map(doc, "spec").get("replicas") or 0) == replicas

    async def _again(self, found: TargetScale, doc: Doc) -> Doc:
        try:
            return await self._get(found.resource, found.namespace, found.name)
        except ScaleFailed:
            return doc  # the write that follows says what is wrong

    async def _get(self, resource: Resource[Scale], namespace: str, name: str) -> Doc:
        try:
            return await self._client.get_doc(resource, namespace, name, subresource="scale")
        except ApiError as error:
            path = resource.gvr.path(namespace, name, "scale")
            is_gone = isinstance(error, NotFound)
            raise ScaleFailed(refusal(error, path, f"{resource.gvr.plural} {name}"), is_gone=is_gone) from None
        except TransportError as error:
            raise ScaleFailed(str(error)) from None


def _uid(doc: Doc) -> str:
    return nested_str(doc, "metadata", "uid")


def _readable(scale: Scale) -> Scale:
    """The scale, with ``target_selector`` as the API's form of its selector prints. Raises ScaleFailed.

    upstream: client-go/scale/client.go#convertToScale
    """
    status = scale.status
    found = status.target_selector or status.selector
    if not found:
        return scale
    try:
        selector = from_label_selector(to_label_selector(found) if isinstance(found, str) else LabelSelector(found))
    except FormatError as error:
        text = "received an object from a /scale endpoint which was not convertible to autoscaling Scale"
        raise ScaleFailed(f"{text}: failed to parse target selector: {error}") from None
    return replace(scale, status=replace(status, target_selector=str(selector)))
