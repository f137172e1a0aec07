"""Validation of CustomResourceDefinitions and their updates.

upstream: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go
"""

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from kcm_cli.machinery.same import same
from kcm_cli.sandbox.apiserver.crd.approval import approval, is_protected
from kcm_cli.sandbox.apiserver.crd.checks.defaults import unpruned
from kcm_cli.sandbox.apiserver.crd.checks.names import (
    LABEL,
    MOST_SELECTABLE,
    check_all_names,
    check_column,
    check_conversion,
    check_group_and_scope,
    check_names,
    check_selectable,
    check_subresources,
)
from kcm_cli.sandbox.apiserver.crd.checks.schema import (
    TYPES,
    Strictness,
    check_validation,
    has_loose_sets,
    loose_keys,
)
from kcm_cli.sandbox.apiserver.crd.checks.spec import Spec, Version, go_versions, shown_go, spec_of
from kcm_cli.sandbox.apiserver.crd.checks.structure import check_structure, parts, unsupported
from kcm_cli.sandbox.apiserver.crd.definition import APPROVED
from kcm_cli.sandbox.apiserver.crd.findings import invalid
from kcm_cli.sandbox.apiserver.crd.structural import structural
from kcm_cli.sandbox.apiserver.trees import at, is_true
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, webhook_clients
from kcm_cli.sandbox.apiserver.validation.metadata import subdomain, validate_plain_meta, validate_plain_meta_update

_NO_PRESERVING = (
    "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
)
_LONGEST_WARNING = 256


class _Rules(msgspec.Struct, frozen=True):
    """The options of a validation. crowded: versions that already have too many selectable fields. any_ca: the
    caBundle is not checked, which is so until the definition is established."""

    strict: Strictness = msgspec.field(default_factory=Strictness)
    schemas: bool = True
    known_review: bool = True
    any_ca: bool = True
    crowded: frozenset[str] = frozenset()


def validate(doc: Tree) -> list[FieldError]:
    """The errors of a new definition."""
    spec = doc["spec"]
    required = f"{spec['names'].get('plural') or ''}.{spec.get('group') or ''}"

    def rule(name: str, prefix: bool) -> list[str]:
        found = subdomain(name, prefix)
        return found if name == required else [*found, 'must be spec.names.plural+"."+spec.group']

    found = [*validate_plain_meta(doc["metadata"], False, rule)]
    found += _check_spec(spec_of(doc), _Rules())
    return found + _check_rest(doc, None)


def validate_update(new: Tree, old: Tree) -> list[FieldError]:
    """The errors of an updated definition."""
    found = [*validate_plain_meta_update(new["metadata"], old["metadata"])]
    spec, before = spec_of(new), spec_of(old)
    found += _check_spec(spec, _rules_of(new, old, before))
    kept = ["spec.scope", "spec.names.kind"] if is_true(old, "Established") else []
    for path in [*kept, "spec.group", "spec.names.plural"]:
        value = at(new, path, "")
        if value != at(old, path, ""):
            found.append(invalid(path, value, errors.IMMUTABLE))
    return found + _check_rest(new, old)


def validate_status(new: Tree, old: Tree) -> list[FieldError]:
    """The errors of an updated status."""
    meta = validate_plain_meta_update(new["metadata"], old["metadata"])
    return [*meta, *check_names(new["status"].get("acceptedNames") or {}, "status.acceptedNames")]


def _check_rest(doc: Tree, old: Tree | None) -> list[FieldError]:
    """Errors in status, annotations and the removed preserveUnknownFields."""
    status = doc.get("status") or {}
    found = list(check_names(status.get("acceptedNames") or {}, "status.acceptedNames"))
    found += _stored_versions(status.get("storedVersions") or [], doc["spec"].get("versions") or [])
    found += _approval(doc, old)
    before = old is not None and old["spec"].get("preserveUnknownFields")
    if doc["spec"].get("preserveUnknownFields") and not before:
        found.append(invalid("spec.preserveUnknownFields", True, _NO_PRESERVING))
    return found


