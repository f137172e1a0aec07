"""What the registry asks of this package: patches, and who owns which field."""

from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.apply import patches, strategic
from kcm_cli.sandbox.apiserver.apply.patches import Patched
from kcm_cli.sandbox.apiserver.schema import Schemas, Target, target_of
from kcm_cli.sandbox.apiserver.schema.bodies import WARN
from kcm_cli.sandbox.apiserver.types import ApiError, ResourceInfo


class Patching:
    """Patches of one server's kinds."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._patches = patches.Patches(schemas)

    def patch(
        self,
        resource: ResourceInfo,
        current: Doc,
        body: bytes,
        content_type: str,
        mode: str = WARN,
        *,
        target: Target | None = None,
    ) -> Patched:
        """Apply a JSON, merge or strategic merge patch.

        ``current`` is the live object (in the path's version, kind and apiVersion set) as a copy of the caller's
        own: it is changed. The result is normalised, but has no defaults. Raises ApiError: 400 for a malformed
        patch, 422 for one that does not apply or makes an object of wrong type, 500 as the real server does for
        some strategic patches, 415 for another content type.
        """
        return self._patches.apply(target or target_of(resource), current, body, content_type, mode or WARN)

    def strategic_merge(self, resource: ResourceInfo, current: Doc, patch: Doc) -> Doc:
        """The merged document, not normalised. Both documents are changed. Raises ApiError."""
        node = self._schemas.node(target_of(resource))
        if node is None:
            raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})
        try:
            return strategic.merge(node, current, patch)
        except strategic.StrategicError as error:
            raise patches.strategic_refusal(error) from None
