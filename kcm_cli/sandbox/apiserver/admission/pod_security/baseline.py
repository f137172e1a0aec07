"""The rules of the baseline level, which prevent known privilege escalations.

upstream: staging/src/k8s.io/pod-security-admission/policy/check_*.go
"""

from collections.abc import Callable, Iterable, Iterator

from kcm_cli.api.well_known import APP_ARMOR, SECCOMP_CONTAINER, SECCOMP_POD
from kcm_cli.machinery.quoting import quote
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

_CAPABILITIES = frozenset(
    {
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    }
)
_SYSCTLS = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    }
)
SYSCTLS_27 = _SYSCTLS | {"net.ipv4.ip_local_reserved_ports"}
SYSCTLS_29 = SYSCTLS_27 | {
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
}
SYSCTLS_32 = SYSCTLS_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}
_SELINUX = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})
SELINUX_31 = _SELINUX | {"container_engine_t"}
GOOD_PROFILES = ("RuntimeDefault", "Localhost")


def in_user_namespace(spec: Tree) -> bool:
    """Whether the pod has its own user namespace."""
    return spec.get("hostUsers") is False


def apparmor_profile(metadata: Tree, spec: Tree) -> Finding | None:
    def bad(context: Tree) -> str | None:
        kind = (context.get("appArmorProfile") or {}).get("type")
        return None if kind is None or kind in GOOD_PROFILES else kind

    values = _bad_values(spec, bad)
    who = [setters(bool(bad(context_of(spec))), chosen(spec, bad))]
    annotations = sorted(
        f"{key}={quote(value)}"
        for key, value in (metadata.get("annotations") or {}).items()
        if key.startswith(APP_ARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    )
    if annotations:
        values += annotations
        who.append(counted("annotation", len(annotations)))
    culprits = " and ".join(filter(None, who))
    if not culprits:
        return None
    detail = f"{culprits} must not set AppArmor profile type to {listed(values)}"
    return Finding(counted("forbidden AppArmor profile", len(values)), detail)


def _bad_values(spec: Tree, bad: Callable[[Tree], str | None]) -> list[str]:
    contexts = [context_of(spec), *(context_of(each) for each in containers_of(spec))]
    return sorted({value for value in map(bad, contexts) if value is not None})


def capabilities(metadata: Tree, spec: Tree) -> Finding | None:
    def added(context: Tree) -> set[str]:
        return set((context.get("capabilities") or {}).get("add") or ()) - _CAPABILITIES

    culprits = chosen(spec, added)
    if not culprits:
        return None
    found = sorted({name for each in containers_of(spec) for name in added(context_of(each))})
    detail = f"{plural('container', culprits)} must not include {listed(found)} in "
    return Finding("non-default capabilities", f"{detail}securityContext.capabilities.add")


def host_namespaces(metadata: Tree, spec: Tree) -> Finding | None:
    shared = [f"{key}=true" for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key)]
    return Finding("host namespaces", ", ".join(shared)) if shared else None


def host_path_volumes(metadata: Tree, spec: Tree) -> Finding | None:
    found = [each["name"] for each in spec.get("volumes") or () if each.get("hostPath") is not None]
    return Finding("hostPath volumes", plural("volume", found)) if found else None


def host_ports(metadata: Tree, spec: Tree) -> Finding | None:
    found = {
        each["name"]: [str(port["hostPort"]) for port in each.get("ports") or () if port.get("hostPort")]
        for each in containers_of(spec)
    }
    culprits = [name for name, used in found.items() if used]
    if not culprits:
        return None
    ports = sorted({port for used in found.values() for port in used})
    verb = "uses" if len(culprits) == 1 else "use"
    detail = f"{plural('container', culprits)} {verb} {counted('hostPort', len(ports))} {', '.join(ports)}"
    return Finding("hostPort", detail)


def host_probes(metadata: Tree, spec: Tree) -> Finding | None:
    hosts = {each["name"]: set(_probe_hosts(each)) for each in containers_of(spec)}
    culprits = sorted(name for name, used in hosts.items() if used)
    if not culprits:
        return None
    found = sorted(set().union(*hosts.values()))
    verb = "uses" if len(culprits) == 1 else "use"
    what = counted("probe or lifecycle host", len(found))
    detail = f"{plural('container', culprits)} {verb} {what} {listed(found)}"
    return Finding("probe or lifecycle host", detail)


