"""Updates of the status of pods.

upstream: pkg/apis/core/validation/validation.go#ValidatePodStatusUpdate
"""

from kcm_cli.machinery import names
from kcm_cli.machinery.quantity import from_json
from kcm_cli.sandbox.apiserver.kinds.core.pod_validation import annotation_changes
from kcm_cli.sandbox.apiserver.types import Errors, FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import addresses, errors, labels, metadata, rules, security

_SYSTEM = frozenset({"PodScheduled", "Ready", "Initialized"})


def validate_pod_status(new: Tree, old: Tree) -> Errors:
    """Check an update of the status of a pod."""
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    yield from annotation_changes(new, old)
    spec, status, known = new["spec"], new.get("status") or {}, old.get("status") or {}
    yield from _CONDITIONS(status, "status")
    yield from _nominated(status.get("nominatedNodeName", ""), known.get("nominatedNodeName", ""), spec)
    yield from _OBSERVED(status, "status")
    yield from errors.fixed("status.qosClass", status.get("qosClass", ""), known.get("qosClass", ""))
    yield from _transitions(status, known, old["spec"])
    if claims := status.get("resourceClaimStatuses"):
        yield from validate_claims(claims, spec.get("resourceClaims") or [], "status.resourceClaimStatuses")
    extended = status.get("extendedResourceClaimStatus")
    if extended is not None:
        yield from validate_extended(extended, spec, "status.extendedResourceClaimStatus")
    for index, item in enumerate(status.get("nodeAllocatableResourceClaimStatuses") or ()):
        place = f"status.nodeAllocatableResourceClaimStatuses[{index}]"
        yield from validate_allocatable(item, spec, status, place)
    yield from _ips(_addresses(status, "podIPs"), _addresses(known, "podIPs"), "status.podIPs")
    yield from _host_ips(status, known)
    yield from _container_statuses(status, spec)


def _condition_type(kind: str, path: str) -> Errors:
    return () if kind in _SYSTEM else labels.validate_key(kind, path)


_GENERATION = rules.optional("observedGeneration", rules.at_least(0, "must be a non-negative integer"))
_OBSERVED = rules.fields(_GENERATION)
_CONDITIONS = rules.fields(
    rules.each("conditions", rules.fields(_GENERATION, rules.always("type", _condition_type, at="Type")))
)


def _nominated(name: str, known: str, spec: Tree) -> Errors:
    if not name or name == known:
        return
    yield from rules.SUBDOMAIN(name, "status.nominatedNodeName")
    if spec.get("nodeName"):
        yield errors.forbidden("status.nominatedNodeName", "may not be set on pods that are already bound to a node")


_NOT_BACK = "may not be transitioned to non-terminated state"
_FAMILIES = "may specify no more than one IP for each IP family"


def _transitions(status: Tree, known: Tree, spec: Tree) -> Errors:
    """Check that terminated containers start again only if the restart policy allows it."""
    if not _restarts_all(spec):
        for field in ("containers", "initContainers"):
            by_name = {item.get("name", ""): item for item in spec.get(field) or ()}
            place = "containerStatuses" if field == "containers" else "initContainerStatuses"
            for index, name, code in _revived(status, known, place):
                container = by_name.get(name)
                if container is None or not _restarts(container, spec, code):
                    yield errors.forbidden(f"status.{place}[{index}].state", _NOT_BACK)
    for index, _, _ in _revived(status, known, "ephemeralContainerStatuses"):
        yield errors.forbidden(f"status.ephemeralContainerStatuses[{index}].state", _NOT_BACK)


def _revived(status: Tree, known: Tree, field: str) -> list[tuple[int, str, int]]:
    """Containers that are no longer terminated: index in the old list, name, exit code."""
    ended = [
        (index, item.get("name", ""), item["state"]["terminated"].get("exitCode", 0))
        for index, item in enumerate(known.get(field) or ())
        if (item.get("state") or {}).get("terminated") is not None
    ]
    if not ended:
        return []
    states = {item.get("name", ""): item.get("state") or {} for item in reversed(status.get(field) or [])}
    return [entry for entry in ended if entry[1] in states and states[entry[1]].get("terminated") is None]


