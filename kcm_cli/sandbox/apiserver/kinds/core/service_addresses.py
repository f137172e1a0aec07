"""The addresses of a Service and their families.

upstream: pkg/apis/core/validation/validation.go#ValidateServiceClusterIPsRelatedFields
"""

from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors
from kcm_cli.sandbox.apiserver.validation.service_addresses import is_headless

_ONCE = "may not change once set"


def validate_ip_change(spec: Tree, known: Tree) -> Errors:
    """Check that the first address does not change, and the second only with ``ipFamilyPolicy``."""
    if "ExternalName" in (spec.get("type"), known.get("type")) or (is_headless(spec) and is_headless(known)):
        return
    values, before = spec.get("clusterIPs") or [], known.get("clusterIPs") or []
    if len(values) == len(before):
        for index, value in enumerate(before):
            if value != values[index]:
                yield errors.invalid(f"spec.clusterIPs[{index}]", values, _ONCE)
        return
    if not values:
        yield errors.invalid("spec.clusterIPs[0]", None, "primary clusterIP can not be unset")
    elif before and values[0] != before[0]:
        yield errors.invalid("spec.clusterIPs[0]", values, _ONCE)
    yield from _released(spec, values, before, "clusterIP")


def validate_family_change(spec: Tree, known: Tree) -> Errors:
    """The same for the families."""
    if "ExternalName" in (spec.get("type"), known.get("type")) or is_headless(spec) or is_headless(known):
        return
    families, before = spec.get("ipFamilies") or [], known.get("ipFamilies") or []
    ips = spec.get("clusterIPs")
    if len(families) == len(before):
        changed = [True for new, old in zip(families, before, strict=True) if new != old]
        yield from (errors.invalid("spec.ipFamilies[0]", families, _ONCE) for _ in changed)
        return
    if len(families) < len(before) and not ips:
        yield errors.invalid("spec.ipFamilies[0]", families or None, "primary ipFamily can not be unset")
    if families and before and families[0] != before[0]:
        yield errors.invalid("spec.ipFamilies[0]", ips, _ONCE)
    yield from _released(spec, families, before, "ipFamily")


def _released(spec: Tree, values: list[str], before: list[str], what: str) -> Errors:
    policy = spec.get("ipFamilyPolicy")
    if len(values) < len(before) and len(values) == 1 and policy != "SingleStack":
        detail = f"must be set to 'SingleStack' when releasing the secondary {what}"
        yield errors.invalid("spec.ipFamilyPolicy", policy, detail)
