"""Reads a snapshot from an API server with lists, page by page, at one resource version if possible.

The first list determines the version, and the others request it (``resourceVersionMatch=Exact``). A server that does
not have it any more answers with 410, and one that cannot do this with 400. Then the kind is read at its latest
version, and the snapshot is torn.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from datetime import datetime

import msgspec
from msgspec.structs import replace

from kcm_cli.api.resource import GVR
from kcm_cli.component.clock import Clock
from kcm_cli.engine.controller import CUSTOM
from kcm_cli.machinery import codec
from kcm_cli.machinery.documents import nested_list, nested_map, nested_str
from kcm_cli.machinery.meta import View
from kcm_cli.plan.kinds import CONFIG_MAPS, DEFINITIONS, EVENTS, KINDS, SECRETS, ListedKind, installed_kinds
from kcm_cli.plan.snapshot import Collection, Gap, Item, PlanError, Snapshot, is_time_of_cluster
from kcm_cli.rest import errors
from kcm_cli.rest.client import JSON_TYPE, Client
from kcm_cli.rest.listing import in_pages
from kcm_cli.rest.reading import server_time
from kcm_cli.rest.transport import Request, Unreadable

AT_ONCE = 4
_VOLUMES, _ATTACHMENTS = GVR("", "v1", "persistentvolumes"), GVR("storage.k8s.io", "v1", "volumeattachments")
Progress = Callable[[str, int], object]
"""Called with the kind that is being read and the number of its objects so far."""


class _Meta(View, frozen=True, gc=False):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    continue_: str | None = msgspec.field(default=None, name="continue")


class _Head(View, frozen=True, gc=False):
    """The fields of an object that are read here."""

    api_version: str | None = None
    kind: str | None = None
    metadata: _Meta | None = None


class _Page(msgspec.Struct, frozen=True):
    metadata: _Meta | None = None
    items: list[msgspec.Raw] | None = None

    @property
    def next_page(self) -> str:
        """The continue token, empty on the last page."""
        return (self.metadata.continue_ if self.metadata is not None else None) or ""


class _VersionInfo(msgspec.Struct, frozen=True, rename="camel"):
    git_version: str = ""


class _NotServed(Exception):
    """The server does not have the resource."""


class _Found(msgspec.Struct):
    """The results so far."""

    collections: dict[GVR, Collection] = msgspec.field(default_factory=dict)
    torn: list[str] = msgspec.field(default_factory=list)
    gaps: list[Gap] = msgspec.field(default_factory=list)
    skipped: list[str] = msgspec.field(default_factory=list)


async def collect(
    client: Client,
    clock: Clock,
    *,
    include: Sequence[str] = (),
    namespace: str = "",
    custom: frozenset[str] = frozenset(),
    progress: Progress = lambda kind, count: None,
) -> Snapshot:
    """Read the cluster. ``include``: configmaps, events, custom. ``namespace``: where to list kinds that may not be
    listed in all namespaces. ``custom``: the custom kinds to read without ``include`` (see ``names_of``), beside those
    of installed controllers.

    Raises PlanError if requests are not authorized, TransportError if the server cannot be reached.
    """
    reader = _Reader(client, namespace, progress)
    version, taken_at = await reader.version(clock)
    await reader.all(KINDS[:1])
    await reader.all((*KINDS[1:], DEFINITIONS, *(one for one in (CONFIG_MAPS, EVENTS) if one.key in include)))
    definitions = reader.found.collections.get(DEFINITIONS.gvr)
    await reader.all(_custom(definitions, reader.found.gaps, None if CUSTOM in include else custom | installed_kinds()))
    found = reader.found
    if not found.collections:
        raise PlanError(_nothing(found.gaps, namespace))
    gaps = [*found.gaps, *_left_out(include)]
    ordered = {gvr: found.collections[gvr] for gvr in sorted(found.collections, key=str)}
    if any(gap.partial for gap in found.gaps):
        ordered = {gvr: _within(one, namespace) for gvr, one in ordered.items()}
        if _VOLUMES in ordered and _ATTACHMENTS in ordered:
            ordered[_ATTACHMENTS] = _attaching(ordered[_ATTACHMENTS], ordered[_VOLUMES])
    return Snapshot(
        taken_at,
        version,
        reader.cut,
        ordered,
        tuple(sorted(found.torn)),
        tuple(sorted(gaps, key=lambda gap: gap.resource)),
        skipped=tuple(sorted(found.skipped)),
    )


def _nothing(gaps: Sequence[Gap], namespace: str) -> str:
    """Why nothing could be read."""
    if not gaps:
        return "the server has no kind that is known"
    reason = gaps[0].reason
    return reason if namespace or " is forbidden: " not in reason else f"{reason} (-n NAMESPACE reads one namespace)"


def _within(collection: Collection, namespace: str) -> Collection:
    """The objects in one namespace only. Others would seem to have lost objects that could not be read."""
    if collection.gvr.plural == "namespaces":
        return replace(collection, items=tuple(item for item in collection.items if item.name == namespace))
    if collection.gvr == _VOLUMES:
        return replace(collection, items=tuple(item for item in collection.items if _claimed(item) in ("", namespace)))
    if not collection.namespaced or collection.gvr.plural == "leases":
        return collection
    return replace(collection, items=tuple(item for item in collection.items if item.namespace == namespace))


def _claimed(volume: Item) -> str:
    """The namespace of a volume's claim."""
    return nested_str(volume.doc, "spec", "claimRef", "namespace")