def _stored_versions(stored: list[str], versions: list[Tree]) -> Iterator[FieldError]:
    path = "status.storedVersions"
    if not stored:
        yield invalid(path, None, "must have at least one stored version")
        return
    left = {name: index for index, name in enumerate(stored)}
    for version in versions:
        name = version.get("name") or ""
        if version.get("storage") and name not in left:
            yield invalid(path, stored, f"must have the storage version {name}")
        left.pop(name, None)
    for name, index in left.items():
        detail = (
            f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions "
            f"until a storage migration ensures no data remains persisted in {name} and removes {name} from "
            "status.storedVersions"
        )
        yield invalid(f"{path}[{index}]", name, detail)


def _approval(doc: Tree, old: Tree | None) -> Iterator[FieldError]:
    if not is_protected(doc["spec"].get("group") or ""):
        return
    annotation = (doc["metadata"].get("annotations") or {}).get(APPROVED) or ""
    judged = approval(annotation)
    if old is not None and approval((old["metadata"].get("annotations") or {}).get(APPROVED) or "")[1] == judged[1]:
        return
    path = f"metadata.annotations[{APPROVED}]"
    if judged[1] == "MissingAnnotation":
        yield errors.required(path, judged[2])
    elif judged[1] == "InvalidAnnotation":
        yield invalid(path, annotation, judged[2])


def _rules_of(new: Tree, old: Tree, before: Spec) -> _Rules:
    """The options of an update: only checks that the old definition passes."""
    schemas = before.schemas
    everything = [part for schema in schemas for part in parts(schema)]
    strict = Strictness(
        structural=not any(unsupported(schema) or check_structure(schema, "") for schema in schemas),
        types=all(not part.get("type") or part["type"] in TYPES for part in everything),
        pruned=not any(not unsupported(schema) and unpruned(structural(schema)) for schema in schemas),
        atomic_sets=not any(has_loose_sets(part) for part in everything),
        map_keys=not any(any(loose_keys(part, "")) for part in everything),
    )
    versions = {one.get("name"): one for one in old["spec"].get("versions") or ()}
    crowded = set()
    for version in new["spec"].get("versions") or ():
        name, known = version.get("name") or "", versions.get(version.get("name"))
        if known is None:
            continue
        fields = known.get("selectableFields") or []
        if len(fields) > MOST_SELECTABLE and same(fields, version.get("selectableFields")):
            crowded.add(name)
    complete = before.schema is not None or all(version.schema is not None for version in before.versions)
    reviews = ((old["spec"].get("conversion") or {}).get("webhook") or {}).get("conversionReviewVersions")
    known_review = not reviews or not any(webhook_clients.known_review(reviews, ""))
    any_ca = not is_true(old, "Established") or webhook_clients.trusts_nothing(old)
    return _Rules(strict, complete, known_review, any_ca, frozenset(crowded))


def _check_spec(spec: Spec, rules: _Rules) -> Iterator[FieldError]:
    doc = spec.doc
    yield from check_group_and_scope(doc, "spec")
    rules = replace(rules, strict=replace(rules.strict, structural=True)) if _must_be_structural(spec) else rules
    if spec.schema is None:
        for index, version in enumerate(spec.versions):
            if version.schema is None and (rules.schemas or version.own.get("served")):
                detail = "" if rules.schemas else "because otherwise all fields are pruned"
                yield errors.required(f"spec.versions[{index}].schema.openAPIV3Schema", detail)
    if doc.get("preserveUnknownFields") and _has_defaults(spec):
        yield invalid("spec.preserveUnknownFields", True, "must be false in order to use defaults in the schema")
    yield from _versions(spec, rules)
    yield from check_all_names(doc["names"], "spec.names")
    yield from _shared(spec, rules)
    if spec.selectable and spec.schema is None:
        yield invalid("spec.selectableFields", "", "may only be set when validations.schema is included")
    if (conversion := doc.get("conversion")) is not None:
        yield from check_conversion(conversion, "spec.conversion", known_review=rules.known_review, any_ca=rules.any_ca)


