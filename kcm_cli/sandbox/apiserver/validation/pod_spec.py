"""The spec of a pod, by itself and in templates.

Source: pkg/apis/core/validation/validation.go#ValidatePodSpec.
"""

from collections.abc import Callable, Mapping

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import Errors, FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import (
    containers,
    errors,
    go_print,
    labels,
    pod_level,
    pod_network,
    quantities,
    scheduling,
    security,
    windows,
)
from kcm_cli.sandbox.apiserver.validation.pod_annotations import MIRROR
from kcm_cli.sandbox.apiserver.validation.volumes import validate_volumes

_RESTARTS = ("Always", "OnFailure", "Never")
_PREEMPTIONS = ("PreemptLowerPriority", "Never")
_DEADLINE_MAX = 2**31 - 1
_NO_USERNS = "when `hostUsers` is false"

Check = Callable[[Tree, str], Errors]


def validate_pod_spec(spec: Tree, path: str, meta: Tree | None = None, known: Tree | None = None) -> Errors:
    """A spec, defaults filled in. ``meta`` belongs to a pod; a template has none. ``known``: the older spec."""
    if spec.get("terminationGracePeriodSeconds") is None:
        yield errors.required(f"{path}.terminationGracePeriodSeconds")
    yield from _containers(spec, path, meta)
    restart, dns = spec.get("restartPolicy", ""), spec.get("dnsPolicy", "")
    if spec.get("resources") is not None:
        yield from pod_level.validate_resources(spec, f"{path}.resources")
    if spec.get("hostNetwork"):
        yield from pod_network.validate_host_ports(spec, path, is_pod=meta is not None)
    if restart not in _RESTARTS:
        yield errors.unchosen(restart, _RESTARTS, f"{path}.restartPolicy")
    if dns not in pod_network.DNS_POLICIES:
        yield errors.unchosen(dns, pod_network.DNS_POLICIES, f"{path}.dnsPolicy")
    has_policy = ((known or {}).get("securityContext") or {}).get("seLinuxChangePolicy") is not None
    for field, check in _CHECKS_WITH_POLICY if has_policy else _CHECKS:
        if spec.get(field):
            yield from check(spec, f"{path}.{field}")
    if dns == "None" and spec.get("dnsConfig") is None:
        yield from pod_network.validate_dns(spec, f"{path}.dnsConfig")
    yield from _whole(spec, path)
    yield from _names(spec, path)


def _containers(spec: Tree, path: str, meta: Tree | None) -> Errors:
    found: list[FieldError] = []
    volumes: Mapping[str, Tree] = {}
    if items := spec.get("volumes"):
        name = "" if meta is None else meta.get("name", "")
        volumes, found = validate_volumes(items, name, f"{path}.volumes", is_pod=meta is not None)
    claims = spec.get("resourceClaims") or ()
    if claims:
        found += _claims(claims, meta, f"{path}.resourceClaims")
    around = containers.Surroundings(
        volumes,
        [claim["name"] for claim in claims if claim.get("name")],
        spec.get("restartPolicy", ""),
        spec.get("terminationGracePeriodSeconds"),
        (spec.get("os") or {}).get("name"),
        spec.get("hostUsers") is not False,
    )
    regular = spec.get("containers") or []
    found += containers.validate_regular(regular, around, f"{path}.containers")
    init = spec.get("initContainers") or []
    if init:
        found += containers.validate_init(init, regular, around, f"{path}.initContainers")
    if ephemeral := spec.get("ephemeralContainers"):
        place = f"{path}.ephemeralContainers"
        found += containers.validate_ephemeral(ephemeral, [*regular, *init], around, place)
    return found


def _claims(claims: list[Tree], meta: Tree | None, path: str) -> Errors:
    seen: set[str] = set()
    mirror = MIRROR in ((meta or {}).get("annotations") or ())
    for index, claim in enumerate(claims):
        if mirror:
            yield errors.forbidden("[]", "static pods do not support resource claims")
            continue
        yield from _claim(claim, seen, f"{path}[{index}]")


def _claim(claim: Tree, seen: set[str], path: str) -> Errors:
    name = claim.get("name", "")
    if not name:
        yield errors.required(f"{path}.name")
    elif name in seen:
        yield errors.duplicate(f"{path}.name", name)
    else:
        yield from errors.invalid_each(f"{path}.name", name, names.dns1123_label(name))
        seen.add(name)
    fields = ("resourceClaimName", "resourceClaimTemplateName")
    given = [field for field in fields if claim.get(field) is not None]
    if len(given) != 1:
        shown = go_print.internal("v1.PodResourceClaim", claim)
        detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        if given:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        yield errors.invalid(path, shown, detail)
    for field in given:
        yield from errors.invalid_each(f"{path}.{field}", claim[field], names.dns1123_subdomain(claim[field]))


def _node_selector(spec: Tree, path: str) -> Errors:
    return labels.validate_labels(spec["nodeSelector"], path)


def _security(spec: Tree, path: str) -> Errors:
    return security.validate_pod(spec["securityContext"], spec, path)


def _security_with_policy(spec: Tree, path: str) -> Errors:
    return security.validate_pod(spec["securityContext"], spec, path, mount_option=True)