def _restarts_all(spec: Tree) -> bool:
    return any(
        rule.get("action") == "RestartAllContainers"
        for field in ("initContainers", "containers")
        for container in spec.get(field) or ()
        for rule in container.get("restartPolicyRules") or ()
    )


def _restarts(container: Tree, spec: Tree, code: int) -> bool:
    policy = spec.get("restartPolicy")
    own = container.get("restartPolicy")
    if own is not None:
        if _rule_restarts(container, code):
            return True
        policy = own if own in ("Always", "OnFailure", "Never") else policy
    return code != 0 if policy == "OnFailure" else policy != "Never"


def _rule_restarts(container: Tree, code: int) -> bool:
    for rule in container.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        matched = code in (codes.get("values") or ())
        if codes and matched == (codes.get("operator") == "In"):
            return rule.get("action") in ("Restart", "RestartAllContainers")
    return False


def _host_ips(status: Tree, known: Tree) -> Errors:
    values = _addresses(status, "hostIPs")
    if values and values[0] != status.get("hostIP", ""):
        yield errors.invalid("status.hostIPs[0].ip", values[0], "must be equal to `hostIP`")
    yield from _ips(values, _addresses(known, "hostIPs"), "status.hostIPs")


def _addresses(status: Tree, field: str) -> list[str]:
    return [item.get("ip", "") for item in status.get(field) or ()]


def _ips(values: list[str], known: list[str], path: str) -> Errors:
    for index, value in enumerate(values):
        if value not in known:
            yield from addresses.legacy_ip(value, f"{path}[{index}]", known)
    if len(values) > 1:
        families = {addresses.is_ipv6(value) for value in values}
        if len(families) < 2 or len(values) > 2:
            yield errors.invalid(path, [{"IP": value} for value in values], _FAMILIES)


def _container_statuses(status: Tree, spec: Tree) -> Errors:
    statuses = {
        "containerStatuses": "containers",
        "initContainerStatuses": "initContainers",
        "ephemeralContainerStatuses": "ephemeralContainers",
    }
    windows = (spec.get("os") or {}).get("name", "linux") == "windows"
    health: list[FieldError] = []
    for field, containers in statuses.items():
        for index, item in enumerate(status.get(field) or ()):
            place = f"status.{field}[{index}]"
            if (user := (item.get("user") or {}).get("linux")) is not None:
                yield from (_no_user if windows else _USER)(user, f"{place}.user.linux")
            allocated, place = item.get("allocatedResourcesStatus"), f"{place}.allocatedResourcesStatus"
            if allocated and field.startswith("ephemeral"):
                health.append(errors.forbidden(place, "must not be specified in container status"))
            elif allocated:
                own = [other for other in spec.get(containers) or () if other.get("name") == item.get("name")]
                health += _health(allocated, own[:1], place)
    yield from health


def _no_user(user: Tree, path: str) -> Errors:
    return [errors.forbidden(path, "cannot be set for a windows pod")]


_USER = rules.fields(
    rules.always("uid", security.user_or_group, default=0),
    rules.always("gid", security.user_or_group, default=0),
    rules.each("supplementalGroups", security.user_or_group),
)


def _health(statuses: list[Tree], own: list[Tree], path: str) -> Errors:
    for index, item in enumerate(statuses):
        name, place = item.get("name", ""), f"{path}[{index}]"
        if own and not _allocated(name, own[0].get("resources") or {}):
            detail = "must match one of the container's resource requests"
            if name.startswith("claim:"):
                detail = (
                    "must match one of the container's resource claims in a format "
                    "'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty"
                )
            yield errors.invalid(f"{place}.name", name, detail)
        yield from _RESOURCES(item, place)


