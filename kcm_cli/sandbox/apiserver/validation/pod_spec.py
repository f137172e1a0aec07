"""The spec of pods and pod templates.

upstream: pkg/apis/core/validation/validation.go#ValidatePodSpec
"""

from collections.abc import Mapping

from kcm_cli.api.well_known import MIRROR
from kcm_cli.sandbox.apiserver.types import Errors, FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import (
    containers,
    errors,
    go_print,
    labels,
    pod_level,
    pod_network,
    quantities,
    rules,
    scheduling,
    security,
    windows,
)
from kcm_cli.sandbox.apiserver.validation.volumes import validate_volumes

_PREEMPTIONS = ("PreemptLowerPriority", "Never")
_NO_USERNS = "when `hostUsers` is false"


def validate_pod_spec(spec: Tree, path: str, meta: Tree | None = None, known: Tree | None = None) -> list[FieldError]:
    """Check a defaulted spec. ``meta``: that of a pod, None for a template. ``known``: the old spec."""
    found = [*_GRACE(spec, path)]
    found += _containers(spec, path, meta)
    if spec.get("resources") is not None:
        found += pod_level.validate_resources(spec, f"{path}.resources")
    if spec.get("hostNetwork"):
        found += pod_network.validate_host_ports(spec, path, is_pod=meta is not None)
    has_policy = ((known or {}).get("securityContext") or {}).get("seLinuxChangePolicy") is not None
    found += _SPEC[has_policy](spec, path)
    return found + _file_keys(spec, path)


def _containers(spec: Tree, path: str, meta: Tree | None) -> Errors:
    found: list[FieldError] = []
    volumes: Mapping[str, Tree] = {}
    if items := spec.get("volumes"):
        name = "" if meta is None else meta.get("name", "")
        volumes, found = validate_volumes(items, name, f"{path}.volumes")
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
        yield from rules.LABEL(name, f"{path}.name")
        seen.add(name)
    given = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(field) is not None]
    if len(given) != 1:
        shown = go_print.internal("v1.PodResourceClaim", claim)
        detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        if given:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        yield errors.invalid(path, shown, detail)
    for field in given:
        yield from rules.SUBDOMAIN(claim[field], f"{path}.{field}")


def _security(mount_option: bool) -> rules.Rule:
    def check(spec: Tree, path: str) -> Errors:
        if context := spec.get("securityContext"):
            return security.validate_pod(context, spec, f"{path}.securityContext", mount_option=mount_option)
        return ()

    return check


def _host(spec: Tree, path: str) -> Errors:
    """Check host namespaces."""
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        place = f"{path}.securityContext.shareProcessNamespace"
        yield errors.invalid(place, True, "ShareProcessNamespace and HostPID cannot both be enabled")


def _whole(spec: Tree, path: str) -> Errors:
    """Check fields that concern the pod and its containers."""
    yield from windows.validate_host_process(spec, path)
    if spec.get("hostUsers") is False:
        yield from _NO_USER_NAMESPACE(spec, path)
        for container, place in windows.containers_of(spec, path):
            yield from _NO_DEVICES(container, place)
    if spec.get("hostnameOverride") is not None:
        yield from pod_network.validate_hostname_override(spec, path)


_NO_USER_NAMESPACE = rules.fields(
    rules.forbidden("hostNetwork", _NO_USERNS),
    rules.forbidden("hostPID", _NO_USERNS, at="HostPID"),
    rules.forbidden("hostIPC", _NO_USERNS, at="HostIPC"),
)
_NO_DEVICES = rules.fields(rules.forbidden("volumeDevices", _NO_USERNS))


def _preemption(policy: str, path: str) -> Errors:
    return errors.one_of(path, policy, _PREEMPTIONS)


def _overhead(overhead: Tree, path: str) -> Errors:
    return quantities.validate_container({"limits": overhead}, (), path)


def _os(spec: Tree, path: str) -> Errors:
    return () if spec.get("os") is None else windows.validate_os(spec, path)


_GRACE = rules.fields(rules.present("terminationGracePeriodSeconds"))
_SPEC = {
    mount_option: rules.fields(
        rules.one_of("restartPolicy", "Always", "OnFailure", "Never"),
        rules.one_of("dnsPolicy", "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
        rules.nonempty("nodeSelector", labels.validate_labels),
        _security(mount_option),
        _host,
        rules.nonempty("affinity", scheduling.validate_affinity),
        pod_network.validate_dns,
        rules.each("readinessGates", rules.fields(rules.always("conditionType", labels.validate_key))),
        rules.nonempty("schedulingGates", scheduling.validate_gates),
        rules.nonempty("topologySpreadConstraints", scheduling.validate_spreading),
        _whole,
        rules.nonempty("serviceAccountName", rules.SUBDOMAIN),
        rules.nonempty("nodeName", rules.SUBDOMAIN),
        rules.optional("activeDeadlineSeconds", rules.between(1, 2**31 - 1)),
        rules.nonempty("hostname", rules.LABEL),
        rules.nonempty("subdomain", rules.LABEL),
        rules.nonempty("tolerations", scheduling.validate_tolerations),
        rules.nonempty("hostAliases", pod_network.validate_aliases),
        rules.nonempty("priorityClassName", rules.SUBDOMAIN),
        rules.optional("runtimeClassName", rules.SUBDOMAIN),
        rules.optional("preemptionPolicy", _preemption),
        rules.optional("overhead", _overhead),
        _os,
    )
    for mount_option in (False, True)
}


def _file_keys(spec: Tree, path: str) -> list[FieldError]:
    """Check that variables from files refer to emptyDir volumes."""
    found: list[FieldError] = []
    for container, place in windows.containers_of(spec, path):
        for index, variable in enumerate(container.get("env") or ()):
            reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
            if reference is None:
                continue
            name = reference.get("volumeName", "")
            where = f"{place}.env[{index}].valueFrom.fileKeyRef.volumeName"
            sources = [item for item in spec.get("volumes") or () if item.get("name", "") == name]
            if not sources:
                found.append(errors.not_found(where, name))
            elif sources[-1].get("emptyDir") is None:
                found.append(errors.invalid(where, name, "referenced volume must be of type emptyDir"))
    return found
