"""Discovery: asks an API server which resources it serves.

That takes two requests with aggregated discovery, otherwise one per group version. Guarantees: a group version whose
discovery fails (an aggregated API server is down, or answers nonsense) is named in ``Discovery.failed`` and does not
hide the others, so that nothing is deleted because of it.

upstream: staging/src/k8s.io/client-go/discovery
"""

import asyncio
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import View
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.remembered import remembered_documents
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import NotFound, from_response
from kcm_cli.rest.reading import read
from kcm_cli.rest.served_resources import ANY, Discovery, Group, ServedResource, Subresource
from kcm_cli.rest.transport import Request, RequestError, Response, Unreadable

T = TypeVar("T")

_AGGREGATED = "as=APIGroupDiscoveryList"
_ACCEPT = ",".join(
    (
        f"application/json;g=apidiscovery.k8s.io;v=v2;{_AGGREGATED}",
        f"application/json;g=apidiscovery.k8s.io;v=v2beta1;{_AGGREGATED}",
        "application/json",
    )
)
_STALE = "Stale"
_CORE = "/api"


class _Kind(View, frozen=True, gc=False):
    group: str = ""
    version: str = ""
    kind: str = ""


class _Sub(View, frozen=True, gc=False):
    subresource: str = ""
    response_kind: _Kind | None = None
    verbs: tuple[str, ...] = ()


class _Resource(View, frozen=True, gc=False):
    resource: str = ""
    response_kind: _Kind | None = None
    scope: str = ""
    singular_resource: str = ""
    verbs: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[_Sub, ...] = ()


class _Version(View, frozen=True, gc=False):
    version: str = ""
    freshness: str = ""
    resources: msgspec.Raw = msgspec.Raw(b"[]")
    """Decoded apart: one group that makes no sense must not hide the others."""


class _Meta(View, frozen=True, gc=False):
    name: str = ""


class _Group(View, frozen=True, gc=False):
    metadata: _Meta = _Meta()
    versions: tuple[msgspec.Raw, ...] = ()


class _Groups(View, frozen=True, gc=False):
    """APIGroupDiscoveryList."""

    kind: str = ""
    items: tuple[msgspec.Raw, ...] = ()


class _GroupVersion(View, frozen=True, gc=False):
    group_version: str = ""
    version: str = ""


class _PlainGroup(View, frozen=True, gc=False):
    name: str = ""
    versions: tuple[_GroupVersion, ...] = ()
    preferred_version: _GroupVersion = _GroupVersion()


class _PlainGroups(View, frozen=True, gc=False):
    """APIGroupList, and APIVersions of ``/api``."""

    kind: str = ""
    groups: tuple[msgspec.Raw, ...] = ()
    versions: tuple[str, ...] = ()


class _PlainResource(View, frozen=True, gc=False):
    name: str = ""
    singular_name: str = ""
    namespaced: bool = False
    group: str = ""
    version: str = ""
    kind: str = ""
    verbs: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


class _PlainResources(View, frozen=True, gc=False):
    """APIResourceList."""

    kind: str = ""
    resources: tuple[_PlainResource, ...] = ()


class _Found:
    """The result so far."""

    def __init__(self) -> None:
        self.groups: list[Group] = []
        self.resources: dict[tuple[str, str], tuple[ServedResource, ...]] = {}
        self.failed: dict[str, str] = {}

    def value(self) -> Discovery:
        return Discovery(tuple(self.groups), self.resources, self.failed)


async def discover(client: Client) -> Discovery:
    """Ask the server for all that it serves. Raises RequestError where /api or /apis fails or cannot be read."""
    found = _Found()
    for answer in await asyncio.gather(_fetch(client, _CORE), _fetch(client, "/apis")):
        if answer is None:
            continue
        if _AGGREGATED in answer.headers.get("content-type", ""):
            _add(found, _aggregated(answer.body))
        else:
            await _add_plain(client, found, read(answer.body, _PlainGroups))
    return found.value()


async def _fetch(client: Client, path: str) -> Response | None:
    """A root of discovery; None where there is no core group, as on an aggregated API server.

    Raises RequestError for every other refusal. A caller that mistook it for an empty server would finalize namespaces
    that still have content.
    """
    request = Request("GET", path, (), {"accept": _ACCEPT})
    response = await client.answer(request)
    if response.status == 200:
        return response
    error = from_response(response, request)
    if path == _CORE and isinstance(error, NotFound):
        return None
    raise error


@remembered_documents(1 << 20)
def _aggregated(body: bytes) -> Discovery:
    """An aggregated document, which mostly is the same for days: nothing but the body decides what it says."""
    document, found = read(body, _Groups), _Found()
    _expect(document.kind, "APIGroupDiscoveryList")
    for raw in document.items:
        group = _part(found, raw, _Group, ANY)
        if group is not None:
            _add_group(found, group)
    return found.value()


def _add(found: _Found, part: Discovery) -> None:
    found.groups.extend(part.groups)
    found.resources.update(part.resources)
    found.failed.update(part.failed)


