"""Dispatches requests to the handlers of verbs and subresources."""

from collections.abc import Awaitable, Callable

from kcm_cli.api.resource import GVR
from kcm_cli.rest.transport import Response, Stream
from kcm_cli.sandbox.apiserver.errors import method_not_allowed
from kcm_cli.sandbox.apiserver.registry import connecting, kubelet, objects
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.components import Components
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.registry.creating import Creator
from kcm_cli.sandbox.apiserver.registry.deleting import Deleter
from kcm_cli.sandbox.apiserver.registry.media import KUBELET
from kcm_cli.sandbox.apiserver.registry.options import WriteOptions, write_options
from kcm_cli.sandbox.apiserver.registry.pods import PodWrites
from kcm_cli.sandbox.apiserver.registry.reading import Reader
from kcm_cli.sandbox.apiserver.registry.scale import Scaling
from kcm_cli.sandbox.apiserver.registry.updating import Updater
from kcm_cli.sandbox.apiserver.registry.watching import Watching
from kcm_cli.sandbox.apiserver.schema import Target
from kcm_cli.sandbox.apiserver.security import token_requests
from kcm_cli.sandbox.apiserver.security.assembly import Security
from kcm_cli.sandbox.apiserver.types import Attributes, ResourceInfo, Tree
from kcm_cli.sandbox.kubelet_api.server import KubeletApi

_PARTS = ("status", "finalize", "approval", "ephemeralcontainers", "resize")
_TOKEN_REQUEST = Target("authentication.k8s.io", "v1", "TokenRequest")
_TOKEN_REQUESTS = ResourceInfo(
    GVR("authentication.k8s.io", "v1", "tokenrequests"), "TokenRequest", "tokenrequest", True, frozenset(["create"])
)

Handler = Callable[[Call], Awaitable[Response | Stream]]


class Verbs:
    """Handles requests that have been routed. deletion_gap_s: see ``deleting.Deleter``."""

    def __init__(self, core: Core, security: Security, deletion_gap_s: float = 0.0) -> None:
        self._core = core
        self._security = security
        creator = Creator(core)
        reader, deleter, updater = Reader(core), Deleter(core, deletion_gap_s), Updater(core, creator)
        pods, scaling = PodWrites(core, deleter), Scaling(core, updater)
        self.watching = Watching(core)
        self.components = Components()
        self.inside = KubeletApi(core.store, core.clock, security.token_requests.create)
        self._main: dict[str, Handler] = {
            "get": reader.get,
            "list": reader.list,
            "watch": self.watching.watch,
            "create": creator.create,
            "update": updater.update,
            "patch": updater.patch,
            "delete": deleter.delete,
            "deletecollection": deleter.delete_collection,
        }
        part: dict[str, Handler] = {"get": reader.get, "update": updater.update, "patch": updater.patch}
        self._parts: dict[str, dict[str, Handler]] = dict.fromkeys(_PARTS, part) | {
            "scale": {"get": scaling.get, "update": scaling.update, "patch": scaling.patch},
            "binding": {"create": pods.bind},
            "eviction": {"create": pods.evict},
            "token": {"create": self._token},
        }
        self._special: dict[tuple[str, str], Handler] = {
            ("", "bindings"): pods.bind,
            ("", "componentstatuses"): self.components.answer,
        }

    async def run(self, call: Call) -> Response | Stream:
        """Handle a request. Raises ApiError."""
        if call.subresource:
            if call.subresource in KUBELET:
                if call.subresource != "log":
                    await connecting.admit(self._core, call)
                return await kubelet.answer(self._core, self.inside, call)
            handler = self._parts[call.subresource].get(call.info.verb)
        else:
            gvr = call.resource.gvr
            handler = self._special.get((gvr.group, gvr.plural))
            if handler is None and self._security.reviews.answers(gvr.group, gvr.plural):
                handler = self._review
            handler = handler or self._main.get(call.info.verb)
        if handler is None:
            raise method_not_allowed()
        return await handler(call)

    async def _review(self, call: Call) -> Response:
        options = write_options("CreateOptions", call.request, call.query)
        doc, warnings = self._core.schemas.decode_body(
            call.resource, call.request.body, call.content_type, options.validation
        )
        call.warnings += warnings
        meta: Tree = doc.setdefault("metadata", {})
        objects.wipe_system_fields(meta)
        objects.match_namespace(meta, call.namespace)
        self._core.patching.track_update(
            self._core.patching.place(call.resource, ""), None, doc, options.manager, self._core.clock.now()
        )
        await self._admit(call, meta.get("name") or "", doc, options)
        made = self._security.reviews.create(call.resource.gvr.plural, doc, call.user, call.warnings)
        return call.media.document(201, made)

    async def _admit(self, call: Call, name: str, doc: Tree, options: WriteOptions) -> None:
        """Run admission for a create whose object is not stored. Raises ApiError."""
        attrs = Attributes(
            "CREATE", call.resource, call.subresource, call.namespace, name, call.user, doc, None,
            options.dry_run, options.document("CreateOptions"), call.warnings,
        )  # fmt: skip
        await self._core.admission.mutate(attrs)
        await self._core.admission.validate(attrs)

    async def _token(self, call: Call) -> Response:
        options = write_options("CreateOptions", call.request, call.query)
        doc, warnings = self._core.schemas.decode_body(
            call.resource, call.request.body, call.content_type, options.validation, target=_TOKEN_REQUEST
        )
        call.warnings += warnings
        meta: Tree = doc.setdefault("metadata", {})
        objects.match_namespace(meta, call.namespace)
        token_requests.default(doc)
        now = self._core.clock.now()
        self._core.patching.track_update(
            self._core.patching.place(_TOKEN_REQUESTS, call.subresource), None, doc, options.manager, now
        )
        await self._admit(call, call.name, doc, options)
        made = self._security.token_requests.create(call.namespace, call.name, doc)
        return call.media.document(201, made)
