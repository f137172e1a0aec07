"""Create, update and patch."""

import uuid

from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.times import format_time
from kcm_cli.rest.transport import Response
from kcm_cli.sandbox.apiserver.registry import refusals
from kcm_cli.sandbox.apiserver.registry.answers import ordered
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.registry.parts import merge_patch
from kcm_cli.sandbox.apiserver.registry.reading import fetch
from kcm_cli.sandbox.apiserver.store import AlreadyExists, Conflict
from kcm_cli.sandbox.apiserver.types import Attributes, invalid


class Writer:
    """Answers create, update and patch."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def create(self, call: Call) -> Response:
        parts = self._core.parts
        resource = call.resource
        doc, warnings = parts.schema.decode_body(
            resource, call.request.body, call.request.headers.get("content-type", ""), "Strict"
        )
        call.warnings += warnings
        doc = ordered(resource, doc)
        meta = doc.setdefault("metadata", {})
        meta.pop("resourceVersion", None)
        if resource.namespaced:
            meta["namespace"] = call.namespace
        if not meta.get("name") and meta.get("generateName"):
            letters = "bcdfghjklmnpqrstvwxz2456789"
            meta["name"] = meta["generateName"] + "".join(self._core.random.choice(letters) for _ in range(5))
        meta["uid"] = str(uuid.UUID(int=self._core.random.getrandbits(128), version=4))
        meta["creationTimestamp"] = format_time(self._core.clock.now())
        parts.defaulting.apply(resource, doc)
        strategy = parts.strategies.for_resource(resource)
        attrs = Attributes("CREATE", resource, "", call.namespace, meta["name"], call.user, doc, None, call.dry_run)
        await parts.admission.mutate(attrs)
        strategy.prepare_create(doc)
        errors = strategy.validate_create(doc)
        if errors:
            raise invalid(resource, meta["name"], errors)
        await parts.admission.validate(attrs)
        if call.dry_run:
            return call.media.document(201, doc)
        try:
            stored = self._core.store.create(call.served.storage, call.namespace, meta["name"], doc)
        except AlreadyExists:
            raise refusals.already_exists(resource, meta["name"]) from None
        return call.media.object(201, stored)

    async def update(self, call: Call) -> Response:
        doc, warnings = self._core.parts.schema.decode_body(
            call.resource, call.request.body, call.request.headers.get("content-type", ""), "Strict"
        )
        call.warnings += warnings
        return await self._replace(call, doc)

    async def patch(self, call: Call) -> Response:
        stored = fetch(self._core, call)
        patch, _ = self._core.parts.schema.decode_body(call.resource, call.request.body, "application/json", "Ignore")
        return await self._replace(call, merge_patch(stored.copy(), patch))

    async def _replace(self, call: Call, doc: Doc) -> Response:
        parts = self._core.parts
        resource = call.resource
        current = fetch(self._core, call)
        old = current.doc
        doc = ordered(resource, doc)
        meta = doc["metadata"]
        version = meta.get("resourceVersion")
        for key in ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "namespace"):
            if key in old["metadata"]:
                meta[key] = old["metadata"][key]
        strategy = parts.strategies.for_resource(resource)
        parts.defaulting.apply(resource, doc)
        if call.info.subresource == "status":
            strategy.prepare_status(doc, old)
        else:
            strategy.prepare_update(doc, old)
        attrs = Attributes(
            "UPDATE", resource, call.info.subresource, call.namespace, meta["name"], call.user, doc, old, call.dry_run
        )
        await parts.admission.mutate(attrs)
        errors = strategy.validate_update(doc, old)
        if errors:
            raise invalid(resource, meta["name"], errors)
        await parts.admission.validate(attrs)
        gvr = call.served.storage
        if meta.get("deletionTimestamp") and not meta.get("finalizers"):
            return call.media.object(200, self._core.store.delete(gvr, call.namespace, call.info.name, final_doc=doc))
        try:
            stored = self._core.store.update(
                gvr, call.namespace, call.info.name, doc, int(version) if version else current.revision
            )
        except Conflict:
            raise refusals.outdated(resource, call.info.name) from None
        return call.media.object(200, stored)