def _attaching(attachments: Collection, volumes: Collection) -> Collection:
    """The attachments of these volumes only."""
    names, path = {item.name for item in volumes.items}, ("spec", "source", "persistentVolumeName")
    return replace(attachments, items=tuple(item for item in attachments.items if nested_str(item.doc, *path) in names))


def check_include(include: Iterable[str]) -> list[str]:
    """The errors in a value of --include."""
    known = (CONFIG_MAPS.key, EVENTS.key, CUSTOM)
    problems = []
    for word in include:
        if word in (SECRETS, "secret"):
            problems.append("--include: Secrets are never read")
        elif word not in known:
            problems.append(f'--include: "{word}" is not one of {", ".join(known)}')
    return problems


def _left_out(include: Sequence[str]) -> Iterator[Gap]:
    yield Gap(SECRETS, "never read")
    for name in (CONFIG_MAPS.key, EVENTS.key, CUSTOM):
        if name not in include:
            yield Gap(name, f"not read without --include {name}")


def _custom(definitions: Collection | None, gaps: list[Gap], asked: frozenset[str] | None) -> list[ListedKind]:
    """The kinds of CustomResourceDefinitions, in their storage version. ``asked``: which ones; None for all."""
    kinds: list[ListedKind] = []
    for item in definitions.items if definitions is not None else ():
        spec = nested_map(item.doc, "spec")
        if asked is not None and not names_of(spec) & asked:
            continue
        kind = defined_kind(spec)
        if kind is None:
            gaps.append(Gap(item.name, "its definition cannot be read"))
        else:
            kinds.append(kind)
    return kinds


def names_of(spec: dict[str, object]) -> frozenset[str]:
    """What a custom kind may be called, by the spec of its definition: ``thing``, ``things.example.com``."""
    names = nested_map(spec, "names")
    words: list[object] = [names.get(name) for name in ("kind", "plural", "singular")]
    words += nested_list(names, "shortNames")
    lower = {word.lower() for word in words if isinstance(word, str) and word}
    return frozenset(lower | {f"{word}.{spec.get('group')}" for word in lower})


def defined_kind(spec: dict[str, object]) -> ListedKind | None:
    """The custom kind of a definition, by its spec; None if it is not served in its storage version."""
    names, versions = spec.get("names"), spec.get("versions")
    if not isinstance(names, dict) or not isinstance(versions, list):
        return None
    stored = next((v for v in versions if isinstance(v, dict) and v.get("storage") and v.get("served")), None)
    if stored is None:
        return None
    gvr = GVR(str(spec.get("group")), str(stored.get("name")), str(names.get("plural")))
    return ListedKind(gvr, str(names.get("kind")), spec.get("scope") != "Cluster")


