"""Get and list: resource versions, pages, selectors.

A list shows one revision: the latest, an exact one, or that of its continue token. Continue tokens are valid for some
minutes, as long as the store keeps the history. After that the response is 410 with a token for continuing
inconsistently.

upstream: apiserver pkg/storage/{interfaces,continue}.go, etcd3/{store,errors,compact}.go, cacher (v1.36)
"""

import base64
import posixpath
import re
import sys
from collections.abc import Sequence
from itertools import islice

import msgspec

from kcm_cli.component.clock import Clock
from kcm_cli.machinery import codec
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.formats import base64url_text
from kcm_cli.rest.transport import Response
from kcm_cli.runtime.turns import Part
from kcm_cli.sandbox.apiserver.errors import bad_request, expired, not_found, plain, too_large_version
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.registry.options import ListOptions, list_options, unsigned
from kcm_cli.sandbox.apiserver.registry.selection import Selection, selection
from kcm_cli.sandbox.apiserver.schema import gojson
from kcm_cli.sandbox.apiserver.store import Compacted, Store, Stored
from kcm_cli.sandbox.apiserver.types import ApiError

FRESH_WAIT_S = 3.0
"""Seconds for which a request waits for a resourceVersion that has not been reached."""
COMPACT_S = 300.0
"""The minimum lifetime of a continue token. It expires at the latest twice that time after the next change."""
_POLL_S = 0.05
_BASE64 = re.compile(r"[A-Za-z0-9_-]*")
_INCONSISTENT = -1
_TOKEN_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
_VERSION_EXPIRED = "The resourceVersion for the provided list is too old."


class _Token(msgspec.Struct):
    """A continue token: the list continues at key ``start``, at revision ``rv``."""

    v: str = ""
    rv: int = 0
    start: str = ""


class Page(msgspec.Struct, frozen=True):
    """The metadata of a list; see ``responses.list_metadata``."""

    revision: str
    more: str = ""
    left: int | None = None


def fetch(core: Core, call: Call) -> Stored:
    """The object of the request. Raises ApiError 404."""
    stored = core.store.get(call.hub.storage, call.namespace, call.name)
    if call.at is not None:
        stored = core.store.get_at(call.hub.storage, call.namespace, call.name, call.at)
    if stored is None:
        raise not_found(*call.resource.named, call.name)
    return stored


def chosen_by(core: Core, call: Call, options: ListOptions) -> Selection:
    """The selection of a list or watch. If it does not select everything, custom objects have to be prepared for it.
    Raises ApiError 400.
    """
    own = call.served.selectable
    rules = core.kinds.of(call.resource).selectable if own is None else own
    alike = options.fields.empty and core.lasts(call.served)  # only webhooks change labels
    chosen = selection(rules, options.labels, options.fields, None if alike else core.form_of(call.served))
    if call.name and chosen.name != call.name:
        if not options.fields.empty:
            raise bad_request("fieldSelector metadata.name doesn't match requested name")
        return chosen.narrowed(call.name)
    return chosen


class Pages:
    """Expires continue tokens after some minutes. There is no timer without tokens.

    ``oldest``: the oldest revision that can be listed.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.oldest = 0
        self._next = 0
        self._promised = 0
        self._waits = False

    def promise(self, revision: int, begun: int) -> None:
        """Keep a revision for the further pages of a list. begun: the store's revision when the list began."""
        self._promised = max(self._promised, revision)
        if revision == begun:  # it may be old, but this list has just begun
            self.oldest = min(self.oldest, revision)
            self._next = min(self._next, revision)
        if not self._waits:
            self._wait()

    def _wait(self) -> None:
        self._waits, self._next = True, self._store.revision + 1
        self._clock.call_later(COMPACT_S, self._forget)

    def _forget(self) -> None:
        self._waits, self.oldest = False, self._next
        if self._promised >= self.oldest:
            self._wait()


