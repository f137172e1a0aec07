"""Create.

upstream: apiserver pkg/endpoints/handlers/create.go, pkg/registry/generic/registry/store.go#Create (v1.36)
"""

from collections.abc import Hashable
from contextlib import AbstractAsyncContextManager, nullcontext

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.meta import object_key
from kcm_cli.machinery.times import format_time
from kcm_cli.rest.transport import Response
from kcm_cli.sandbox.apiserver.errors import already_exists, forbidden, invalid, not_found, plain
from kcm_cli.sandbox.apiserver.registry import objects
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core, Write
from kcm_cli.sandbox.apiserver.registry.etcd_limits import TooLarge, limit, smaller
from kcm_cli.sandbox.apiserver.registry.options import (
    APPLY_TYPES,
    WriteOptions,
    stated_version,
    unsigned,
    write_options,
)
from kcm_cli.sandbox.apiserver.store import AlreadyExists, Stored
from kcm_cli.sandbox.apiserver.strategy import Context, Strategy
from kcm_cli.sandbox.apiserver.types import Attributes, Tree
from kcm_cli.sandbox.apiserver.validation.errors import required

_NAME_ATTEMPTS = 8
_KEPT_BODIES, _LONGEST_BODY = 32, 16 * 1024
_CLOSED = "create not allowed while custom resource definition is terminating"


class _Draft(msgspec.Struct, frozen=True):
    """What stays the same while names are tried for a new object.

    stem: the generateName of one without a name. alike: see ``Strategy.alike``.
    """

    call: Call
    options: WriteOptions
    attrs: Attributes
    stem: str = ""
    alike: bytes = b""


