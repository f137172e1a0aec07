"""The scale subresource: reads an object as a Scale, and sets the object's replicas.

upstream: pkg/registry/apps/{deployment,replicaset,statefulset}/storage, pkg/registry/core/replicationcontroller,
apiextensions-apiserver pkg/registry/customresource/etcd.go#ScaleREST (v1.36)
"""

from collections.abc import Callable
from typing import cast

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.rest.transport import Response
from kcm_cli.sandbox.apiserver.apply import scale_owners
from kcm_cli.sandbox.apiserver.apply.patches import Configuration
from kcm_cli.sandbox.apiserver.apply.patching import Applied
from kcm_cli.sandbox.apiserver.apply.serverside import check_kind, described
from kcm_cli.sandbox.apiserver.apply.tracking import without_managed
from kcm_cli.sandbox.apiserver.errors import bad_request, conflict, internal, invalid_kind, not_found, precondition
from kcm_cli.sandbox.apiserver.registry import objects
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.catalog import Served
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.registry.options import APPLY_TYPES, WriteOptions, write_options
from kcm_cli.sandbox.apiserver.registry.reading import fetch
from kcm_cli.sandbox.apiserver.registry.scale_form import replicas_path, scale_of, set_replicas, shows_replicas
from kcm_cli.sandbox.apiserver.registry.updating import SCALE, Change, Updater
from kcm_cli.sandbox.apiserver.schema import Target
from kcm_cli.sandbox.apiserver.store import Stored
from kcm_cli.sandbox.apiserver.types import ApiError, ResourceInfo, Tree
from kcm_cli.sandbox.apiserver.validation import errors

_SCALE = Target("autoscaling", "v1", "Scale")
_KIND = "autoscaling/v1, Kind=Scale"
_SCALES = ResourceInfo(
    GVR("autoscaling", "v1", "scales"), "Scale", "scale", True, frozenset(["get", "update", "patch"])
)
_UNSET = -(1 << 31)
"""The replicas in the Scale of a custom object without replicas. A patch has to set them."""
_NO_CUSTOM_APPLY = "to proper version: request to convert CR to an invalid group/version: autoscaling/v1"

Make = Callable[[Tree], Tree]
"""Maps the current Scale to the new one."""


