"""What a pod's status says of the devices it has.

Source: pkg/apis/core/validation/validation.go#validatePodResourceClaimStatuses,
#validatePodExtendedResourceClaimStatus, #validateNodeAllocatableResourceClaimStatus.
"""

from kcm_cli.machinery import names
from kcm_cli.machinery.quantity import from_json
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors


def validate_claims(statuses: list[Tree], claims: list[Tree], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    known, seen = {claim.get("name", "") for claim in claims}, set[str]()
    for index, item in enumerate(statuses):
        name, place = item.get("name", ""), f"{path}[{index}]"
        if name not in known:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            found.append(errors.invalid(f"{place}.name", name, detail))
        if name in seen:
            found.append(errors.duplicate(f"{place}.name", name))
        seen.add(name)
        claim = item.get("resourceClaimName")
        if claim is not None:
            found += errors.invalid_each(f"{place}.resourceClaimName", claim, names.dns1123_subdomain(claim))
    return found


def validate_extended(status: Tree, spec: Tree, path: str) -> list[FieldError]:
    mappings, place = status.get("requestMappings") or (), f"{path}.requestMappings"
    found = [] if mappings else [errors.required(place, "at least one request mapping is required")]
    everything = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    requests = {item.get("name", ""): (item.get("resources") or {}).get("requests") or {} for item in everything}
    seen: set[tuple[str, ...]] = set()
    for index, item in enumerate(mappings):
        container, resource = item.get("containerName", ""), item.get("resourceName", "")
        where, request = f"{place}[{index}]", item.get("requestName", "")
        if container not in requests:
            detail = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            found.append(errors.invalid(f"{where}.containerName", container, detail))
        elif resource not in requests[container]:
            detail = (
                "must match the extended resource name of an entry in "
                "spec.initContainers.resources.requests or spec.containers.resources.requests"
            )
            found.append(errors.invalid(f"{where}.resourceName", resource, detail))
        found += errors.invalid_each(f"{path}.requestName", request, names.dns1123_label(request))
        if (container, resource, request) in seen:
            fields = ("containerName", "resourceName", "requestName")
            found += [errors.duplicate(f"{where}.{field}", item.get(field, "")) for field in fields]
        seen.add((container, resource, request))
    name = status.get("resourceClaimName", "")
    if not name:
        return [*found, errors.required(f"{path}.resourceClaimName")]
    return found + errors.invalid_each(f"{path}.resourceClaimName", name, names.dns1123_subdomain(name))


def validate_allocatable(item: Tree, spec: Tree, status: Tree, path: str) -> list[FieldError]:
    name = item.get("resourceClaimName", "")
    found = [] if name else [errors.required(f"{path}.resourceClaimName", "must not be empty")]
    known = [*(spec.get("resourceClaims") or ()), *(status.get("resourceClaimStatuses") or ())]
    if all(claim.get("resourceClaimName") != name for claim in known):
        detail = "no mapping found in pod reference"
        found.append(errors.invalid(f"{path}.resourceClaimName", name, detail))
    for field in ("containers", "resources"):
        if not item.get(field):
            found.append(errors.required(f"{path}.{field}", "must not be empty"))
    for resource, amount in sorted((item.get("resources") or {}).items()):
        place = f"{path}.resources[{resource}]"
        if not names.is_native_resource(resource):
            found.append(errors.invalid(place, resource, "must be a node allocatable resource name"))
        if from_json(amount).sign < 0:
            found.append(errors.invalid(place, amount, "must be non-negative"))
    return found
