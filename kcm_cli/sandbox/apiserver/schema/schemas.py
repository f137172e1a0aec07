"""The shapes that one server knows: the built-in ones, and those of its custom resources."""

from collections.abc import Callable, Collection
from functools import cache

from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.schema.bodies import WARN, Bodies, CustomTypes, Target, parse, target_of
from kcm_cli.sandbox.apiserver.schema.decode import Normalizers
from kcm_cli.sandbox.apiserver.schema.load import BuiltIn
from kcm_cli.sandbox.apiserver.schema.model import Node
from kcm_cli.sandbox.apiserver.schema.transient import Transient
from kcm_cli.sandbox.apiserver.types import ApiError, ResourceInfo, Tree

_STORED_AS_JSON = "apiextensions.k8s.io"


@cache
def _shared() -> tuple[BuiltIn, Normalizers, Transient]:
    """The built-in types and what is made for them, which fill as they are used: one for all servers of a process."""
    return BuiltIn(), Normalizers(), Transient()


class Schemas:
    """Answers what a kind looks like and decodes bodies of it.

    ``changes`` grows when a custom type comes, goes or changes: what was kept of the types is then out of date.
    """

    def __init__(self) -> None:
        self.builtin, self.normalizers, self._transient = _shared()
        self.bodies = Bodies(self.builtin, self.normalizers)
        self.changes = 0

    @property
    def custom(self) -> CustomTypes | None:
        """The custom kinds; to be set once."""
        return self.bodies.custom

    @custom.setter
    def custom(self, types: CustomTypes) -> None:
        self.bodies.custom = types

    def is_custom(self, target: Target) -> bool:
        """Whether a kind is a custom one."""
        return self.custom is not None and self.custom.has(target)

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

        ``mode`` is the fieldValidation directive (empty: Warn); ``target`` the kind where a subresource takes
        another than its resource (``Target("autoscaling", "v1", "Scale")``). The document's kind and
        apiVersion are set. Raises ApiError (400).
        """
        return self.bodies.decode(target or target_of(resource), data, content_type, mode or WARN)

    def stated(self, resource: ResourceInfo, data: bytes, content_type: str) -> Tree:
        """A body that can be decoded as its client wrote it: unknown fields, nulls and empty values included."""
        return parse(target_of(resource), data, content_type).doc

    def node(self, target: Target) -> Node | None:
        """The type of a kind, or None."""
        if self.custom is not None and self.custom.has(target):
            return self.custom.node(target)
        definition = self.builtin.definition(target.group, target.version, target.kind)
        return None if definition is None else self.builtin.node(definition)

    def forget_empty(self, resource: ResourceInfo, doc: Doc) -> None:
        """Take away, in place, the empty lists of a document of a kind that storing forgets."""
        if not resource.custom and resource.gvr.group != _STORED_AS_JSON:
            target = target_of(resource)
            definition = self.builtin.definition(target.group, target.version, target.kind)
            if definition is not None:
                self._transient.forget(self.builtin.node(definition), doc)

    def finish_patched(self, target: Target, doc: Doc, refuse: Callable[[str], ApiError]) -> tuple[Doc, list[str]]:
        """Normalise the result of a JSON or merge patch, in place; the unknown fields that were dropped.

        Raises what ``refuse`` makes of the text of an error.
        """
        return self.bodies.normalize_patched(target, doc, refuse)

    def finish_merged(
        self, target: Target, doc: Doc, refuse: Callable[[str], ApiError], touched: Collection[str] | None = None
    ) -> tuple[Doc, list[str]]:
        """The same for the result of a strategic merge patch, of which all but ``touched`` is as it was stored."""
        return self.bodies.normalize_merged(target, doc, refuse, touched)

    def finish_applied(self, target: Target, doc: Doc, described: str) -> Doc:
        """The same for the result of a server-side apply; ``described`` names the object in errors."""

        def refuse(text: str) -> ApiError:
            kind = described.partition("; ")[2]
            why = f"unable to convert unstructured object to {kind}: {text}"
            return ApiError(500, "", f"failed to convert new object ({described}) to proper version: {why}")

        return self.bodies.normalize_merged(target, doc, refuse)[0]
