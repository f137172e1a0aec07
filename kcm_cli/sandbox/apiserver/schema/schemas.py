"""The types of one server: those of the built-in kinds, and of its custom resources."""

from collections.abc import Iterable
from functools import cache

from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.schema.bodies import WARN, Bodies, Target, parse, target_of
from kcm_cli.sandbox.apiserver.schema.decode import Normalizers
from kcm_cli.sandbox.apiserver.schema.load import BuiltIn
from kcm_cli.sandbox.apiserver.schema.model import Node
from kcm_cli.sandbox.apiserver.schema.transient import Transient
from kcm_cli.sandbox.apiserver.types import ApiError, ResourceInfo, Tree

_STORED_AS_JSON = "apiextensions.k8s.io"


@cache
def _shared() -> tuple[BuiltIn, Normalizers, Transient]:
    """The built-in types and what is compiled for them as they are used, shared by all servers of a process."""
    return BuiltIn(), Normalizers(), Transient()


class Schemas(Bodies):
    """The types of kinds, and the decoding of their bodies.

    ``changes`` is incremented when a custom kind is added, changed or removed: cached types are then invalid.
    """

    def __init__(self, declared: Iterable[tuple[Target, Doc]] = ()) -> None:
        """declared: the schemas of kinds that are not recorded."""
        builtin, normalizers, self._transient = _shared()
        for target, schema in declared:
            builtin.declare((target.group, target.version, target.kind), schema)
        super().__init__(builtin, normalizers)
        self.changes = 0

    def is_custom(self, target: Target) -> bool:
        """Whether a kind is a custom one."""
        return target in self.custom

    def decode_body(
        self,
        resource: ResourceInfo,
        data: bytes,
        content_type: str = "application/json",
        mode: str = WARN,
        *,
        target: Target | None = None,
    ) -> tuple[Tree, list[str]]:
        """A POST or PUT body as a normalised document, and the texts for Warning headers.

        ``mode``: the fieldValidation directive (empty: Warn); ``target``: the kind that a subresource accepts, if it
        is not that of its resource (``Target("autoscaling", "v1", "Scale")``). The document's kind and apiVersion are
        set. Raises ApiError (400).
        """
        return self.decode(target or target_of(resource), data, content_type, mode or WARN)

    def stated(self, resource: ResourceInfo, data: bytes, content_type: str) -> Tree:
        """The document of a valid body as the client wrote it: with unknown fields, nulls and empty values."""
        return parse(target_of(resource), data, content_type).doc

    def node(self, target: Target) -> Node | None:
        """The type of a kind, or None."""
        kind = self.custom.get(target)
        return self.builtin_node(target) if kind is None else kind.node

    def forget_empty(self, resource: ResourceInfo, doc: Doc) -> None:
        """Set the empty lists and maps of a document that storing loses to null, in place (see ``transient``)."""
        if not resource.custom and resource.gvr.group != _STORED_AS_JSON:
            node = self.builtin_node(target_of(resource))
            if node is not None:
                self._transient.forget(node, doc)

    def finish_applied(self, target: Target, doc: Doc, described: str) -> Doc:
        """``finish_merged`` for the result of a server-side apply; ``described`` names the object in errors."""

        def refuse(text: str) -> ApiError:
            kind = described.partition("; ")[2]
            why = f"unable to convert unstructured object to {kind}: {text}"
            return ApiError(500, "", f"failed to convert new object ({described}) to proper version: {why}")

        return self.finish_merged(target, doc, refuse)[0]
