"""Pod-level resources.

upstream: pkg/apis/core/validation/validation.go#validatePodResources; component-helpers resource/helpers.go
"""

from kcm_cli.machinery.quantity import from_json
from kcm_cli.planning.pod_resources import aggregate
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, quantities


def validate_resources(spec: Tree, path: str) -> Errors:
    """Check that pod-level requests and limits are not less than those of the containers."""
    resources = spec["resources"]
    if (spec.get("os") or {}).get("name") == "windows":
        yield errors.forbidden(path, "may not be set for a windows pod")
        return
    if resources.get("claims") is not None:
        yield errors.forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level")
    yield from quantities.validate_pod_level(resources, path)
    yield from _consistent(spec, resources, path)


def _consistent(spec: Tree, resources: Tree, path: str) -> Errors:
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for name, needed in sorted(aggregate(spec, "requests").items()):
        if name in requests and needed > from_json(requests[name]):
            detail = f"must be greater than or equal to aggregate container requests of {needed}"
            yield errors.invalid(f"{path}.requests[{name}]", requests[name], detail)
    for name, needed in sorted(aggregate(spec, "limits").items()):
        if quantities.is_huge(name) and name in limits and needed > from_json(limits[name]):
            detail = f"must be greater than or equal to aggregate container limits of {needed}"
            yield errors.invalid(f"{path}.limits[{name}]", limits[name], detail)
    for index, container in enumerate(spec.get("containers") or ()):
        own = (container.get("resources") or {}).get("limits") or {}
        for name, value in sorted(own.items()):
            if name in limits and from_json(value) > from_json(limits[name]):
                place = f"{path}.containers[{index}][{name}].limits"
                yield errors.invalid(place, value, f"must be less than or equal to pod limits of {limits[name]}")