def _must_be_structural(spec: Spec) -> bool:
    """Whether structural schemas are required: for pruning, defaults and x-kubernetes extensions."""
    return not spec.doc.get("preserveUnknownFields") or any(
        part.get("default") is not None or any(key.startswith("x-kubernetes-") for key in part)
        for schema in spec.schemas
        for part in parts(schema)
    )


def _has_defaults(spec: Spec) -> bool:
    return any(part.get("default") is not None for schema in spec.schemas for part in parts(schema))


def _versions(spec: Spec, rules: _Rules) -> Iterator[FieldError]:
    known = [version.name for version in spec.versions]
    own = any(version.subresources is not None for version in spec.versions)
    for index, version in enumerate(spec.versions):
        path = f"spec.versions[{index}]"
        yield from LABEL(version.name, f"{path}.name")
        yield from _version(version, version.subresources if own else spec.subresources, path, rules)
    if len(set(known)) != len(known):
        yield _shown(spec, "must contain unique version names")
    if sum(1 for version in spec.versions if version.own.get("storage")) != 1:
        yield _shown(spec, "must have exactly one version marked as storage version")
    if spec.versions and known[0]:
        yield from LABEL(known[0], "spec.version")


def _shown(spec: Spec, detail: str) -> FieldError:
    """An error that prints all versions, which takes as long as validating them."""
    return FieldError("FieldValueInvalid", "spec.versions", f"Invalid value: {shown_go(go_versions(spec))}: {detail}")


def _version(version: Version, subresources: Tree | None, path: str, rules: _Rules) -> Iterator[FieldError]:
    for problem in _warning_problems(version.own):
        yield invalid(f"{path}.deprecationWarning", version.own.get("deprecationWarning"), problem)
    if version.schema is not None:
        where = f"{path}.schema.openAPIV3Schema"
        yield from check_validation(version.schema, where, rules.strict, status=_has_status(subresources))
    yield from check_subresources(version.subresources or {}, f"{path}.subresources")
    for index, column in enumerate(version.columns):
        yield from check_column(column, f"{path}.additionalPrinterColumns[{index}]")
    if not version.selectable:
        return
    where = f"{path}.selectableFields"
    if version.schema is None:
        yield invalid(where, "", "may only be set when `version.schema.openAPIV3Schema` is not included")
    else:
        any_number = version.name in rules.crowded
        yield from check_selectable(version.selectable, version.schema, where, any_number=any_number)


def _warning_problems(version: Tree) -> Iterator[str]:
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    if not version.get("deprecated"):
        yield "can only be set for deprecated versions"
        return
    if len(warning.encode()) > _LONGEST_WARNING:
        yield f"must be <= {_LONGEST_WARNING} characters long"
    if not warning:
        yield "must not be an empty string"
    for index, char in enumerate(warning):
        if not char.isprintable():
            at = len(warning[:index].encode())
            yield f"must only contain printable UTF-8 characters; non-printable character found at index {at}"
            break


def _shared(spec: Spec, rules: _Rules) -> Iterator[FieldError]:
    """Errors in the fields that all versions share."""
    if spec.schema is not None:
        status = _has_status(spec.subresources) or any(_has_status(one.subresources) for one in spec.versions)
        yield from check_validation(spec.schema, "spec.validation.openAPIV3Schema", rules.strict, status=status)
    yield from check_subresources(spec.subresources or {}, "spec.subresources")
    for index, column in enumerate(spec.columns):
        yield from check_column(column, f"spec.additionalPrinterColumns[{index}]")
    if spec.selectable and spec.schema is not None:
        crowded = bool(rules.crowded)
        yield from check_selectable(spec.selectable, spec.schema, "spec.selectableFields", any_number=crowded)


def _has_status(parts_: Tree | None) -> bool:
    return parts_ is not None and parts_.get("status") is not None
