"""The additional rules of the restricted level.

upstream: staging/src/k8s.io/pod-security-admission/policy/check_*.go
"""

from kcm_cli.sandbox.apiserver.admission.pod_security.baseline import (
    bad_seccomp,
    in_user_namespace,
    seccomp_profile,
)
from kcm_cli.sandbox.apiserver.admission.pod_security.findings import (
    Check,
    Finding,
    chosen,
    containers_of,
    context_of,
    counted,
    listed,
    plural,
    setters,
)
from kcm_cli.sandbox.apiserver.types import Tree

_VOLUMES = frozenset(
    {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
)


def unless_windows(check: Check) -> Check:
    """The check, except for Windows pods, which cannot set its fields."""

    def exempting(metadata: Tree, spec: Tree) -> Finding | None:
        windows = (spec.get("os") or {}).get("name") == "windows"
        return None if windows else check(metadata, spec)

    return exempting


def unless_user_namespace(check: Check) -> Check:
    """The check, except for pods with a user namespace."""

    def exempting(metadata: Tree, spec: Tree) -> Finding | None:
        return None if in_user_namespace(spec) else check(metadata, spec)

    return exempting


def privilege_escalation(metadata: Tree, spec: Tree) -> Finding | None:
    found = chosen(spec, lambda context: context.get("allowPrivilegeEscalation") is not False)
    detail = f"{plural('container', found)} must set securityContext.allowPrivilegeEscalation=false"
    return Finding("allowPrivilegeEscalation != false", detail) if found else None


def capabilities(metadata: Tree, spec: Tree) -> Finding | None:
    def part(context: Tree, key: str) -> set[str]:
        return set((context.get("capabilities") or {}).get(key) or ())

    def added(context: Tree) -> set[str]:
        return part(context, "add") - {"NET_BIND_SERVICE"}

    details: list[str] = []
    keeping = chosen(spec, lambda context: "ALL" not in part(context, "drop"))
    if keeping:
        details.append(f'{plural("container", keeping)} must set securityContext.capabilities.drop=["ALL"]')
    adding = chosen(spec, added)
    if adding:
        found = sorted({name for each in containers_of(spec) for name in added(context_of(each))})
        details.append(
            f"{plural('container', adding)} must not include {listed(found)} in securityContext.capabilities.add"
        )
    return Finding("unrestricted capabilities", "; ".join(details)) if details else None


def volumes(metadata: Tree, spec: Tree) -> Finding | None:
    found = [each for each in spec.get("volumes") or () if not any(each.get(k) is not None for k in _VOLUMES)]
    if not found:
        return None
    kinds = {next((kind for kind in each if kind != "name"), "unknown") for each in found}
    verb = "uses" if len(found) == 1 else "use"
    what = plural("restricted volume type", sorted(kinds))
    detail = f"{plural('volume', [each['name'] for each in found])} {verb} {what}"
    return Finding("restricted volume types", detail)


def run_as_non_root(metadata: Tree, spec: Tree) -> Finding | None:
    own = context_of(spec).get("runAsNonRoot")
    reason = "runAsNonRoot != true"
    who = setters(own is False, chosen(spec, lambda context: context.get("runAsNonRoot") is False))
    if who:
        return Finding(reason, f"{who} must not set securityContext.runAsNonRoot=false")
    silent = [] if own else chosen(spec, lambda context: context.get("runAsNonRoot") is None)
    if not silent:
        return None
    return Finding(reason, f"pod or {plural('container', silent)} must set securityContext.runAsNonRoot=true")


def run_as_user(metadata: Tree, spec: Tree) -> Finding | None:
    def root(context: Tree) -> bool:
        return context.get("runAsUser") == 0

    who = setters(root(context_of(spec)), chosen(spec, root))
    return Finding("runAsUser=0", f"{who} must not set runAsUser=0") if who else None


def seccomp(metadata: Tree, spec: Tree) -> Finding | None:
    wrong = seccomp_profile(metadata, spec)
    if wrong is not None:
        return wrong
    own = context_of(spec)
    if own.get("seccompProfile") is not None and bad_seccomp(own) is None:
        return None
    silent = chosen(spec, lambda context: context.get("seccompProfile") is None)
    if not silent:
        return None
    names = f"{counted('container', len(silent))} {listed(silent)}"
    detail = f'pod or {names} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Finding("seccompProfile", detail)
