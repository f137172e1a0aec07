"""PersistentVolumeClaims, and templates for them in pods and StatefulSets.

upstream: pkg/apis/core/validation/validation.go#ValidatePersistentVolumeClaim
"""

from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, quantities, rules

_MODES = rules.choices("core.v1.PersistentVolumeClaimSpec", "accessModes")
_DEFAULT_GROUP = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"


def access_modes(modes: list[str], path: str) -> Errors:
    """Check access modes: known ones, and ReadWriteOncePod without others."""
    yield from (errors.not_supported(path, mode, _MODES) for mode in modes if mode not in _MODES)
    if "ReadWriteOncePod" in modes and any(mode in _MODES and mode != "ReadWriteOncePod" for mode in modes):
        yield errors.forbidden(path, "may not use ReadWriteOncePod with other access modes")


CLASSES = (rules.nonempty("storageClassName", rules.SUBDOMAIN), rules.maybe_one_of("volumeMode"))
"""The storage class and the volume mode of a volume or claim."""


def validate_claim_spec(
    spec: Tree, path: str, *, lenient_selector: bool = False, lenient_groups: bool = False
) -> Errors:
    """Check the spec of a claim. ``lenient_*``: the old object has values that are invalid for new ones."""
    if not spec.get("accessModes"):
        yield errors.required(f"{path}.accessModes", "at least 1 access mode is required")
    yield from labels.validate_selector(spec.get("selector"), f"{path}.selector", lenient_values=lenient_selector)
    yield from _CLAIM[lenient_groups](spec, path)


def _size(spec: Tree, path: str) -> Errors:
    requested = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    place = f"{path}.resources[storage]"
    return [errors.required(place)] if requested is None else quantities.positive(requested, place)


def _default_group(source: Tree, path: str) -> Errors:
    if not source.get("apiGroup") and source.get("kind", "") != "PersistentVolumeClaim":
        yield errors.invalid(path, source.get("kind", ""), _DEFAULT_GROUP)


def _both(spec: Tree, path: str) -> Errors:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is None or reference is None:
        return
    if reference.get("namespace"):
        yield errors.invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified")
    elif any(source.get(field) != reference.get(field) for field in ("apiGroup", "kind", "name")):
        yield errors.invalid(path, {}, "must match dataSourceRef")


def _claim(lenient_groups: bool) -> rules.Rule:
    group = () if lenient_groups else (rules.nonempty("apiGroup", rules.SUBDOMAIN),)
    source = rules.fields(rules.required("name"), rules.required("kind"), _default_group, *group)
    return rules.fields_of(
        "core.v1.PersistentVolumeClaimSpec",
        rules.optional("accessModes", access_modes),
        _size,
        *CLASSES,
        rules.optional("dataSource", source),
        rules.optional("dataSourceRef", source, rules.fields(rules.nonempty("namespace", rules.LABEL))),
        _both,
        rules.nonempty("volumeAttributesClassName", rules.SUBDOMAIN),
    )


_CLAIM = {lenient: _claim(lenient) for lenient in (False, True)}
