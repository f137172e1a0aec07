"""Updates of ``pods/.../resize``.

upstream: pkg/apis/core/validation/validation.go#ValidatePodResize
"""

from kcm_cli.api.well_known import MIRROR
from kcm_cli.planning.qos import qos_class
from kcm_cli.sandbox.apiserver.kinds.core import pod_validation
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors
from kcm_cli.sandbox.apiserver.validation.quantities import COMPUTE

_ONLY = "only cpu and memory resources are mutable"


def validate_resize(new: Tree, old: Tree) -> Errors:
    """Check that only CPU and memory change."""
    if MIRROR in (old["metadata"].get("annotations") or ()):
        return [errors.forbidden("[]", "static pods cannot be resized")]
    spec, known = new["spec"], old["spec"]
    if (known.get("os") or {}).get("name") == "windows":
        return [errors.forbidden("[]", "windows pods cannot be resized")]
    found = [*pod_validation.update_of_subresource(new, old)]
    status = old.get("status") or {}
    if (status.get("qosClass") or qos_class(known)) != qos_class(spec):
        detail = "Pod QOS Class may not change as a result of resizing"
        found.append(errors.invalid("spec", (new.get("status") or {}).get("qosClass", ""), detail))
    if not _supported(status):
        found.append(errors.forbidden("spec", "Pod running on node without support for resize"))
    munged = dict(spec)
    if _has_resources(spec) or _has_resources(known):
        found += _pod_level(munged, spec, known)
    if status.get("nodeAllocatableResourceClaimStatuses"):
        found.append(errors.forbidden("spec", "pods with node allocatable resource claims cannot be resized"))
    if wrong := [*_order(spec, known)]:
        return [*found, *wrong]
    for field in ("initContainers", "containers"):
        found += _removals(spec.get(field) or [], known.get(field) or [], f"spec.{field}")
    found += _containers(munged, known)
    found += _init_containers(munged, spec, known)
    if not found and munged != known:
        found.append(errors.forbidden("spec", _ONLY))
    return found


def _supported(status: Tree) -> bool:
    for container in status.get("containerStatuses") or ():
        if (container.get("state") or {}).get("running") is not None:
            return container.get("resources") is not None
    return True


def _has_resources(spec: Tree) -> bool:
    resources = spec.get("resources") or {}
    return bool(resources.get("requests") or resources.get("limits"))


def _removed(new: Tree, old: Tree, field: str) -> bool:
    return not (old.get(field) or {}).keys() <= (new.get(field) or {}).keys()


def _pod_level(munged: Tree, spec: Tree, known: Tree) -> Errors:
    resources, before = spec.get("resources"), known.get("resources")
    if before is not None and resources is None:
        yield errors.forbidden("spec.resources", "pod-level resources cannot be removed")
        return
    for field in ("requests", "limits"):
        if _removed(resources or {}, before or {}, field):
            yield errors.forbidden(f"spec.resources.{field}", f"pod-level resource {field} cannot be removed")
    munged["resources"] = _without_compute(resources or {}, before or {})
    if before is None and not any(munged["resources"].values()):
        del munged["resources"]
    if munged.get("resources") != before:
        yield errors.forbidden("spec", f"{_ONLY} at pod-level")


def _without_compute(resources: Tree, before: Tree) -> Tree:
    """New resources with the old quantities of CPU and memory."""
    result = {key: value for key, value in resources.items() if key not in ("requests", "limits")}
    for field in ("limits", "requests"):
        known = before.get(field) or {}
        amounts = {key: value for key, value in (resources.get(field) or {}).items() if key not in COMPUTE}
        amounts.update({name: known[name] for name in COMPUTE if name in known})
        if amounts:
            result[field] = amounts
    return result


def _order(spec: Tree, known: Tree) -> Errors:
    for field in ("containers", "initContainers"):
        after, before = spec.get(field) or [], known.get(field) or []
        if len(after) != len(before):
            yield errors.forbidden(f"spec.{field}", f"{field} may not be added or removed on resize")
            continue
        for index, (container, old) in enumerate(zip(after, before, strict=True)):
            if container.get("name") != old.get("name"):
                detail = f"{field} may not be renamed or reordered on resize"
                yield errors.forbidden(f"spec.{field}[{index}].name", detail)


def _removals(after: list[Tree], before: list[Tree], path: str) -> Errors:
    for index, (container, old) in enumerate(zip(after, before, strict=True)):
        for field in ("requests", "limits"):
            if _removed(container.get("resources") or {}, old.get("resources") or {}, field):
                place = f"{path}[{index}].resources.{field}"
                yield errors.forbidden(place, f"resource {field} cannot be removed")


def _munged(container: Tree, old: Tree) -> Tree:
    """A container with the old compute resources, and without claims: one that has claims cannot be resized."""
    resources = _without_compute(container.get("resources") or {}, old.get("resources") or {})
    resources.pop("claims", None)
    return {**container, "resources": resources}


def _containers(munged: Tree, known: Tree) -> Errors:
    pairs = list(zip(munged["containers"], known["containers"], strict=True))
    munged["containers"] = [_munged(container, old) for container, old in pairs]
    yield from (
        errors.forbidden("spec", _ONLY)
        for container, (_, old) in zip(munged["containers"], pairs, strict=True)
        if container != old
    )


def _init_containers(munged: Tree, spec: Tree, known: Tree) -> Errors:
    result: list[Tree] = []
    before = known.get("initContainers") or []
    for index, (container, old) in enumerate(zip(spec.get("initContainers") or [], before, strict=True)):
        plain, place = _munged(container, old), f"spec.initContainers[{index}]"
        result.append(plain)
        if plain != old:
            yield errors.forbidden(place, "only cpu and memory resources for init or sidecar containers are mutable")
        if container != old and container.get("restartPolicy") != "Always":
            for item in container.get("resizePolicy") or ():
                if item.get("restartPolicy") == "RestartContainer":
                    detail = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
                    yield errors.forbidden(place, detail)
    if before:
        munged["initContainers"] = result
