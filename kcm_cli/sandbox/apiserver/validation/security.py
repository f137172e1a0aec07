"""Security contexts of pods and containers.

Source: pkg/apis/core/validation/validation.go#ValidateSecurityContext, #validatePodSpecSecurityContext.
"""

import re

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import Errors, FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, file_paths, windows
from kcm_cli.sandbox.apiserver.validation.go_print import internal

_MAX_ID = 2**31 - 1
_PROFILES = ["Localhost", "RuntimeDefault", "Unconfined"]
_SYSCTL = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_sysctl = re.compile(_SYSCTL).fullmatch
_SYSCTL_MAX = 253
_APPARMOR_MAX = 4095
_IPC_SYSCTLS = ("kernel.shm", "kernel.msg", "fs.mqueue.")
_CHOICES = (
    ("fsGroupChangePolicy", ("Always", "OnRootMismatch")),
    ("supplementalGroupsPolicy", ("Merge", "Strict")),
    ("seLinuxChangePolicy", ("Recursive",)),
    ("seLinuxChangePolicy", ("MountOption", "Recursive")),
)


def user_or_group(value: int, path: str) -> Errors:
    """A user or group ID."""
    if 0 <= value <= _MAX_ID:
        return []
    return [errors.invalid(path, value, names.range_message(0, _MAX_ID))]


def validate_container(context: Tree, path: str, *, host_users: bool) -> Errors:
    """A container's security context."""
    for field in ("runAsUser", "runAsGroup"):
        value = context.get(field)
        if value is not None:
            yield from user_or_group(value, f"{path}.{field}")
    mount = context.get("procMount")
    if mount is not None:
        if mount not in ("Default", "Unmasked"):
            yield errors.not_supported(f"{path}.procMount", mount, ["Default", "Unmasked"])
        if host_users and mount == "Unmasked":
            yield errors.invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`")
    yield from _seccomp(context.get("seccompProfile"), f"{path}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        yield from _escalation(context, path)
    yield from windows.validate_options(context.get("windowsOptions"), f"{path}.windowsOptions")
    yield from app_armor(context.get("appArmorProfile"), f"{path}.appArmorProfile")


def _escalation(context: Tree, path: str) -> Errors:
    prefix = "cannot set `allowPrivilegeEscalation` to false and"
    shown = None
    if context.get("privileged"):
        shown = internal("v1.SecurityContext", context)
        yield errors.invalid(path, shown, f"{prefix} `privileged` to true")
    for capability in (context.get("capabilities") or {}).get("add") or ():
        if capability == "CAP_SYS_ADMIN":
            shown = shown or internal("v1.SecurityContext", context)
            yield errors.invalid(path, shown, f"{prefix} `capabilities.Add` CAP_SYS_ADMIN")


def _seccomp(profile: Tree | None, path: str) -> Errors:
    if profile is None:
        return
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        yield errors.required(f"{path}.type", "type is required when seccompProfile is set")
    elif kind not in _PROFILES:
        yield errors.not_supported(f"{path}.type", kind, _PROFILES)
    if kind == "Localhost":
        if local is None:
            yield errors.required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost")
            return
        yield from file_paths.descending(local, f"{path}.localhostProfile")
        return
    if local is not None:
        shown = {"Type": kind, "LocalhostProfile": local}
        yield errors.invalid(f"{path}.localhostProfile", shown, "can only be set when seccomp type is Localhost")


def app_armor(profile: Tree | None, path: str) -> list[FieldError]:
    """An AppArmor profile."""
    if profile is None:
        return []
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    place = f"{path}.localhostProfile"
    if kind == "Localhost":
        return _local_app_armor(local, place)
    if kind in _PROFILES:
        if local is None:
            return []
        return [errors.invalid(place, local, "can only be set when AppArmor type is Localhost")]
    if not kind:
        return [errors.required(f"{path}.type", "type is required when appArmorProfile is set")]
    return [errors.not_supported(f"{path}.type", kind, _PROFILES)]


def _local_app_armor(local: str | None, path: str) -> list[FieldError]:
    needed = "must be set when AppArmor type is Localhost"
    if local is None:
        return [errors.required(path, needed)]
    found: list[FieldError] = []
    if local.strip() != local:
        found.append(errors.invalid(path, local, "must not be padded with whitespace"))
    elif not local:
        found.append(errors.required(path, needed))
    if len(local.encode()) > _APPARMOR_MAX:
        found.append(errors.too_long(path, _APPARMOR_MAX))
    return found


def validate_pod(context: Tree, spec: Tree, path: str, *, mount_option: bool = False) -> Errors:
    """A pod's security context. The gate SELinuxMount is off, so that mount_option needs an object that has a policy
    already.
    """
    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        value = context.get(field)
        if value is not None:
            yield from user_or_group(value, f"{path}.{field}")
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        yield from user_or_group(group, f"{path}.supplementalGroups[{index}]")
    if sysctls := context.get("sysctls"):
        yield from _sysctls(sysctls, spec, f"{path}.sysctls")
    yield from _choice(context, 0, path)
    yield from _seccomp(context.get("seccompProfile"), f"{path}.seccompProfile")
    yield from windows.validate_options(context.get("windowsOptions"), f"{path}.windowsOptions")
    yield from app_armor(context.get("appArmorProfile"), f"{path}.appArmorProfile")
    yield from _choice(context, 1, path)
    yield from _choice(context, 3 if mount_option else 2, path)


def _choice(context: Tree, index: int, path: str) -> Errors:
    field, choices = _CHOICES[index]
    value = context.get(field)
    if value is None or value in choices:
        return []
    return [errors.not_supported(f"{path}.{field}", value, choices)]


def _sysctls(sysctls: list[Tree], spec: Tree, path: str) -> Errors:
    seen: set[str] = set()
    for index, item in enumerate(sysctls):
        name, place = item.get("name", ""), f"{path}[{index}].name"
        if not name:
            yield errors.required(place)
        elif len(name) > _SYSCTL_MAX or not _sysctl(name):
            yield errors.invalid(place, name, f"must have at most {_SYSCTL_MAX} characters and match regex ^{_SYSCTL}$")
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