def _shared_processes(spec: Tree, path: str) -> Errors:
    if not spec.get("hostPID"):
        return []
    place = path.replace(".shareProcessNamespace", ".securityContext.shareProcessNamespace")
    return [errors.invalid(place, True, "ShareProcessNamespace and HostPID cannot both be enabled")]


def _affinity(spec: Tree, path: str) -> Errors:
    return scheduling.validate_affinity(spec["affinity"], path)


def _readiness_gates(spec: Tree, path: str) -> Errors:
    for index, gate in enumerate(spec["readinessGates"]):
        yield from labels.validate_key(gate.get("conditionType", ""), f"{path}[{index}].conditionType")


def _gates(spec: Tree, path: str) -> Errors:
    return scheduling.validate_gates(spec["schedulingGates"], path)


def _spreading(spec: Tree, path: str) -> Errors:
    return scheduling.validate_spreading(spec["topologySpreadConstraints"], path)


_CHECKS: tuple[tuple[str, Check], ...] = (
    ("nodeSelector", _node_selector),
    ("securityContext", _security),
    ("shareProcessNamespace", _shared_processes),
    ("affinity", _affinity),
    ("dnsConfig", pod_network.validate_dns),
    ("readinessGates", _readiness_gates),
    ("schedulingGates", _gates),
    ("topologySpreadConstraints", _spreading),
)
_CHECKS_WITH_POLICY = tuple((field, _security_with_policy if check is _security else check) for field, check in _CHECKS)


def _whole(spec: Tree, path: str) -> Errors:
    """What concerns the pod and its containers at once."""
    yield from windows.validate_host_process(spec, path)
    if spec.get("hostUsers") is False:
        for field, place in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
            if spec.get(field):
                yield errors.forbidden(f"{path}.{place}", _NO_USERNS)
        for container, place in windows.containers_of(spec, path):
            if container.get("volumeDevices"):
                yield errors.forbidden(f"{place}.volumeDevices", _NO_USERNS)
    if spec.get("hostnameOverride") is not None:
        yield from pod_network.validate_hostname_override(spec, path)


def _names(spec: Tree, path: str) -> Errors:
    for field, check in _LATER:
        if spec.get(field) is not None:
            yield from check(spec, f"{path}.{field}")
    yield from _file_keys(spec, path)


def _subdomain(field: str, *, optional: bool = True) -> Check:
    def check(spec: Tree, path: str) -> Errors:
        value = spec[field]
        if not value and optional:
            return []
        if value.isalnum() and value.islower() and value.isascii() and len(value) <= names.LABEL_MAX:
            return []
        return errors.invalid_each(path, value, names.dns1123_subdomain(value))

    return check


def _label(field: str) -> Check:
    def check(spec: Tree, path: str) -> Errors:
        value = spec[field]
        return errors.invalid_each(path, value, names.dns1123_label(value)) if value else []

    return check


def _deadline(spec: Tree, path: str) -> Errors:
    value = spec["activeDeadlineSeconds"]
    if 1 <= value <= _DEADLINE_MAX:
        return []
    return [errors.invalid(path, value, names.range_message(1, _DEADLINE_MAX))]


def _tolerations(spec: Tree, path: str) -> Errors:
    return scheduling.validate_tolerations(spec["tolerations"], path)


def _aliases(spec: Tree, path: str) -> Errors:
    return pod_network.validate_aliases(spec["hostAliases"], path)


def _preemption(spec: Tree, path: str) -> Errors:
    value = spec["preemptionPolicy"]
    return [] if value in _PREEMPTIONS else [errors.unchosen(value, _PREEMPTIONS, path)]


def _overhead(spec: Tree, path: str) -> Errors:
    return quantities.validate_container({"limits": spec["overhead"]}, (), path)


def _os(spec: Tree, path: str) -> Errors:
    return windows.validate_os(spec, path.removesuffix(".os"))


_LATER: tuple[tuple[str, Check], ...] = (
    ("serviceAccountName", _subdomain("serviceAccountName")),
    ("nodeName", _subdomain("nodeName")),
    ("activeDeadlineSeconds", _deadline),
    ("hostname", _label("hostname")),
    ("subdomain", _label("subdomain")),
    ("tolerations", _tolerations),
    ("hostAliases", _aliases),
    ("priorityClassName", _subdomain("priorityClassName")),
    ("runtimeClassName", _subdomain("runtimeClassName", optional=False)),
    ("preemptionPolicy", _preemption),
    ("overhead", _overhead),
    ("os", _os),
)


def _file_keys(spec: Tree, path: str) -> Errors:
    """Variables that come from files come from files of the pod's own."""
    for container, place in windows.containers_of(spec, path):
        for index, variable in enumerate(container.get("env") or ()):
            reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
            if reference is None:
                continue
            name = reference.get("volumeName", "")
            where = f"{place}.env[{index}].valueFrom.fileKeyRef.volumeName"
            sources = [item for item in spec.get("volumes") or () if item.get("name", "") == name]
            if not sources:
                yield errors.not_found(where, name)
            elif sources[-1].get("emptyDir") is None:
                yield errors.invalid(where, name, "referenced volume must be of type emptyDir")