def _probe_hosts(container: Tree) -> Iterator[str]:
    lifecycle: Tree = container.get("lifecycle") or {}
    handlers: Iterable[Tree | None] = (
        container.get("livenessProbe"),
        container.get("readinessProbe"),
        container.get("startupProbe"),
        lifecycle.get("postStart"),
        lifecycle.get("preStop"),
    )
    for handler in handlers:
        for kind in ("httpGet", "tcpSocket"):
            host = ((handler or {}).get(kind) or {}).get("host")
            if host:
                yield host


def privileged(metadata: Tree, spec: Tree) -> Finding | None:
    found = chosen(spec, lambda context: context.get("privileged"))
    detail = f"{plural('container', found)} must not set securityContext.privileged=true"
    return Finding("privileged", detail) if found else None


def proc_mount(metadata: Tree, spec: Tree) -> Finding | None:
    found = chosen(spec, lambda context: (context.get("procMount") or "Default") != "Default")
    if not found:
        return None
    kinds = sorted({context_of(each).get("procMount") or "Default" for each in containers_of(spec)} - {"Default"})
    detail = f"{plural('container', found)} must not set securityContext.procMount to {listed(kinds)}"
    return Finding("procMount", detail)


def proc_mount_35(metadata: Tree, spec: Tree) -> Finding | None:
    return None if in_user_namespace(spec) else proc_mount(metadata, spec)


def seccomp_annotations(metadata: Tree, spec: Tree) -> Finding | None:
    annotations: dict[str, str] = metadata.get("annotations") or {}
    keys = [SECCOMP_POD, *(SECCOMP_CONTAINER + each["name"] for each in containers_of(spec))]
    found = sorted(
        {
            f"{key}={quote(annotations[key])}"
            for key in keys
            if key in annotations
            and annotations[key] not in ("runtime/default", "docker/default")
            and not annotations[key].startswith("localhost/")
        }
    )
    detail = f"forbidden {counted('annotation', len(found))} {', '.join(found)}"
    return Finding("seccompProfile", detail) if found else None


def bad_seccomp(context: Tree) -> str | None:
    """The type of a forbidden seccomp profile, otherwise None."""
    profile = context.get("seccompProfile")
    kind = None if profile is None else profile.get("type", "")
    return None if kind is None or kind in GOOD_PROFILES else kind


def seccomp_profile(metadata: Tree, spec: Tree) -> Finding | None:
    who = setters(bad_seccomp(context_of(spec)) is not None, _bad_seccomp_containers(spec))
    if not who:
        return None
    values = listed(_bad_values(spec, bad_seccomp))
    return Finding("seccompProfile", f"{who} must not set securityContext.seccompProfile.type to {values}")


def _bad_seccomp_containers(spec: Tree) -> list[str]:
    return chosen(spec, lambda context: bad_seccomp(context) is not None)


def selinux_options(allowed: frozenset[str] = _SELINUX) -> Check:
    """The check with the allowed types."""

    def wrong(context: Tree) -> bool:
        options: Tree = context.get("seLinuxOptions") or {}
        return bool(options.get("type", "") not in allowed or options.get("user") or options.get("role"))

    def check(metadata: Tree, spec: Tree) -> Finding | None:
        who = setters(wrong(context_of(spec)), chosen(spec, wrong))
        if not who:
            return None
        contexts = [context_of(spec), *(context_of(each) for each in containers_of(spec))]
        options: list[Tree] = [context.get("seLinuxOptions") or {} for context in contexts]
        types = sorted({each.get("type", "") for each in options} - allowed)
        what = [plural("type", types)] if types else []
        what += [f"{key} may not be set" for key in ("user", "role") if any(each.get(key) for each in options)]
        detail = f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(what)}"
        return Finding("seLinuxOptions", detail)

    return check


def sysctls(allowed: frozenset[str] = _SYSCTLS) -> Check:
    """The check with the allowed sysctls."""

    def check(metadata: Tree, spec: Tree) -> Finding | None:
        found = [each["name"] for each in context_of(spec).get("sysctls") or () if each["name"] not in allowed]
        return Finding("forbidden sysctls", ", ".join(found)) if found else None

    return check


def windows_host_process(metadata: Tree, spec: Tree) -> Finding | None:
    def wrong(context: Tree) -> bool:
        return bool((context.get("windowsOptions") or {}).get("hostProcess"))

    who = setters(wrong(context_of(spec)), chosen(spec, wrong))
    detail = f"{who} must not set securityContext.windowsOptions.hostProcess=true"
    return Finding("hostProcess", detail) if who else None
