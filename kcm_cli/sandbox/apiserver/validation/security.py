"""Security contexts of pods and containers.

upstream: pkg/apis/core/validation/validation.go#ValidateSecurityContext, #validatePodSpecSecurityContext
"""

import re

from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, file_paths, rules, windows
from kcm_cli.sandbox.apiserver.validation.go_print import internal

_MAX_ID = 2**31 - 1
_SYSCTL = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_sysctl = re.compile(_SYSCTL).fullmatch
_SYSCTL_MAX = 253
_APPARMOR_MAX = 4095
_IPC_SYSCTLS = ("kernel.shm", "kernel.msg", "fs.mqueue.")


user_or_group = rules.between(0, _MAX_ID)
"""A user or group ID."""


def validate_container(context: Tree, path: str, *, host_users: bool) -> Errors:
    """Check the security context of a container."""
    return _CONTAINER[host_users](context, path)


_unmasked = rules.must(lambda mount: mount != "Unmasked", "`hostUsers` must be false to use `Unmasked`")


def _escalation(context: Tree, path: str) -> Errors:
    if context.get("allowPrivilegeEscalation") is not False:
        return
    prefix = "cannot set `allowPrivilegeEscalation` to false and"
    if context.get("privileged"):
        yield errors.invalid(path, internal("v1.SecurityContext", context), f"{prefix} `privileged` to true")
    for capability in (context.get("capabilities") or {}).get("add") or ():
        if capability == "CAP_SYS_ADMIN":
            detail = f"{prefix} `capabilities.Add` CAP_SYS_ADMIN"
            yield errors.invalid(path, internal("v1.SecurityContext", context), detail)


def _seccomp_profile(profile: Tree, path: str) -> Errors:
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    if kind == "Localhost":
        if local is None:
            yield errors.required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost")
        else:
            yield from file_paths.descending(local, f"{path}.localhostProfile")
    elif local is not None:
        shown = {"Type": kind, "LocalhostProfile": local}
        yield errors.invalid(f"{path}.localhostProfile", shown, "can only be set when seccomp type is Localhost")


_seccomp = rules.fields_of(
    "core.v1.SeccompProfile",
    rules.one_of("type", detail="type is required when seccompProfile is set"),
    _seccomp_profile,
)


def _app_armor_profile(profile: Tree, path: str) -> Errors:
    kind, local, place = profile.get("type", ""), profile.get("localhostProfile"), f"{path}.localhostProfile"
    needed = "must be set when AppArmor type is Localhost"
    if kind != "Localhost":
        if local is not None:
            yield errors.invalid(place, local, "can only be set when AppArmor type is Localhost")
        return
    if local is None:
        yield errors.required(place, needed)
        return
    if local.strip() != local:
        yield errors.invalid(place, local, "must not be padded with whitespace")
    elif not local:
        yield errors.required(place, needed)
    yield from rules.max_bytes(_APPARMOR_MAX)(local, place)


app_armor = rules.unless(
    rules.fields_of(
        "core.v1.AppArmorProfile", rules.one_of("type", detail="type is required when appArmorProfile is set")
    ),
    _app_armor_profile,
)
"""An AppArmor profile."""


def validate_pod(context: Tree, spec: Tree, path: str, *, mount_option: bool = False) -> Errors:
    """Check the security context of a pod. mount_option: whether the old object has an SELinux change policy, without
    which it must not be ``MountOption``, since the gate SELinuxMount is off."""
    yield from _IDS(context, path)
    if sysctls := context.get("sysctls"):
        yield from _sysctls(sysctls, spec, f"{path}.sysctls")
    yield from _POD[mount_option](context, path)


_PROFILES = (
    rules.optional("seccompProfile", _seccomp),
    rules.optional("windowsOptions", windows.validate_options),
    rules.optional("appArmorProfile", app_armor),
)
_IDS = rules.fields(
    *(rules.optional(field, user_or_group) for field in ("fsGroup", "runAsUser", "runAsGroup")),
    rules.each("supplementalGroups", user_or_group),
)
_POD = {
    mount_option: rules.fields_of(
        "core.v1.PodSecurityContext",
        rules.maybe_one_of("fsGroupChangePolicy"),
        *_PROFILES,
        rules.maybe_one_of("supplementalGroupsPolicy"),
        rules.maybe_one_of("seLinuxChangePolicy", *policies),
    )
    for mount_option, policies in ((False, ("Recursive",)), (True, ("MountOption", "Recursive")))
}
_CONTAINER = {
    host_users: rules.fields_of(
        "core.v1.SecurityContext",
        rules.optional("runAsUser", user_or_group),
        rules.optional("runAsGroup", user_or_group),
        rules.maybe_one_of("procMount"),
        *([rules.optional("procMount", _unmasked)] if host_users else ()),
        _PROFILES[0],
        _escalation,
        *_PROFILES[1:],
    )
    for host_users in (False, True)
}


def _sysctls(sysctls: list[Tree], spec: Tree, path: str) -> Errors:
    seen: set[str] = set()
    for index, item in enumerate(sysctls):
        name, place = item.get("name", ""), f"{path}[{index}].name"
        if not name:
            yield errors.required(place)
        elif len(name) > _SYSCTL_MAX or not _sysctl(name):
            detail = f"must have at most {_SYSCTL_MAX} characters and match regex ^{_SYSCTL}$"
            yield errors.invalid(place, name, detail)
        elif name in seen:
            yield errors.duplicate(place, name)
        yield from _host_sysctl(name.replace("/", "."), name, spec, place)
        seen.add(name)


def _host_sysctl(dotted: str, name: str, spec: Tree, path: str) -> Errors:
    if spec.get("hostNetwork") and dotted.startswith("net."):
        return [errors.invalid(path, name, "may not be specified when 'hostNetwork' is true")]
    if spec.get("hostIPC") and (dotted.startswith(_IPC_SYSCTLS) or dotted == "kernel.sem"):
        return [errors.invalid(path, name, "may not be specified when 'hostIPC' is true")]
    return []