class _Reader:
    """Lists kinds. ``cut``: the version of the first list."""

    def __init__(self, client: Client, namespace: str, progress: Progress) -> None:
        self._client = client
        self._namespace = namespace
        self._progress = progress
        self._slots = asyncio.Semaphore(AT_ONCE)
        self.cut = ""
        self.found = _Found()

    async def version(self, clock: Clock) -> tuple[str, datetime]:
        """(the server's version, its time)."""
        response = await self._client.answer(Request("GET", "/version"))
        told = server_time(response)
        now = told if told is not None and is_time_of_cluster(told) else clock.now()
        if response.status == 401:
            raise PlanError(str(errors.from_response(response, Request("GET", "/version"))))
        try:
            version = codec.decode(response.body, _VersionInfo).git_version if response.status == 200 else ""
        except codec.DecodeError:
            raise PlanError("the server's /version cannot be read: is it a Kubernetes API server?") from None
        return (version if re.match("v[0-9]+[.][0-9]+", version) else ""), now.replace(microsecond=0)

    async def all(self, kinds: Iterable[ListedKind]) -> None:
        """Read these kinds into ``found``."""
        async with asyncio.TaskGroup() as group:
            for kind in kinds:
                group.create_task(self._one(kind))

    async def _one(self, kind: ListedKind) -> None:
        async with self._slots:
            for version in (kind.gvr.version, *kind.older):
                try:
                    items = await self._kind(kind, replace(kind.gvr, version=version))
                except _NotServed:
                    continue
                except (errors.ApiError, Unreadable) as error:
                    self.found.gaps.append(Gap(kind.key, _why(error)))
                    return
                name = replace(kind.gvr, version=version)
                self.found.collections[name] = Collection(name, kind.kind, kind.namespaced, items)
                return

    async def _kind(self, kind: ListedKind, gvr: GVR) -> tuple[Item, ...]:
        namespace = kind.namespace
        try:
            return await self._at_cut(kind, gvr, namespace)
        except errors.Forbidden as error:
            if not (self._namespace and kind.namespaced and not namespace):
                raise
            items = await self._at_cut(kind, gvr, self._namespace)
            text = f"only those of namespace {self._namespace}: {_why(error)}"
            self.found.gaps.append(Gap(kind.key, text, partial=True, namespace=self._namespace))
            return items

    async def _at_cut(self, kind: ListedKind, gvr: GVR, namespace: str) -> tuple[Item, ...]:
        if not self.cut:
            return await self._pages(kind, gvr, namespace, ())
        exact = (("resourceVersion", self.cut), ("resourceVersionMatch", "Exact"))
        try:
            return await self._pages(kind, gvr, namespace, exact)
        except (errors.Expired, errors.Gone, errors.BadRequest, errors.Invalid, errors.Timeout, errors.InternalError):
            items = await self._pages(kind, gvr, namespace, ())
            self.found.torn.append(kind.key)
            return items

    async def _pages(
        self, kind: ListedKind, gvr: GVR, namespace: str, exact: tuple[tuple[str, str], ...]
    ) -> tuple[Item, ...]:
        """All objects. Where the token of a list without ``exact`` expires, all is read again in one request, whose
        version counts."""

        async def fetch(token: str, limit: int) -> _Page:
            query = (("limit", str(limit)),) if limit else ()
            return await self._page(gvr, namespace, (*query, *((("continue", token),) if token else exact)))

        items: dict[tuple[str, str], Item] = {}
        skipped, cut = 0, self.cut
        async with aclosing(in_pages(fetch, again=not exact)) as pages:
            async for page, anew in pages:
                if anew:
                    items.clear()
                    skipped, self.cut = 0, cut
                for raw in page.items or ():
                    item = _item(bytes(raw), gvr, kind)
                    if item is None:
                        skipped += 1
                    else:
                        items[item.namespace, item.name] = item
                self._progress(kind.key, len(items))
                self.cut = self.cut or (page.metadata or _Meta()).resource_version or ""
        self.found.skipped += [kind.key] * skipped
        return tuple(items[key] for key in sorted(items))

    async def _page(self, gvr: GVR, namespace: str, query: tuple[tuple[str, str], ...]) -> _Page:
        request = Request("GET", gvr.path(namespace), query, {"accept": JSON_TYPE})
        response = await self._client.answer(request)
        if response.status == 404:
            raise _NotServed
        if response.status != 200:
            raise errors.from_response(response, request)
        try:
            return codec.decode(response.body, _Page)
        except codec.DecodeError as error:
            raise Unreadable(f"the server's answer is no list: {error}") from None


def _item(raw: bytes, gvr: GVR, kind: ListedKind) -> Item | None:
    """An object with its apiVersion and kind, which lists omit; None if it has no name."""
    head = codec.decode_or_none(raw, _Head)
    meta = head.metadata if head is not None else None
    if head is None or meta is None or not meta.name:
        return None
    data = compact = _compact(raw)
    if not (head.kind and head.api_version):
        rest = compact[1:]
        typed = {"apiVersion": head.api_version or gvr.group_version, "kind": head.kind or kind.kind}
        if head.kind or head.api_version:
            data = codec.encode({**codec.decode_doc(raw), **typed})
        else:
            data = codec.encode(typed)[:-1] + b"," + rest
    return Item(meta.namespace or "", meta.name, meta.uid or "", data)


def _compact(raw: bytes) -> bytes:
    """As API servers write it: a proxy, or a program that wrote a snapshot anew, may put spaces between values."""
    try:
        return msgspec.json.format(raw, indent=-1)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return raw.strip()


def item_of(data: bytes, gvr: GVR, kind: str) -> Item | None:
    """An object from another source than a list; None if it has no name."""
    return _item(data, gvr, ListedKind(gvr, kind))


def _why(error: Exception) -> str:
    return str(error).split("\n", 1)[0]
