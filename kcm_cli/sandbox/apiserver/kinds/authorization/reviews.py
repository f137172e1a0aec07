"""The kinds of authentication.k8s.io and authorization.k8s.io: reviews, which are not stored.

upstream: pkg/registry/{authentication,authorization} (v1.36)
"""

from collections.abc import Callable

from kcm_cli.machinery.codec import Doc
from kcm_cli.rest.transport import Response
from kcm_cli.sandbox.apiserver.registry import objects
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core, Kind
from kcm_cli.sandbox.apiserver.registry.options import write_options
from kcm_cli.sandbox.apiserver.registry.unstored import mutated, received, track
from kcm_cli.sandbox.apiserver.security.reviews import Reviews
from kcm_cli.sandbox.apiserver.types import User

_AUTHENTICATION, _AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"


def _kind(group: str, resource: str, review: Callable[[Reviews, Doc, User, list[str]], Doc]) -> Kind:
    """A kind of reviews, each of which is completed by a function."""

    async def create(core: Core, call: Call) -> Response:
        options = write_options("CreateOptions", call.request, call.query)
        doc = received(core, call, options)
        objects.wipe_system_fields(doc["metadata"])
        track(core, call, options, doc)
        await core.admission.validate(await mutated(core, call, options, doc["metadata"].get("name") or "", doc))
        return call.media.document(201, review(core.security.reviews, doc, call.user, call.warnings))

    return Kind(group, resource, handlers={"": create})


KINDS = (
    _kind(_AUTHENTICATION, "tokenreviews", Reviews.token),
    _kind(_AUTHENTICATION, "selfsubjectreviews", Reviews.own_user),
    _kind(_AUTHORIZATION, "subjectaccessreviews", Reviews.access),
    _kind(_AUTHORIZATION, "localsubjectaccessreviews", Reviews.local_access),
    _kind(_AUTHORIZATION, "selfsubjectaccessreviews", Reviews.own_access),
    _kind(_AUTHORIZATION, "selfsubjectrulesreviews", Reviews.own_rules),
)