_not_empty = rules.unless(rules.given("must be non-empty if specified"), rules.max_bytes(1024))
_RESOURCE = rules.fields(
    rules.always("health", rules.enum("Healthy", "Unhealthy", "Unknown")), rules.optional("message", _not_empty)
)
_RESOURCES = rules.fields(rules.each("resources", _RESOURCE, key="resourceID"))


def _allocated(name: str, resources: Tree) -> bool:
    if not name.startswith("claim:"):
        return name in (resources.get("requests") or {})
    claims = resources.get("claims") or ()
    return any(
        name == f"claim:{claim.get('name', '')}" + (f"/{claim['request']}" if claim.get("request") else "")
        for claim in claims
    )


def validate_claims(statuses: list[Tree], claims: list[Tree], path: str) -> Errors:
    """The names of generated claims in a status (resourceClaimStatuses). claims: those of the spec."""
    known, unique = {claim.get("name", "") for claim in claims}, rules.Unique()
    for index, item in enumerate(statuses):
        name, place = item.get("name", ""), f"{path}[{index}]"
        if name not in known:
            yield errors.invalid(f"{place}.name", name, "must match the name of an entry in `spec.resourceClaims`")
        yield from unique(name, f"{place}.name")
        yield from _CLAIM(item, place)


_CLAIM = rules.fields(rules.optional("resourceClaimName", rules.SUBDOMAIN))


def validate_extended(status: Tree, spec: Tree, path: str) -> Errors:
    """The claim that a scheduler made for extended resources (extendedResourceClaimStatus)."""
    mappings, place = status.get("requestMappings") or (), f"{path}.requestMappings"
    if not mappings:
        yield errors.required(place, "at least one request mapping is required")
    everything = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    requests = {item.get("name", ""): (item.get("resources") or {}).get("requests") or {} for item in everything}
    seen: set[tuple[str, ...]] = set()
    for index, item in enumerate(mappings):
        container, resource = item.get("containerName", ""), item.get("resourceName", "")
        where, request = f"{place}[{index}]", item.get("requestName", "")
        if container not in requests:
            detail = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            yield errors.invalid(f"{where}.containerName", container, detail)
        elif resource not in requests[container]:
            detail = (
                "must match the extended resource name of an entry in "
                "spec.initContainers.resources.requests or spec.containers.resources.requests"
            )
            yield errors.invalid(f"{where}.resourceName", resource, detail)
        yield from errors.invalid_each(f"{path}.requestName", request, names.dns1123_label(request))
        if (container, resource, request) in seen:
            fields = ("containerName", "resourceName", "requestName")
            yield from (errors.duplicate(f"{where}.{field}", item.get(field, "")) for field in fields)
        seen.add((container, resource, request))
    name = status.get("resourceClaimName", "")
    if not name:
        yield errors.required(f"{path}.resourceClaimName")
        return
    yield from errors.invalid_each(f"{path}.resourceClaimName", name, names.dns1123_subdomain(name))


def validate_allocatable(item: Tree, spec: Tree, status: Tree, path: str) -> Errors:
    """What a claim takes of a node's own resources (nodeAllocatableResourceClaimStatuses)."""
    name = item.get("resourceClaimName", "")
    if not name:
        yield errors.required(f"{path}.resourceClaimName", "must not be empty")
    known = [*(spec.get("resourceClaims") or ()), *(status.get("resourceClaimStatuses") or ())]
    if all(claim.get("resourceClaimName") != name for claim in known):
        yield errors.invalid(f"{path}.resourceClaimName", name, "no mapping found in pod reference")
    for field in ("containers", "resources"):
        if not item.get(field):
            yield errors.required(f"{path}.{field}", "must not be empty")
    for resource, amount in sorted((item.get("resources") or {}).items()):
        place = f"{path}.resources[{resource}]"
        if not names.is_native_resource(resource):
            yield errors.invalid(place, resource, "must be a node allocatable resource name")
        if from_json(amount).sign < 0:
            yield errors.invalid(place, amount, "must be non-negative")
