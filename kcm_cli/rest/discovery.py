"""Asks an API server what it serves: in two requests where it knows aggregated discovery, else one per version.

Guarantees: a group version that cannot be learnt (an aggregated API server is down) is named in
``Discovery.failed`` and does not hide the others; nobody deletes on the ground of its absence.

upstream: staging/src/k8s.io/client-go/discovery
"""

import asyncio
from collections.abc import Iterable

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import View
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import ApiError, Forbidden, NotFound, from_response
from kcm_cli.rest.served import Discovery, Group, ServedResource, Subresource
from kcm_cli.rest.transport import Request, Response, TransportError

_AGGREGATED = "as=APIGroupDiscoveryList"
_ACCEPT = ",".join(
    (
        f"application/json;g=apidiscovery.k8s.io;v=v2;{_AGGREGATED}",
        f"application/json;g=apidiscovery.k8s.io;v=v2beta1;{_AGGREGATED}",
        "application/json",
    )
)
_STALE = "Stale"


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
    resources: tuple[_Resource, ...] = ()


class _Meta(View, frozen=True, gc=False):
    name: str = ""


class _Group(View, frozen=True, gc=False):
    metadata: _Meta = _Meta()
    versions: tuple[_Version, ...] = ()


class _Groups(View, frozen=True, gc=False):
    """APIGroupDiscoveryList."""

    items: tuple[_Group, ...] = ()


class _GroupVersion(View, frozen=True, gc=False):
    group_version: str = ""
    version: str = ""


class _PlainGroup(View, frozen=True, gc=False):
    name: str = ""
    versions: tuple[_GroupVersion, ...] = ()
    preferred_version: _GroupVersion = _GroupVersion()


class _PlainGroups(View, frozen=True, gc=False):
    """APIGroupList, and APIVersions of ``/api``."""

    groups: tuple[_PlainGroup, ...] = ()
    versions: tuple[str, ...] = ()


class _PlainResource(View, frozen=True, gc=False):
    name: str = ""
    singular_name: str = ""
    namespaced: bool = False
    group: str = ""
    version: str = ""
    kind: str = ""
    verbs: tuple[str, ...] = ()
    short_names: tuple[str, ...] | None = None
    categories: tuple[str, ...] | None = None


class _PlainResources(View, frozen=True, gc=False):
    """APIResourceList."""

    resources: tuple[_PlainResource, ...] | None = None


async def discover(client: Client) -> Discovery:
    """What the server serves. Raises ApiError, TransportError, codec.DecodeError."""
    core, named = await asyncio.gather(_fetch(client, "/api"), _fetch(client, "/apis"))
    answers = [answer for answer in (core, named) if answer is not None]
    if answers and all(_AGGREGATED in answer.headers.get("content-type", "") for answer in answers):
        return aggregated([codec.decode(answer.body, _Groups) for answer in answers])
    return await _one_by_one(client, core, named)


async def _fetch(client: Client, path: str) -> Response | None:
    """A root of discovery; None where the server has none or shows us none."""
    request = Request("GET", path, (), {"accept": _ACCEPT})
    response = await client.answer(request)
    if response.status == 200:
        return response
    error = from_response(response, request)
    if isinstance(error, NotFound | Forbidden):
        return None
    raise error


def aggregated(documents: Iterable["_Groups"]) -> Discovery:
    """The value of APIGroupDiscoveryLists."""
    groups: list[Group] = []
    resources: dict[tuple[str, str], tuple[ServedResource, ...]] = {}
    failed: dict[str, str] = {}
    for item in (item for document in documents for item in document.items):
        name = item.metadata.name
        fresh = [version for version in item.versions if version.freshness != _STALE]
        versions = tuple(version.version for version in fresh)
        groups.append(Group(name, versions, versions[0] if versions else ""))
        for version in item.versions:
            gv = GVR(name, version.version, "").group_version
            if version.freshness == _STALE:
                failed[gv] = f"stale GroupVersion discovery: {gv}"
                continue
            served = (_served(GVR(name, version.version, r.resource), r) for r in version.resources)
            resources[name, version.version] = tuple(one for one in served if one is not None)
    return Discovery(tuple(groups), resources, failed)


def _served(gvr: GVR, resource: _Resource) -> ServedResource | None:
    kind = resource.response_kind
    if kind is None:  # there is nothing but subresources
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


async def _one_by_one(client: Client, core: Response | None, named: Response | None) -> Discovery:
    groups = _plain_groups(core, named)
    wanted = [(group.name, version) for group in groups for version in group.versions]
    found = await asyncio.gather(*(_fetch_version(client, *gv) for gv in wanted))
    resources: dict[tuple[str, str], tuple[ServedResource, ...]] = {}
    failed: dict[str, str] = {}
    for gv, answer in zip(wanted, found, strict=True):
        if isinstance(answer, str):
            failed[GVR(*gv, "").group_version] = answer
        else:
            resources[gv] = answer
    return Discovery(groups, resources, failed)


def _plain_groups(core: Response | None, named: Response | None) -> tuple[Group, ...]:
    groups: list[Group] = []
    if core is not None:
        versions = codec.decode(core.body, _PlainGroups).versions
        groups.append(Group("", versions, versions[0] if versions else ""))
    if named is not None:
        for item in codec.decode(named.body, _PlainGroups).groups:
            versions = tuple(version.version for version in item.versions)
            groups.append(Group(item.name, versions, item.preferred_version.version))
    return tuple(groups)


async def resources_of(client: Client, group: str, version: str) -> tuple[ServedResource, ...]:
    """The resources of one version, none where it is not served. Raises ApiError, TransportError, codec.DecodeError."""
    try:
        body = await client.call(Request("GET", GVR(group, version, "").base))
    except NotFound:
        return ()
    return plain(group, version, codec.decode(body, _PlainResources).resources or ())


async def _fetch_version(client: Client, group: str, version: str) -> tuple[ServedResource, ...] | str:
    """The resources of a version, or why they could not be had."""
    try:
        return await resources_of(client, group, version)
    except (ApiError, TransportError, codec.DecodeError) as error:
        return str(error)


def plain(group: str, version: str, resources: Iterable[_PlainResource]) -> tuple[ServedResource, ...]:
    """The value of an APIResourceList."""
    parents: dict[str, ServedResource] = {}
    subresources: dict[str, dict[str, Subresource]] = {}
    for item in resources:
        name, slash, sub = item.name.partition("/")
        verbs = frozenset(item.verbs)
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
            item.short_names or (),
            item.categories or (),
        )
    return tuple(parents.values())
