"""The scale subresource: a Scale made of an object, and the object's replicas set through it.

upstream: pkg/registry/apps/{deployment,replicaset,statefulset}/storage, pkg/registry/core/replicationcontroller,
apiextensions-apiserver pkg/registry/customresource/etcd.go#ScaleREST (v1.36)
"""

from collections.abc import Callable

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.rest.transport import Response
from kcm_cli.sandbox.apiserver.refusals import invalid_kind
from kcm_cli.sandbox.apiserver.registry import objects, refusals
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.registry.options import APPLY_TYPES, WriteOptions, write_options
from kcm_cli.sandbox.apiserver.registry.reading import fetch
from kcm_cli.sandbox.apiserver.registry.scale_form import scale_of, set_replicas
from kcm_cli.sandbox.apiserver.registry.updating import SCALE, Change, Updater
from kcm_cli.sandbox.apiserver.schema import Target
from kcm_cli.sandbox.apiserver.store import Stored
from kcm_cli.sandbox.apiserver.types import ResourceInfo, Tree
from kcm_cli.sandbox.apiserver.validation import errors

_SCALE = Target("autoscaling", "v1", "Scale")
_RESOURCE = ResourceInfo(GVR(_SCALE.group, _SCALE.version, "scales"), _SCALE.kind, "scale", True, frozenset())


class Scaling:
    """Answers get, update and patch of scales."""

    def __init__(self, core: Core, updater: Updater) -> None:
        self._core = core
        self._updater = updater

    async def get(self, call: Call) -> Response:
        """Raises ApiError 404."""
        doc: Tree = self._core.from_storage(call.hub, fetch(self._core, call).doc)
        return call.media.document(200, scale_of(call.served, doc))

    async def update(self, call: Call) -> Response:
        """PUT. Raises ApiError."""
        options = write_options("UpdateOptions", call.request, call.query)
        scale: Tree
        scale, call.warnings[len(call.warnings) :] = self._core.schemas.decode_body(
            call.resource, call.request.body, call.content_type, options.validation, target=_SCALE
        )
        meta: Tree = scale.setdefault("metadata", {})
        objects.match_namespace(meta, call.namespace)
        objects.check_name(meta, call.name)
        return await self._write(call, options, lambda current: scale)

    async def patch(self, call: Call) -> Response:
        """PATCH. Raises ApiError."""
        media = call.content_type.partition(";")[0].strip()
        applies = media in APPLY_TYPES
        options = write_options("PatchOptions", call.request, call.query, apply=applies)
        if applies:
            applied: Tree = self._core.patching.applied(_RESOURCE, call.request.body, options.validation, call.warnings)
            return await self._write(call, options, lambda current: self._applied(call, current, applied, options))

        def patched(current: Tree) -> Tree:
            done = self._core.patching.patch(
                call.resource, current, call.request.body, media, options.validation, target=_SCALE
            )
            call.warnings[:] = done.warnings
            doc: Tree = done.doc
            objects.match_namespace(doc["metadata"], call.namespace)
            objects.check_name(doc["metadata"], call.name)
            return doc

        return await self._write(call, options, patched)

    def _applied(self, call: Call, current: Tree, applied: Tree, options: WriteOptions) -> Tree:
        """The scale with the configuration applied; whose the replicas were is seen when the object is written."""
        now = self._core.clock.now()
        scale: Tree = self._core.patching.apply(_RESOURCE, SCALE, current, applied, options.manager, True, now)
        objects.check_name(scale["metadata"], call.name)
        return scale

    async def _write(self, call: Call, options: WriteOptions, make: Callable[[Tree], Tree]) -> Response:
        def produce(current: Stored | None) -> Tree:
            if current is None:
                raise refusals.not_found(call.resource, call.name)
            doc: Tree = self._core.from_storage(call.hub, current.copy())
            scale = make(codec.decode_doc(codec.encode(scale_of(call.served, doc))))
            replicas = (scale.get("spec") or {}).get("replicas") or 0
            if replicas < 0:
                error = errors.invalid("spec.replicas", replicas, errors.NEGATIVE)
                raise invalid_kind(_SCALE.group, _SCALE.kind, call.name, [error])
            version = (scale.get("metadata") or {}).get("resourceVersion")
            doc["metadata"]["resourceVersion"] = version or str(current.revision)
            set_replicas(call.served, doc, replicas)
            now, old = self._core.clock.now(), self._core.from_storage(call.hub, current.doc)
            self._core.patching.track_update(call.resource, SCALE, old, doc, options.manager, now)
            return doc

        # The parent is what is written; its own rules apply.
        made, _ = await self._updater.write(call, Change(produce, options, SCALE))
        return call.media.document(200, scale_of(call.served, made.doc if isinstance(made, Stored) else made))
