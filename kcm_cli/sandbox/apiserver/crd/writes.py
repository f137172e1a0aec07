"""The strategy of custom kinds.

upstream: apiextensions-apiserver pkg/registry/customresource/{strategy,status_strategy,validator}.go
"""

import msgspec

from kcm_cli.machinery import names
from kcm_cli.machinery.patches import copy
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.same import same
from kcm_cli.sandbox.apiserver.crd.embedded import has_embedded, validate_embedded
from kcm_cli.sandbox.apiserver.crd.findings import invalid
from kcm_cli.sandbox.apiserver.crd.lists import has_list_types, repeated
from kcm_cli.sandbox.apiserver.crd.rules import RuleSet
from kcm_cli.sandbox.apiserver.crd.structural import Structural
from kcm_cli.sandbox.apiserver.crd.values import ABSENT, Checker
from kcm_cli.sandbox.apiserver.errors import invalid_kind
from kcm_cli.sandbox.apiserver.registry.catalog import ScalePaths
from kcm_cli.sandbox.apiserver.registry.scale_form import nested
from kcm_cli.sandbox.apiserver.schema import Target
from kcm_cli.sandbox.apiserver.strategy import Strategy
from kcm_cli.sandbox.apiserver.trees import keep, put
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation.metadata import (
    STANDARD_FINALIZERS,
    subdomain,
    validate_plain_meta,
    validate_plain_meta_update,
)

_BLOCKING = frozenset(
    [
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    ]
)
_UNCHECKED = FieldError(
    "FieldValueInvalid",
    "<nil>",
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation",
)
_INT32_MOST = (1 << 31) - 1


def blocked(found: list[FieldError]) -> bool:
    """Whether errors prevent the rules from running."""
    return any(error.type in _BLOCKING for error in found)


class CustomKind(msgspec.Struct, frozen=True):
    """A version of a custom kind. ``status``: whether it has the subresource."""

    target: Target
    namespaced: bool
    schema: Structural
    status: bool
    scale: ScalePaths | None
    rules: RuleSet | None


def strategy_of(kind: CustomKind) -> Strategy:
    """The strategy of a version of a kind."""
    writes = _Writes(kind)
    return Strategy(
        names=None,
        namespaced=kind.namespaced,
        keeps_status=kind.status,
        on_create=writes.on_create,
        on_update=writes.on_update,
        on_status=writes.on_status,
        check=writes.check,
        check_status=writes.check_status,
        warn=writes.warn,
        warn_status=writes.warn_status,
        warn_refused=writes.warn_refused,
        needs_version_on_update=True,
    )