class Creator:
    """Handles create."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._decoded: dict[Hashable, bytes] = {}
        self._valid: set[tuple[GVR, bytes]] = set()
        """What new objects that were valid have in common with others (``Strategy.alike``)."""
        made = ((kind, kind.around) for kind in core.kinds)
        self._around = {(kind.group, kind.resource): around(core) for kind, around in made if around is not None}

    async def create(self, call: Call) -> Response:
        """POST to a collection. Raises ApiError."""
        options = write_options("CreateOptions", call.request, call.query)
        doc = self._received(call, options)
        made = await self.insert(call, call.served.to_storage(doc), options)
        return await self.answer(call, made, 201)

    def _received(self, call: Call, options: WriteOptions) -> Tree:
        """The object in the body, with defaults and managedFields.

        A ReplicaSet sends the same body for each of its pods. So objects with a generateName are cached by body, and
        by second because of the time in managedFields.
        """
        core, resource, body, now = self._core, call.resource, call.request.body, self._core.clock.now()
        sender = call.content_type, options.validation, options.manager
        key = resource.gvr, call.namespace, *sender, format_time(now), body
        if (known := self._decoded.get(key)) is not None:
            return codec.decode_doc(known)
        doc, warnings = core.schemas.decode_body(resource, body, call.content_type, options.validation)
        call.warnings += warnings
        core.default(resource, doc)
        meta: Tree = doc.setdefault("metadata", {})
        objects.wipe_system_fields(meta)
        objects.match_namespace(meta, call.namespace)
        objects.drop_repeated_owners(meta, call.warnings, mutated=False)
        doc = core.completed(call.served, doc)
        core.patching.track((resource, ""), None, doc, options.manager, now)
        unnamed = meta.get("generateName") and not meta.get("name")
        if unnamed and not call.warnings and not resource.custom and len(body) <= _LONGEST_BODY:
            if len(self._decoded) >= _KEPT_BODIES:
                self._decoded.clear()
            self._decoded[key] = codec.encode(doc)
        return doc

    async def answer(self, call: Call, made: "Stored | Tree", status: int) -> Response:
        """The response with a stored object or the result of a dry run. Raises ApiError 500."""
        if isinstance(made, Stored):
            await self._core.prepare(call.served, made)
            return call.media.object(status, made)
        return call.media.document(status, await self._core.dry_run_result(call.served, made))

    async def insert(self, call: Call, doc: Tree, options: WriteOptions) -> "Stored | Tree":
        """Admit, prepare, validate and store a new object, which is in the stored form. Raises ApiError."""
        core, meta = self._core, doc["metadata"]
        if call.hub.closed:
            raise forbidden(*call.resource.named, meta.get("name") or "", _CLOSED)
        attrs = Attributes(
            "CREATE", call.resource, "", namespace_of(core, call, meta), meta.get("name") or "", call.user, doc, None,
            options.dry_run, options.document("CreateOptions"), call.warnings,
        )  # fmt: skip
        await core.admission.mutate(attrs)
        core.schemas.forget_empty(call.hub.info, doc)
        if call.info.verb != "create":
            stated_version(meta)
            meta.pop("resourceVersion", None)
        objects.drop_repeated_owners(meta, call.warnings, mutated=True)
        objects.match_namespace(meta, call.namespace)
        stem = "" if meta.get("name") else meta.get("generateName") or ""
        pristine = codec.encode(doc) if stem else b""
        draft = _Draft(call, options, attrs, stem, core.rules(call.hub.info).alike(pristine))
        for _ in range(_NAME_ATTEMPTS if stem else 1):
            try:
                return await self._insert_once(draft, doc)
            except AlreadyExists:
                taken = doc["metadata"]["name"]
                doc = attrs.obj = codec.decode_doc(pristine) if stem else doc
        current = core.store.get(call.hub.storage, call.namespace, taken)
        deleting = current is not None and "deletionTimestamp" in current.doc["metadata"]  # type: ignore[operator]
        generated = bool(doc["metadata"].get("generateName"))
        raise already_exists(call.resource, taken, deleting=deleting, generated=generated)

    async def _insert_once(self, draft: "_Draft", doc: Tree) -> "Stored | Tree":
        """Prepare, validate and store an object. Raises AlreadyExists, ApiError."""
        core, call, options = self._core, draft.call, draft.options
        objects.fill_system_fields(doc["metadata"], core.random, core.clock.now(), draft.stem)
        async with self.around(call, Write(doc, None, options.dry_run)):
            rules, meta = self._validate(draft, doc), doc["metadata"]
            name = draft.attrs.name = call.name or meta["name"]  # which may have been generated
            await core.admission.validate(draft.attrs)
            if _is_version(meta.get("resourceVersion") or "0") and not options.dry_run:
                raise plain("resourceVersion should not be set on objects to be created")
            rules.on_read(doc)
            doc = objects.ordered(call.hub.info, doc)
            if options.dry_run and core.store.get(call.hub.storage, call.namespace, name) is not None:
                raise AlreadyExists(name)
            kept = await core.stored_version(call.served, doc)
            return kept if options.dry_run else self._store(call, name, kept)

    def _store(self, call: Call, name: str, doc: Tree) -> Stored:
        if call.resource.custom and not self._is_defined(call):  # its definition was deleted meanwhile
            raise not_found(*call.resource.named, name)
        doc["metadata"].pop("selfLink", None)
        check = limit(self._core.storage_key(call.hub.info, object_key(call.namespace, name)), 0)
        while True:
            try:
                return self._core.store.create(call.hub.storage, call.namespace, name, doc, check)
            except TooLarge as error:
                doc = smaller(doc, error, applied=call.content_type in APPLY_TYPES)

    def _is_defined(self, call: Call) -> bool:
        """Whether a version of the resource is still served."""
        catalog, storage = self._core.catalog, call.hub.storage
        return catalog.by_gvr(call.resource.gvr) is not None or any(one.storage == storage for one in catalog)

    def around(self, call: Call, write: Write) -> AbstractAsyncContextManager[None]:
        """What the kind declares around the write of an object."""
        gvr = call.resource.gvr
        around = None if call.subresource else self._around.get((gvr.group, gvr.plural))
        return nullcontext() if around is None else around(write)

    def _validate(self, draft: "_Draft", doc: Tree) -> Strategy:
        """Prepare and validate an object by its kind's strategy, which is returned. Raises ApiError 422.

        Of the pods that a ReplicaSet creates in a second, which differ by their name only, the first is validated.
        """
        core, call, hub, meta = self._core, draft.call, draft.call.hub.info, doc["metadata"]
        rules = core.rules(call.ruled)
        rules.prepare_create(doc, Context(meta["creationTimestamp"], call.user))
        valid = call.hub.storage, draft.alike
        known = valid in self._valid
        refused = core.kinds.of(hub).check_access(core, call, doc, None)
        if errors := [*refused, *(() if known else rules.validate_create(doc))]:
            raise invalid(hub, meta.get("name") or "", errors)
        if not meta.get("name"):
            raise invalid(hub, "", [required("metadata.name", "name or generateName is required")])
        if not known:
            warnings = rules.warn(doc, None)
            call.warnings += warnings
            if not warnings and 0 < len(draft.alike) <= _LONGEST_BODY:
                if len(self._valid) >= _KEPT_BODIES:
                    self._valid.clear()
                self._valid.add(valid)
        return rules


def namespace_of(core: Core, call: Call, meta: Tree) -> str:
    """The namespace for admission."""
    return meta.get("name") or "" if core.rules(call.hub.info).is_namespace else call.namespace


def _is_version(text: str) -> bool:
    """Whether it is the resourceVersion of a stored object."""
    try:
        return unsigned(text) != 0
    except FormatError:
        return False
