"""Update and patch of objects, their status, and other subresources that are parts of them.

The new object is made from the stored one. If another write comes in between, it is made again.

upstream: apiserver pkg/endpoints/handlers/{update,patch}.go, pkg/registry/generic/registry/store.go#Update (v1.36)
"""

import re
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from kcm_cli.machinery.meta import object_key
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import JSON_PATCH, MERGE, STRATEGIC_MERGE
from kcm_cli.rest.transport import Response
from kcm_cli.sandbox.apiserver.apply.patches import Configuration
from kcm_cli.sandbox.apiserver.apply.patching import Applied
from kcm_cli.sandbox.apiserver.apply.tracking import settle_times, without_managed
from kcm_cli.sandbox.apiserver.errors import (
    conflict,
    invalid,
    invalid_kind,
    not_found,
    outdated,
    storage_conflict,
    unsupported_media_type,
    unsupported_patch,
)
from kcm_cli.sandbox.apiserver.registry import objects
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core, Write
from kcm_cli.sandbox.apiserver.registry.creating import Creator, namespace_of
from kcm_cli.sandbox.apiserver.registry.etcd_limits import TooLarge, limit, smaller
from kcm_cli.sandbox.apiserver.registry.options import APPLY_TYPES, WriteOptions, stated_version, write_options
from kcm_cli.sandbox.apiserver.security.authorizer import refusal
from kcm_cli.sandbox.apiserver.store import Conflict, NotFound, Stored
from kcm_cli.sandbox.apiserver.strategy import Context
from kcm_cli.sandbox.apiserver.strategy.parts import bump_generation
from kcm_cli.sandbox.apiserver.types import Attributes, FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors as field_errors

STATUS, SCALE = "status", "scale"

_PATCH_TYPES = (JSON_PATCH, MERGE)

_EMPTY_LIST, _EMPTY_LABELS = re.compile(rb"\[\s*\]"), re.compile(rb'Labels"\s*:\s*\{\s*\}')
"""Two expressions, each with a first character to look for, are faster than one with alternatives."""

Produce = Callable[[Stored | None], Tree]


class Change(msgspec.Struct, frozen=True):
    """How to make the new object (in the stored form) from the stored one.

    creates: the write may create the object. stated: returns the new object as the client wrote it, before decoding.
    """

    produce: Produce
    options: WriteOptions
    subresource: str = ""
    creates: bool = False
    stated: Produce | None = None


