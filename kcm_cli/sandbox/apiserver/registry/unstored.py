"""Creations whose objects are not stored: reviews, bindings, evictions, tokens. Their kinds make the response."""

from kcm_cli.sandbox.apiserver.registry import objects
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.registry.options import WriteOptions
from kcm_cli.sandbox.apiserver.schema import Target
from kcm_cli.sandbox.apiserver.types import Attributes, ResourceInfo, Tree


def received(core: Core, call: Call, options: WriteOptions, target: Target | None = None) -> Tree:
    """The object in the body, in the namespace of the request. target: its kind, if not the resource's. Raises
    ApiError."""
    doc: Tree
    doc, warnings = core.schemas.decode_body(
        call.resource, call.request.body, call.content_type, options.validation, target=target
    )
    call.warnings += warnings
    objects.match_namespace(doc.setdefault("metadata", {}), call.namespace)
    return doc


def track(core: Core, call: Call, options: WriteOptions, doc: Tree, resource: ResourceInfo | None = None) -> None:
    """Set the managedFields of the object. resource: that of its kind, if not the request's."""
    at = resource or call.resource, call.subresource
    core.patching.track(at, None, doc, options.manager, core.clock.now())


async def mutated(core: Core, call: Call, options: WriteOptions, name: str, doc: Tree) -> Attributes:
    """Run mutating admission. The result is for ``core.admission.validate``, which upstream calls after the checks of
    the kind. Raises ApiError."""
    attrs = Attributes(
        "CREATE", call.resource, call.subresource, call.namespace, name, call.user, doc, None,
        options.dry_run, options.document("CreateOptions"), call.warnings,
    )  # fmt: skip
    await core.admission.mutate(attrs)
    return attrs
