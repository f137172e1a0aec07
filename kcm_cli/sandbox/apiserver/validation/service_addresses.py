"""The addresses of a Service and their families.

upstream: pkg/apis/core/validation/validation.go#ValidateServiceClusterIPsRelatedFields
"""

from collections.abc import Sequence

from kcm_cli.sandbox.apiserver.types import Errors, FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import addresses, errors, rules

FAMILIES = ("IPv4", "IPv6")
_FAMILIES = rules.fields_of(
    "core.v1.ServiceSpec", rules.each("ipFamilies", rules.enum(*FAMILIES), key=""), rules.maybe_one_of("ipFamilyPolicy")
)


def is_headless(spec: Tree) -> bool:
    """Whether a Service is headless (``clusterIP: None``)."""
    return spec.get("clusterIPs") == ["None"]


def validate_cluster_ips(spec: Tree, known: Sequence[str]) -> Errors:
    """Check that ``clusterIP``, ``clusterIPs``, ``ipFamilies`` and ``ipFamilyPolicy`` are consistent."""
    if spec.get("type") == "ExternalName":
        return
    yield from _singular(spec)
    yield from _FAMILIES(spec, "spec")
    values = spec.get("clusterIPs") or []
    broken: list[FieldError] = []
    for index, value in enumerate(values):
        if index or value != "None":
            broken += addresses.legacy_ip(value, f"spec.clusterIPs[{index}]", known)
        elif len(values) > 1:
            broken.append(errors.invalid("spec.clusterIPs", values, "'None' must be the first and only value"))
    yield from broken
    if len(values) > 2:
        yield errors.invalid("spec.clusterIPs", values, "may only hold up to 2 values")
    if not broken:
        yield from _match(spec, values)


def _singular(spec: Tree) -> Errors:
    value, values = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    if value and not values:
        return [errors.required("spec.clusterIPs")]
    if value and values[0] != value:
        return [errors.invalid("spec.clusterIPs", values, "first value must match `clusterIP`")]
    if not value and values:
        return [errors.invalid("spec.clusterIPs", values, "must be empty when `clusterIP` is not specified")]
    return []


def _match(spec: Tree, values: list[str]) -> Errors:
    six = [addresses.is_ipv6(value) for value in values]
    if len(values) > 1 and not (True in six and False in six):
        yield errors.invalid("spec.clusterIPs", values, "may specify no more than one IP for each IP family")
    if is_headless(spec):
        return
    for index, (value, family) in enumerate(zip(values, spec.get("ipFamilies") or (), strict=False)):
        if family in FAMILIES and six[index] != (family == "IPv6"):
            detail = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            yield errors.invalid(f"spec.clusterIPs[{index}]", value, detail)