class Updater:
    """Handles update and patch."""

    def __init__(self, core: Core, creator: Creator) -> None:
        self._core = core
        self._creator = creator

    async def update(self, call: Call) -> Response:
        """PUT. Raises ApiError."""
        options = write_options("UpdateOptions", call.request, call.query)
        core, resource = self._core, call.resource
        current = core.store.get(call.hub.storage, call.namespace, call.name)
        first: list[Tree] = [self._decoded(call, options, call.warnings, current)]

        def produce(current: Stored | None) -> Tree:
            doc = first.pop() if first else self._decoded(call, options, [], current)
            self.check_uid(call, doc["metadata"].get("uid"), current, dry_run=options.dry_run)
            return self._tracked(call, options, doc, current, stated)

        def stated(current: Stored | None) -> Tree:
            return core.schemas.stated(resource, call.request.body, call.content_type)

        return await self._run(call, Change(produce, options, call.subresource, self._creates(call), stated))

    async def patch(self, call: Call) -> Response:
        """PATCH. Raises ApiError."""
        media = call.content_type.partition(";")[0]
        if media in APPLY_TYPES:
            return await self._apply(call)
        self.check_patch_type(call, media)
        options = write_options("PatchOptions", call.request, call.query)
        return await self._run(call, self.patch_change(call, options, media))

    def patch_change(self, call: Call, options: WriteOptions, media: str) -> Change:
        """The change of a patch."""
        core, resource = self._core, call.resource
        before = list(call.warnings)

        def produce(current: Stored | None) -> Tree:
            if current is None:
                raise not_found(*resource.named, call.name)
            live = self._live(call, current.copy())
            patched = core.patching.patch(resource, live, call.request.body, media, options.validation)
            call.warnings[:] = before + patched.warnings
            doc = patched.doc
            doc.setdefault("metadata", {})
            self._default(call, doc, current)
            self._check_identity(call, doc)
            return self._tracked(call, options, doc, current, stated)

        def stated(current: Stored | None) -> Tree:
            assert current is not None
            live = self._live(call, current.copy())
            return core.patching.stated(resource, live, call.request.body, media)

        return Change(produce, options, call.subresource, stated=stated)

    async def _apply(self, call: Call) -> Response:
        options = write_options("PatchOptions", call.request, call.query, apply=True)
        core, resource = self._core, call.resource
        configuration = Configuration(call.request.body, options.validation)
        before = list(call.warnings)

        def produce(current: Stored | None) -> Tree:
            live = None if current is None else self._live(call, current.copy())
            wanted = Applied(configuration.doc, options.manager, options.force)
            doc: Tree = core.patching.apply(resource, call.subresource, live, wanted, core.clock.now())
            call.warnings[:] = before + configuration.judge()
            if not resource.custom or live is None or without_managed(doc) != without_managed(live):
                self._core.default(resource, doc)  # a live object may lack the defaults of this version
            if current is None and doc["metadata"].get("uid"):
                why = f"uid mismatch: the provided object specified uid {doc['metadata']['uid']}"
                raise conflict(*resource.named, call.name, f"{why}, and no existing object was found")
            self._check_identity(call, doc)
            return call.served.to_storage(doc)

        def stated(current: Stored | None) -> Tree:
            live = None if current is None else self._live(call, current.copy())
            wanted = Applied(configuration.doc, options.manager, options.force)
            return core.patching.stated_by_apply(resource, call.subresource, live, wanted, core.clock.now())

        creates = not call.subresource or self._creates(call)
        return await self._run(call, Change(produce, options, call.subresource, creates, stated))

    def _tracked(self, call: Call, options: WriteOptions, doc: Tree, current: Stored | None, stated: Produce) -> Tree:
        """The new object in the stored form, with managedFields."""
        core, old = self._core, None if current is None else self._live(call, current.doc)
        doc = core.completed(call.served, doc)
        sent = stated(current) if self._empties(call) else None
        at = call.resource, call.subresource
        core.patching.track(at, old, doc, options.manager, core.clock.now(), sent)
        return call.served.to_storage(doc)

    def _live(self, call: Call, doc: Tree) -> Tree:
        """A stored document in the form of the resource, with what upstream stores of it and does not show."""
        return self._core.from_storage(call.served, self._core.rules(call.hub.info).stored(doc))

    def _empties(self, call: Call) -> bool:
        """Whether the body of an update or patch has empty lists or maps that decoding may drop."""
        body = call.request.body
        return not call.resource.custom and bool(_EMPTY_LIST.search(body) or _EMPTY_LABELS.search(body))

    def _creates(self, call: Call) -> bool:
        """Whether an update of the object or of its status creates it if it does not exist."""
        return call.subresource in ("", STATUS) and self._core.rules(call.hub.info).creates_on_update

    async def _run(self, call: Call, change: Change) -> Response:
        made, created = await self.write(call, change)
        return await self._creator.answer(call, made, 201 if created else 200)

    async def write(self, call: Call, change: Change) -> tuple["Stored | Tree", bool]:
        """Make the change. Returns the object, and whether it was created. Raises ApiError."""
        store = self._core.store
        while True:
            current = store.get(call.hub.storage, call.namespace, call.name)
            if current is None:
                return await self._create(call, change), True
            await self._core.prepare(call.served, current)
            try:
                return await self._replace(call, change, current), False
            except (Conflict, NotFound):
                continue

    async def _create(self, call: Call, change: Change) -> "Stored | Tree":
        if not change.creates:
            raise not_found(*call.resource.named, call.name)
        doc = change.produce(None)
        create = replace(call.info, verb="create")
        decision = self._core.security.authorizer.authorize(call.user, create)
        if not decision.allowed:
            raise refusal(call.user, create, decision.reason)
        objects.wipe_system_fields(doc["metadata"])  # upstream, since 1.37: kubernetes#133388
        return await self._creator.insert(call, doc, change.options)

    async def _replace(self, call: Call, change: Change, current: Stored) -> "Stored | Tree":
        core, old = self._core, self._core.from_storage(call.hub, current.doc)
        doc = await core.made(call.served, current, change.produce)
        meta = doc["metadata"]
        namespace = namespace_of(core, call, meta)
        attrs = Attributes(
            "UPDATE", call.resource, change.subresource, namespace, call.name, call.user, doc, old,
            change.options.dry_run, change.options.document("UpdateOptions"), call.warnings,
        )  # fmt: skip
        await core.admission.mutate(attrs)
        core.schemas.forget_empty(call.hub.info, doc)
        objects.drop_repeated_owners(meta, call.warnings, mutated=True)
        self._check_version(call, doc, current)
        objects.match_namespace(meta, call.namespace)
        async with self._creator.around(call, Write(doc, old, change.options.dry_run)):
            return await self._checked(call, change, doc, old, attrs, current)

    async def _checked(
        self, call: Call, change: Change, doc: Tree, old: Tree, attrs: Attributes, current: Stored
    ) -> "Stored | Tree":
        core, hub = self._core, call.hub.info
        self._prepare(call, change, doc, old, current)
        settle_times(old, doc)
        await core.admission.validate(attrs)
        core.rules(hub).on_read(doc)
        doc = objects.ordered(hub, doc)
        kept = await core.stored_version(call.served, doc)
        if change.options.dry_run:
            return kept
        kept["metadata"].pop("selfLink", None)
        gvr = call.hub.storage
        if objects.emptied(doc, old, core.rules(hub)):
            core.store.delete(gvr, call.namespace, call.name, expected=current.revision)
            return doc
        always = current.created and core.rules(hub).completes_on_read(kept)
        check = limit(core.storage_key(hub, current.key), current.revision)
        while True:
            try:
                return core.store.update(
                    gvr, call.namespace, call.name, kept, current.revision, always=always, check=check
                )
            except TooLarge as error:
                kept = smaller(kept, error, applied=call.content_type in APPLY_TYPES)

    def _prepare(self, call: Call, change: Change, doc: Tree, old: Tree, current: Stored) -> None:
        """Apply the kind's strategy. Raises ApiError 422."""
        core, hub = self._core, call.hub.info
        context = Context(format_time(core.clock.now()), call.user)
        if change.subresource == STATUS:
            rules = core.rules(call.ruled)
            rules.prepare_status(doc, old, context)
            errors = [*core.kinds.of(hub).check_access(core, call, doc, old), *rules.validate_status(doc, old)]
            if errors and core.settings.ratchets:
                errors = _fresh(errors, rules.validate_status(old, old))
            warnings = [] if errors else rules.warn_status(doc, old)
        else:
            rules = core.rules(call.ruled, "" if change.subresource == SCALE else change.subresource)
            rules.prepare_update(doc, old, context)
            stated = change.stated if call.resource is hub and not hub.custom else None
            same = doc["metadata"].get("generation") == old["metadata"].get("generation")
            if rules.empty_counts and same and stated is not None and states_empty(doc, stated(current)):
                bump_generation(doc, old)
            errors = rules.validate_update(doc, old)
            if errors and core.settings.ratchets:
                errors = _fresh(errors, rules.validate_update(old, old))
            warnings = [] if errors else rules.warn(doc, old)
        if errors:
            call.warnings += rules.warn_refused(doc, old, errors)
            raise invalid(hub, doc["metadata"].get("name") or "", errors)
        call.warnings += warnings

    def _check_version(self, call: Call, doc: Tree, current: Stored) -> None:
        """Optimistic concurrency, if the client states a resourceVersion. Raises ApiError 409, 422."""
        version = stated_version(doc["metadata"])
        if version == 0:
            if self._core.rules(call.hub.info).needs_version_on_update:
                error = field_errors.invalid("metadata.resourceVersion", 0, "must be specified for an update")
                raise invalid_kind(call.resource.gvr.group, call.resource.gvr.plural, call.name, [error])
            doc["metadata"]["resourceVersion"] = str(current.revision)
            return
        if version != current.revision:
            raise outdated(call.resource, call.name)

    def _default(self, call: Call, doc: Tree, current: Stored | None) -> None:
        if current is not None and call.subresource == STATUS:
            self._core.default_status(call.resource, doc, current.doc)
        else:
            self._core.default(call.resource, doc)

    def _decoded(self, call: Call, options: WriteOptions, warnings: list[str], current: Stored | None) -> Tree:
        resource = call.resource
        doc: Tree
        doc, notes = self._core.schemas.decode_body(resource, call.request.body, call.content_type, options.validation)
        warnings += notes
        meta: Tree = doc.setdefault("metadata", {})
        self._default(call, doc, current)
        self._check_identity(call, doc)
        objects.drop_repeated_owners(meta, warnings, mutated=False)
        return doc

    def _check_identity(self, call: Call, doc: Tree) -> None:
        objects.match_namespace(doc["metadata"], call.namespace)
        objects.check_name(doc["metadata"], call.name)

    def check_uid(self, call: Call, uid: str | None, current: Stored | None, *, dry_run: bool) -> None:
        """Raises ApiError 409 if the client states another uid than the stored object's."""
        known = current.doc["metadata"]["uid"] if current is not None else ""  # type: ignore[index]
        if uid and uid != known:
            name = object_key(call.namespace, call.name)
            key = self._core.storage_key(call.hub.info, name, dry_run=dry_run)
            raise storage_conflict(call.resource, call.name, key, "UID", uid, known)

    def check_patch_type(self, call: Call, media: str) -> None:
        """Raises ApiError 415."""
        if media not in _PATCH_TYPES and (media != STRATEGIC_MERGE or call.resource.custom):
            if call.resource.custom:
                raise unsupported_media_type(", ".join((*_PATCH_TYPES, *APPLY_TYPES)))
            known = (*_PATCH_TYPES, STRATEGIC_MERGE, *APPLY_TYPES)
            if any(part.partition(";")[0].strip() in known for part in call.content_type.split(",")):
                raise unsupported_media_type(", ".join(known))  # the router knows one of several, with spaces
            raise unsupported_patch()


def _fresh(errors: Sequence[FieldError], known: Sequence[FieldError]) -> list[FieldError]:
    """The errors that the stored object does not have."""
    there = {(error.type, error.field) for error in known}
    return [error for error in errors if (error.type, error.field) not in there]


def states_empty(doc: Tree, stated: Tree) -> bool:
    """Whether a request states empty lists or maps, outside of metadata and status, that decoding has dropped.

    To upstream an empty slice is no absent one when it compares objects.
    """
    return _drops_empty(doc, {key: part for key, part in stated.items() if key not in ("metadata", "status")})


def _drops_empty(value: object, stated: object) -> bool:
    if isinstance(value, dict) and isinstance(stated, dict):
        parts = ((value.get(key), part) for key, part in stated.items())
        return any((part in ([], {}) and kept is None) or _drops_empty(kept, part) for kept, part in parts)
    if isinstance(value, list) and isinstance(stated, list) and len(value) == len(stated):
        return any(_drops_empty(part, below) for part, below in zip(value, stated, strict=True))
    return False