def _add_group(found: _Found, group: _Group) -> None:
    name = group.metadata.name
    fresh: list[str] = []
    for raw in group.versions:
        version = _part(found, raw, _Version, f"{name}/{ANY}")
        if version is None or not version.version:
            continue
        gv = GVR(name, version.version, "").group_version
        if version.freshness == _STALE:
            found.failed[gv] = f"stale GroupVersion discovery: {gv}"
            continue
        fresh.append(version.version)
        try:
            resources = codec.decode(version.resources, tuple[_Resource, ...])
        except codec.DecodeError as error:
            found.failed[gv] = f"the resources of {gv} cannot be read: {error}"
            continue
        served = (_served(GVR(name, version.version, r.resource), r) for r in resources)
        found.resources[name, version.version] = tuple(one for one in served if one is not None)
    if name or fresh:
        found.groups.append(Group(name, tuple(fresh), fresh[0] if fresh else ""))


def _part(found: _Found, raw: msgspec.Raw, type_: type[T], what: str) -> T | None:
    """A part of a document; None, with ``what`` marked as failed, where it cannot be decoded."""
    try:
        return codec.decode(raw, type_)
    except codec.DecodeError as error:
        found.failed[what] = f"the answer cannot be read: {error}"
        return None


def _expect(kind: str, *kinds: str) -> None:
    """Raises Unreadable for an answer of another kind."""
    if kind not in kinds:
        raise Unreadable(f"the answer cannot be read: expected {' or '.join(kinds)}, got {quote(kind)}")


def _served(gvr: GVR, resource: _Resource) -> ServedResource | None:
    kind = resource.response_kind
    if kind is None or not kind.kind or not gvr.plural:  # there is nothing but subresources
        return None
    subresources = {}
    for sub in resource.subresources:
        speaks = sub.response_kind or _Kind()
        subresources[sub.subresource] = Subresource(
            sub.subresource,
            speaks.group or gvr.group,
            speaks.version or gvr.version,
            speaks.kind,
            frozenset(sub.verbs),
        )
    return ServedResource(
        gvr,
        kind.kind,
        resource.singular_resource,
        resource.scope == "Namespaced",
        frozenset(resource.verbs),
        subresources,
        resource.short_names,
        resource.categories,
    )


async def _add_plain(client: Client, found: _Found, document: _PlainGroups) -> None:
    _expect(document.kind, "APIVersions", "APIGroupList")
    groups = _plain_groups(found, document)
    wanted = [(group.name, version) for group in groups for version in group.versions]
    answers = await asyncio.gather(*(_fetch_version(client, *gv) for gv in wanted))
    found.groups.extend(groups)
    for gv, answer in zip(wanted, answers, strict=True):
        if isinstance(answer, str):
            found.failed[GVR(*gv, "").group_version] = answer
        else:
            found.resources[gv] = answer


def _plain_groups(found: _Found, document: _PlainGroups) -> list[Group]:
    if document.kind == "APIVersions":
        versions = tuple(version for version in document.versions if version)
        return [Group("", versions, versions[0] if versions else "")]
    groups: list[Group] = []
    for raw in document.groups:
        item = _part(found, raw, _PlainGroup, ANY)
        if item is None or not item.name:
            continue
        versions = tuple(version.version for version in item.versions if version.version)
        preferred = item.preferred_version.version
        groups.append(Group(item.name, versions, preferred or (versions[0] if versions else "")))
    return groups


async def resources_of(client: Client, group: str, version: str) -> tuple[ServedResource, ...]:
    """The resources of one version, none where it is not served. Raises RequestError."""
    try:
        return await _resources(client, group, version)
    except NotFound:
        return ()


async def _resources(client: Client, group: str, version: str) -> tuple[ServedResource, ...]:
    document = await client.ask(Request("GET", GVR(group, version, "").base), _PlainResources)
    _expect(document.kind, "APIResourceList")
    return plain(group, version, document.resources)


async def _fetch_version(client: Client, group: str, version: str) -> tuple[ServedResource, ...] | str:
    """The resources of a version that its group names, or the reason why discovery failed."""
    try:
        return await _resources(client, group, version)
    except RequestError as error:
        return str(error)


def plain(group: str, version: str, resources: Iterable[_PlainResource]) -> tuple[ServedResource, ...]:
    """An APIResourceList as ServedResources."""
    parents: dict[str, ServedResource] = {}
    subresources: dict[str, dict[str, Subresource]] = {}
    for item in resources:
        name, slash, sub = item.name.partition("/")
        verbs = frozenset(item.verbs)
        if not name:
            continue
        if slash:
            speaks = Subresource(sub, item.group or group, item.version or version, item.kind, verbs)
            subresources.setdefault(name, {})[sub] = speaks
            continue
        parents[name] = ServedResource(
            GVR(group, version, name),
            item.kind,
            item.singular_name,
            item.namespaced,
            verbs,
            subresources.setdefault(name, {}),
            item.short_names,
            item.categories,
        )
    return tuple(parents.values())
