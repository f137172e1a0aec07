"""Warnings about pods and pod templates.

upstream: pkg/api/pod/warnings.go, pkg/registry/core/pod/strategy.go#WarningsOnCreate
"""

from collections.abc import Mapping
from functools import partial

from kcm_cli.api.well_known import SECCOMP_POD
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.strategy.warnings import containers, nodes, storage
from kcm_cli.sandbox.apiserver.strategy.warnings.volume_paths import overlapping
from kcm_cli.sandbox.apiserver.trees import each_at, places
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.validation.addresses import ip_warnings

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NULL = "a null labelSelector results in matching no pod"
_ANNOTATIONS: Mapping[str, str] = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_WARNED_VOLUMES = frozenset([*storage.DEPRECATED, "ephemeral"])


def of_template(template: Tree | None, path: str) -> list[str]:
    """Warnings about a pod template."""
    if template is None:
        return []
    return warnings_of_pod(template.get("spec") or {}, template.get("metadata") or {}, f"{path}.")


def warnings_of_pod(spec: Tree, meta: Tree, path: str) -> list[str]:
    """The warnings about a pod, or a template of pods, in upstream's order. path: of spec and metadata in the object,
    with its dot."""
    found: list[str] = []
    affinity, annotations = spec.get("affinity"), meta.get("annotations")
    for key in sorted(spec.get("nodeSelector") or ()):
        if message := nodes.DEPRECATED.get(key):
            found.append(f"{path}spec.nodeSelector[{key}]: {message}")
    if affinity:
        found += _node_affinity(affinity.get("nodeAffinity") or {}, f"{path}spec.affinity.nodeAffinity")
    for index, item in enumerate(spec.get("topologySpreadConstraints") or ()):
        found += _spreading(item, f"{path}spec.topologySpreadConstraints[{index}]")
    if annotations:
        shown = f"{path}metadata.annotations"
        found += [f"{shown}[{key}]: {text}" for key, text in _ANNOTATIONS.items() if key in annotations]
    if volumes := spec.get("volumes"):
        found += _volumes(volumes, f"{path}spec.volumes") + overlapping(volumes)
    found += _lists(spec, path)
    context = spec.get("securityContext") or {}
    if annotations and SECCOMP_POD in annotations and context.get("seccompProfile") is None:
        text = 'non-functional in v1.27+; use the "seccompProfile" field instead'
        found.append(f"{path}metadata.annotations[{SECCOMP_POD}]: {text}")
    found += containers.of_containers(spec, annotations or {}, path)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        text = "must be >= 0; negative values are invalid and will be treated as 1"
        found.append(f"{path}spec.terminationGracePeriodSeconds: {text}")
    if affinity:
        found += _pod_affinity(affinity, f"{path}spec.affinity")
    for index, server in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        found += ip_warnings(server, f"{path}spec.dnsConfig.nameservers[{index}]")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        found += ip_warnings(alias.get("ip", ""), f"{path}spec.hostAliases[{index}].ip")
    return found


def _node_affinity(affinity: Tree, path: str) -> list[str]:
    found = each_at(nodes.of_term, affinity, f"{_REQUIRED}.nodeSelectorTerms[]", path)
    return found + each_at(partial(nodes.of_term, values=True), affinity, f"{_PREFERRED}[].preference", path)


def _spreading(item: Tree, path: str) -> list[str]:
    key, found = item.get("topologyKey", ""), list[str]()
    if message := nodes.DEPRECATED.get(key):
        found.append(f"{path}.topologyKey: {key} is {message}")
    if item.get("labelSelector") is None:
        found.append(f"{path}.labelSelector: {_NULL}")
    return found


def _pod_affinity(affinity: Tree, path: str) -> list[str]:
    found: list[str] = []
    for field in ("podAffinity", "podAntiAffinity"):
        for terms in (f"{field}.{_REQUIRED}[]", f"{field}.{_PREFERRED}[].podAffinityTerm"):
            for term, place in places(affinity, terms, path):
                if term.get("labelSelector") is None:
                    found.append(f"{place}.labelSelector: {_NULL}")
    return found


def _volumes(volumes: list[Tree], path: str) -> list[str]:
    found: list[str] = []
    for index, volume in enumerate(volumes):
        if _WARNED_VOLUMES.isdisjoint(volume):
            continue
        found += [
            f"{path}[{index}].{text}" for kind, text in storage.DEPRECATED.items() if volume.get(kind) is not None
        ]
        found += each_at(storage.of_claim_spec, volume, "ephemeral.volumeClaimTemplate.spec", f"{path}[{index}]")
    return found


def _lists(spec: Tree, path: str) -> list[str]:
    """Warnings about repeated and empty entries, and fractional overhead."""
    found: list[str] = []
    for field, key in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        seen: set[str] = set()
        for index, item in enumerate(spec.get(field) or ()):
            value = item.get(key, "")
            if value in seen:
                found.append(f"{path}spec.{field}[{index}].{key}: duplicate {key} {quote(value)}")
            seen.add(value)
    for index, item in enumerate(spec.get("imagePullSecrets") or ()):
        if not item.get("name"):
            found.append(f'{path}spec.imagePullSecrets[{index}].name: invalid empty name ""')
    if overhead := spec.get("overhead"):
        for name in ("memory", "ephemeral-storage"):
            found += storage.fraction(overhead, name, f"{path}spec.overhead")
    return found