class Scaling:
    """Handles get, update and patch of scales."""

    def __init__(self, core: Core, updater: Updater) -> None:
        self._core = core
        self._updater = updater

    async def get(self, call: Call) -> Response:
        """GET. Raises ApiError 404; 500 for a custom object without replicas."""
        stored = fetch(self._core, call)
        await self._core.prepare(call.served, stored)
        doc: Tree = self._core.from_storage(call.hub, stored.doc)
        if call.served.info.custom and not shows_replicas(call.served, doc):
            raise internal(f'the spec replicas field "{_shown_path(call.served)}" does not exist')
        return call.media.document(200, self._scale(call, doc))

    async def update(self, call: Call) -> Response:
        """PUT. Raises ApiError."""
        options = write_options("UpdateOptions", call.request, call.query)
        scale: Tree
        scale, call.warnings[len(call.warnings) :] = self._core.schemas.decode_body(
            call.resource, call.request.body, call.content_type, options.validation, target=_SCALE
        )
        scale.setdefault("metadata", {})
        self._same(call, scale)
        return await self._write(call, options, lambda current: self._tracked(current, _copy(scale), options))

    async def patch(self, call: Call) -> Response:
        """PATCH. Raises ApiError."""
        media = call.content_type.partition(";")[0]
        if media in APPLY_TYPES:
            return await self._apply(call)
        self._updater.check_patch_type(call, media)
        options = write_options("PatchOptions", call.request, call.query)
        before = list(call.warnings)

        def patched(current: Tree) -> Tree:
            done = self._core.patching.patch(
                call.resource, _copy(current), call.request.body, media, options.validation, target=_SCALE
            )
            call.warnings[:] = before + done.warnings
            return self._same(call, self._tracked(current, done.doc, options))

        return await self._write(call, options, patched)

    async def _apply(self, call: Call) -> Response:
        core, options = self._core, write_options("PatchOptions", call.request, call.query, apply=True)
        configuration = Configuration(call.request.body, options.validation)
        before = list(call.warnings)

        def make(current: Tree) -> Tree:
            applied = configuration.doc
            if call.resource.custom:
                check_kind(applied, _SCALE.api_version, _SCALE.kind)
                _check_managed(current)
            now = core.clock.now()
            wanted = Applied(applied, options.manager, options.force)
            scale: Tree = core.patching.apply(_SCALES, SCALE, current, wanted, now)
            if call.resource.custom and without_managed(scale) != without_managed(current):
                raise ApiError(500, "", f"failed to convert new object ({described(applied)}) {_NO_CUSTOM_APPLY}")
            call.warnings[:] = before + configuration.judge()
            return self._same(call, scale)

        return await self._write(call, options, make)

    def _scale(self, call: Call, doc: Tree) -> Tree:
        return scale_of(self._core.kinds.of(call.resource), call.served, doc)

    def _same(self, call: Call, scale: Tree) -> Tree:
        """The Scale, after checking that it has the name and namespace of the path. Raises ApiError 400."""
        objects.match_namespace(scale["metadata"], call.namespace)
        objects.check_name(scale["metadata"], call.name)
        return scale

    def _tracked(self, current: Tree, scale: Tree, options: WriteOptions) -> Tree:
        self._core.patching.track((_SCALES, SCALE), current, scale, options.manager, self._core.clock.now())
        return scale

    async def _write(self, call: Call, options: WriteOptions, make: Make) -> Response:
        def produce(current: Stored | None) -> Tree:
            if current is None:
                raise not_found(*call.resource.named, call.name)
            doc: Tree = self._core.from_storage(call.hub, current.copy())
            self._scaled(call, doc, make, current, dry_run=options.dry_run)
            if call.resource.custom:
                self._core.default(call.hub.info, doc)
            return doc

        made, _ = await self._updater.write(call, Change(produce, options, SCALE))
        return call.media.document(200, self._scale(call, made.doc if isinstance(made, Stored) else made))

    def _scaled(self, call: Call, doc: Tree, make: Make, current: Stored, *, dry_run: bool) -> None:
        """Change the parent by its Scale. Raises ApiError."""
        served, meta = call.served, doc["metadata"]
        live, owners = self._scale(call, doc), meta.pop("managedFields", None)
        if replicas_owners := scale_owners.of_scale(owners, lambda version: _place(call, version)):
            live["metadata"]["managedFields"] = replicas_owners
        if call.resource.custom and not shows_replicas(served, doc):
            live["spec"]["replicas"] = _UNSET
        scale = make(live)
        replicas = (scale.get("spec") or {}).get("replicas") or 0
        if call.resource.custom and replicas == _UNSET:
            raise bad_request(f'the spec replicas field "{_shown_path(served)}" cannot be empty')
        if replicas < 0 and not call.resource.custom:
            error = errors.invalid("spec.replicas", replicas, errors.NEGATIVE)
            raise invalid_kind(_SCALE.group, _SCALE.kind, call.name, [error])
        asked = scale.get("metadata") or {}
        if call.info.verb == "update":
            self._updater.check_uid(call, asked.get("uid"), current, dry_run=dry_run)
        elif not call.resource.custom:
            _check_uid(call, asked.get("uid"), meta["uid"])
        meta["resourceVersion"] = asked.get("resourceVersion") or str(current.revision)
        set_replicas(served, doc, replicas)
        mine = asked.get("managedFields")
        left = scale_owners.of_parent(owners, mine, call.resource.api_version, lambda version: _place(call, version))
        if left:
            meta["managedFields"] = left


def _shown_path(served: Served) -> str:
    return ".".join(("", *replicas_path(served)))


def _place(call: Call, version: str) -> tuple[str, ...] | None:
    group = version.rpartition("/")[0]
    return replicas_path(call.served) if group == call.resource.gvr.group else None


def _check_uid(call: Call, uid: str | None, known: str) -> None:
    """Raises ApiError 409 if a patch states another uid than the object's."""
    if uid and uid != known:
        gvr = call.resource.gvr
        raise conflict(gvr.group, f"{gvr.plural}/{SCALE}", call.name, precondition("UID", uid, known))


def _check_managed(live: Tree) -> None:
    """Applying the Scale of a custom object requires that its replicas have a manager. Raises ApiError."""
    if not live["metadata"].get("managedFields"):
        start = "failed to create manager for existing fields"
        raise ApiError(500, "", f"{start}: failed to convert live object (/; {_KIND}) {_NO_CUSTOM_APPLY}")


def _copy(doc: Tree) -> Tree:
    return cast("Tree", codec.decode_doc(codec.encode(doc)))