class _Writes:
    def __init__(self, kind: CustomKind) -> None:
        self._kind = kind
        self._schema = kind.schema
        self._checker = Checker(kind.schema.raw)
        status = (kind.schema.raw.get("properties") or {}).get("status")
        self._status_checker = Checker(status) if status is not None else None
        self._lists = has_list_types(kind.schema)
        self._embeds = has_embedded(kind.schema)

    # Preparing.

    def on_create(self, doc: Tree) -> None:
        if self._kind.status:
            doc.pop("status", None)
        doc["metadata"]["generation"] = 1

    def on_update(self, new: Tree, old: Tree) -> None:
        if not _same_content(new, old):
            new["metadata"]["generation"] = (old["metadata"].get("generation") or 0) + 1

    def on_status(self, new: Tree, old: Tree) -> None:
        given = dict(new)
        new.clear()
        new.update(old)
        new["metadata"] = copy(old["metadata"])
        put(new["metadata"], "managedFields", given["metadata"].get("managedFields"))
        keep(new, given, "status")

    # Checking.

    def check(self, new: Tree, old: Tree | None) -> list[FieldError]:
        """The errors of a new or updated object."""
        return self._check_create(new) if old is None else self._check_update(new, old)

    def _check_create(self, doc: Tree) -> list[FieldError]:
        self._check_type(doc)
        found = [*validate_plain_meta(doc["metadata"], self._kind.namespaced, subdomain)]
        found += self._checker.check(doc).below("")
        found += self._scale(doc)
        found += self._embedded(doc)
        if self._lists:
            found += repeated(self._schema, doc)
        return self._with_rules(found, doc, None)

    def _check_update(self, new: Tree, old: Tree) -> list[FieldError]:
        self._check_type(new)
        found = [*validate_plain_meta_update(new["metadata"], old["metadata"])]
        found += self._checker.check(new, old).below("")
        found += self._scale(new)
        found += self._embedded(new)
        return self._with_rules(found + self._new_repetitions(new, old), new, old)

    def check_status(self, new: Tree, old: Tree) -> list[FieldError]:
        self._check_type(new)
        found = [*validate_plain_meta_update(new["metadata"], old["metadata"])]
        if "status" in new and self._status_checker is not None:
            found += self._status_checker.check(new["status"], old.get("status", ABSENT)).below("status")
        found += self._scale_status(new)
        return self._with_rules(found + self._new_repetitions(new, old), new, old)

    def _check_type(self, doc: Tree) -> None:
        """Raises ApiError 422, with the object's kind, if kind or apiVersion are wrong."""
        target = self._kind.target
        kind, version = doc.get("kind") or "", doc.get("apiVersion") or ""
        found = []
        if kind != target.kind:
            found.append(invalid("kind", kind, f"must be {target.kind}"))
        if version != target.api_version:
            found.append(invalid("apiVersion", version, f"must be {target.api_version}"))
        if found:
            raise invalid_kind(version.rpartition("/")[0], kind, doc["metadata"].get("name") or "", found)

    def _embedded(self, doc: Tree) -> list[FieldError]:
        return validate_embedded(self._schema, doc) if self._embeds else []

    def _new_repetitions(self, new: Tree, old: Tree) -> list[FieldError]:
        if not self._lists or not (found := repeated(self._schema, new)):
            return []
        return [] if repeated(self._schema, old) else found

    def _with_rules(self, found: list[FieldError], new: Tree, old: Tree | None) -> list[FieldError]:
        rules = self._kind.rules
        if rules is None:
            return found
        if blocked(found):
            return [*found, _UNCHECKED]
        return found + rules.check(new, old)

    def warn(self, new: Tree, old: Tree | None) -> list[str]:
        ratcheted = [] if old is None else self.warn_status(new, old)
        return ratcheted + _finalizer_warnings(new, old)

    def warn_refused(self, new: Tree, old: Tree, found: list[FieldError]) -> list[str]:
        """Warnings of rules for an object that is invalid for other reasons."""
        return [] if blocked(found) else self.warn_status(new, old)

    def warn_status(self, new: Tree, old: Tree | None) -> list[str]:
        return [] if self._kind.rules is None or old is None else self._kind.rules.warnings(new, old)

    def _scale(self, doc: Tree) -> list[FieldError]:
        scale = self._kind.scale
        return [] if scale is None else _check_replicas(doc, scale.spec) + self._scale_status(doc)

    def _scale_status(self, doc: Tree) -> list[FieldError]:
        scale = self._kind.scale
        if scale is None:
            return []
        found = _check_replicas(doc, scale.status)
        if scale.selector:
            value, problem = nested(doc, scale.selector, str, "string")
            if problem:
                found.append(invalid(f".{scale.selector}", "", problem))
        return found


def _same_content(new: Tree, old: Tree) -> bool:
    keys = (new.keys() | old.keys()) - {"metadata", "apiVersion"}
    return all(key in new and key in old and same(new[key], old[key]) for key in keys)


def _check_replicas(doc: Tree, path: str) -> list[FieldError]:
    value, problem = nested(doc, path, int, "int64")
    if problem:
        return [invalid(f".{path}", 0, problem)]
    number = value if isinstance(value, int) else 0
    if number < 0:
        return [invalid(f".{path}", number, "should be a non-negative integer")]
    if number > _INT32_MOST:
        return [invalid(f".{path}", number, f"should be less than or equal to {_INT32_MOST}")]
    return []


def _finalizer_warnings(new: Tree, old: Tree | None) -> list[str]:
    known = set(old["metadata"].get("finalizers") or ()) if old is not None else set()
    warnings: list[str] = []
    for name in sorted(set(new["metadata"].get("finalizers") or ()) - known):
        said = f"metadata.finalizers: {quote(name)}:"
        warnings += [f"{said} {problem}" for problem in names.qualified_name(name)]
        if "/" not in name and name not in STANDARD_FINALIZERS:
            path = " including a path (/)" if "." in name else ""
            advice = f"prefer a domain-qualified finalizer name{path} to avoid accidental conflicts"
            warnings.append(f"{said} {advice} with other finalizer writers")
    return warnings