class Reader:
    """Handles get and list."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._pages = Pages(core.store, core.clock)

    async def get(self, call: Call) -> Response:
        """GET of an object. Raises ApiError."""
        version = call.query.get("resourceVersion", "")
        if version and version != "0":
            await self.reach(parsed_version(version))
        if "export" in call.query:
            raise bad_request("the export parameter, deprecated since v1.14, is no longer supported")
        stored = fetch(self._core, call)
        await self._core.prepare(call.served, stored)
        return call.media.object(200, stored)

    async def list(self, call: Call) -> Response:
        """GET of a collection. Raises ApiError."""
        options = list_options(call.query)
        if options.version:
            await self.reach(check_list_version(options))
        begun = self._core.store.revision
        items, page = await select(self._core, call, options, self._pages.oldest)
        if page.more:
            self._pages.promise(int(page.revision), begun)
        direct = options.limit > 0 and options.labels.empty and options.fields.empty
        await self._core.prepare_all(call.served, items, direct=direct)
        return await call.media.list(items, page.revision, page.more, page.left)

    async def reach(self, revision: int) -> None:
        """Wait for a revision. Raises ApiError 504 after ``FRESH_WAIT_S``."""
        if not await reached(self._core, revision, FRESH_WAIT_S):
            raise too_large_version(revision, self._core.store.revision)


async def reached(core: Core, revision: int, timeout_s: float) -> bool:
    """Wait for a revision; False if it is not reached in time."""
    deadline = core.clock.monotonic() + timeout_s
    while core.store.revision < revision:
        if core.clock.monotonic() >= deadline:
            return False
        await core.clock.sleep(_POLL_S)
    return True


def parsed_version(text: str) -> int:
    """A resourceVersion as a number. Raises ApiError 500, as upstream for get."""
    try:
        return unsigned(text)
    except FormatError as error:
        raise plain(f'resourceVersion: Invalid value: "{text}": {error}') from None


def check_list_version(options: ListOptions) -> int:
    """The resourceVersion of a list, or 0. Raises ApiError 400."""
    try:
        return parsed_version(options.version) if options.version else 0
    except ApiError as error:
        raise bad_request(f"invalid resource version: {error}") from error


async def select(core: Core, call: Call, options: ListOptions, oldest: int = 0) -> tuple[Sequence[Stored], Page]:
    """The items of a list in the order of their keys, and its metadata. Raises ApiError.

    oldest: earlier revisions have expired, except the latest. Objects are compared with selectors in turns of the loop;
    the list is that of the moment of the call.
    """
    store = core.store
    chosen = chosen_by(core, call, options)
    namespace = call.namespace or (chosen.namespace or "" if call.resource.namespaced else "")
    prefix = f"{namespace}/" if namespace else ""
    start, at = _position(options, prefix)
    if at is not None and at < min(oldest, store.revision):
        raise _expired(options, start, prefix)
    at = call.at if at is None else at
    if at is not None and at > store.revision:
        raise too_large_version(at, store.revision)
    limit = options.limit if options.version != "0" else 0
    try:
        if chosen.name is not None and (namespace or not call.resource.namespaced) and at is None:
            found, revision = store.get(call.hub.storage, namespace, chosen.name), store.revision
            items, _ = await _matching(core, call, chosen, [] if found is None else [found], 0)
            return items, Page(str(revision))
        return await _paged(core, call, chosen, namespace, (start, at), limit)
    except Compacted as error:
        raise _expired(options, start, prefix) from error


async def _paged(
    core: Core, call: Call, chosen: Selection, namespace: str, position: tuple[str, int | None], limit: int
) -> tuple[list[Stored], Page]:
    store, gvr, (start, at) = core.store, call.hub.storage, position
    revision = store.revision if at is None else at
    scan = store.scan(gvr, namespace, start=start, at=at)
    if chosen.everything:
        items = list(islice(scan, min(limit, sys.maxsize - 1) + 1) if limit > 0 else scan)
        following = items.pop().key if 0 < limit < len(items) else ""
        left = store.count(gvr, namespace, start=following, at=at) if following else None
    else:
        items, following = await _matching(core, call, chosen, list(scan), limit)
        left = None
    if not following:
        return items, Page(str(revision))
    last = items[-1].key
    rest = last.removeprefix(f"{namespace}/") if namespace else last
    return items, Page(str(revision), _encoded(revision, rest + "\0"), left)


async def _matching(
    core: Core, call: Call, chosen: Selection, found: Sequence[Stored], limit: int
) -> tuple[list[Stored], str]:
    """Up to ``limit`` of these (0: all) that are selected, and the key of the next one, selected or not; empty for
    none. Raises ApiError 429, 500."""
    items: list[Stored] = []
    part, prepares = Part(), core.prepares(call.served)
    for stored in found:
        if 0 < limit == len(items):
            return items, stored.key
        if prepares:  # until the next await
            await core.prepare_all(call.served, [stored])
        if chosen.matches(stored):
            items.append(stored)
        if part.is_over():
            await part.next()
    return items, ""


def _is_exact(options: ListOptions) -> bool:
    """Whether a list is at exactly its resourceVersion, not at a newer one."""
    return options.match == "Exact" or (not options.match and options.limit > 0)


def _position(options: ListOptions, prefix: str) -> tuple[str, int | None]:
    """The first key and the revision (None: the latest) of a list. Raises ApiError 400."""
    if options.more:
        token = _decoded(options.more)
        if options.version and options.version != "0":
            raise bad_request("specifying resource version is not allowed when using continue")
        return prefix + token.start, token.rv if token.rv > 0 else None
    if options.version in ("", "0"):
        return "", None
    return "", int(options.version) if _is_exact(options) else None


def _encoded(revision: int, start: str) -> str:
    token = codec.encode(_Token("meta.k8s.io/v1", revision, start))
    return base64url_text(token)


def _decoded(text: str) -> _Token:
    problem = "continue key is not valid"
    if wrong := _not_base64(text):
        raise bad_request(f"invalid continue token: {problem}: {wrong}")
    data = base64.b64decode(text + "=" * (-len(text) % 4), b"-_")
    try:
        token = codec.decode(data, _Token)
    except codec.DecodeError as error:
        why = gojson.syntax_error(data.decode("utf-8", "replace")) or str(error)
        raise bad_request(f"invalid continue token: {problem}: {why}") from error
    if token.v != "meta.k8s.io/v1":
        unknown = f"server does not recognize this encoded version {token.v}"
        raise bad_request(f"invalid continue token: {problem}: {unknown}")
    if token.rv == 0:
        why = "incorrect encoded start resourceVersion (version meta.k8s.io/v1)"
        raise bad_request(f"invalid continue token: {problem}: {why}")
    if not token.start:
        raise bad_request(f"invalid continue token: {problem}: encoded start key empty (version meta.k8s.io/v1)")
    key = token.start if token.start.startswith("/") else "/" + token.start
    if posixpath.normpath(key) != key:
        raise bad_request(f"invalid continue token: {problem}: {token.start}")
    token.start = key[1:]
    return token


def _not_base64(text: str) -> str:
    """Go's error for a text that is not raw URL base64, otherwise empty."""
    match = _BASE64.match(text)
    good = 0 if match is None else match.end()
    if good == len(text) and good % 4 != 1:
        return ""
    return f"illegal base64 data at input byte {min(good, len(text) - 1)}"


def _expired(options: ListOptions, start: str, prefix: str) -> ApiError:
    if not options.more:
        return expired(_VERSION_EXPIRED)
    error = expired(_TOKEN_EXPIRED)
    error.status["metadata"] = {"continue": _encoded(_INCONSISTENT, start.removeprefix(prefix))}
    return error
