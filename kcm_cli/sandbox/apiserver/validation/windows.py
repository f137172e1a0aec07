"""Fields that are only for Windows pods, and those that are not for them.

upstream: pkg/apis/core/validation/validation.go#validateWindows, #validateWindowsSecurityContextOptions
"""

import re
from collections.abc import Iterator

from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, rules

_SPEC_MAX_KIB = 64
_DOMAIN_MAX, _USER_MAX = 256, 104
_NO = "cannot be set for a windows pod"
_NOT_LINUX = "windows options cannot be set for a linux pod"
_control = re.compile(r"[\x00-\x1f\x7f]").search
_net_bios = re.compile(r"[^\\/:*?\"<>|.][^\\/:*?\"<>|]{0,14}").fullmatch
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_domain = re.compile(rf"{_LABEL}(?:\.{_LABEL})*").fullmatch
_bad_user = re.compile(r'["/\\:;|=,+*?<>@\[\]]').search
_dots_only = re.compile(r"[. ]+").fullmatch
_POD_FIELDS = (
    *("securityContext.appArmorProfile", "securityContext.seLinuxOptions", "hostUsers", "hostPID", "hostIPC"),
    *("securityContext.seccompProfile", "securityContext.fsGroup", "securityContext.fsGroupChangePolicy"),
    *("securityContext.sysctls", "shareProcessNamespace", "securityContext.runAsUser", "securityContext.runAsGroup"),
    *("securityContext.supplementalGroups", "securityContext.supplementalGroupsPolicy"),
    "securityContext.seLinuxChangePolicy",
)
_NEVER_FALSE = ("hostUsers", "shareProcessNamespace")
_CONTAINER_FIELDS = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)
_KINDS = ("initContainers", "containers", "ephemeralContainers")


def containers_of(spec: Tree, path: str) -> Iterator[tuple[Tree, str]]:
    """All containers of a pod with their paths, in the order in which upstream visits them."""
    for kind in _KINDS:
        for index, container in enumerate(spec.get(kind) or ()):
            yield container, f"{path}.{kind}[{index}]"


def _credential(spec: str, path: str) -> Errors:
    if not spec:
        yield errors.invalid(path, spec, "gmsaCredentialSpec cannot be an empty string")
    elif len(spec.encode()) > _SPEC_MAX_KIB * 1024:
        yield errors.invalid(path, spec, f"gmsaCredentialSpec size must be under {_SPEC_MAX_KIB} KiB")


def _user_name(value: str) -> list[str]:
    if not value:
        return ["runAsUserName cannot be an empty string"]
    if _control(value):
        return ["runAsUserName cannot contain control characters"]
    if value.count("\\") > 1:
        return ["runAsUserName cannot contain more than one backslash"]
    domain, backslash, user = value.rpartition("\\")
    found: list[str] = []
    if len(domain) >= _DOMAIN_MAX:
        found.append(f"runAsUserName's Domain length must be under {_DOMAIN_MAX} characters")
    if backslash and not (_net_bios(domain) or _domain(domain)):
        found.append("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
    if not user:
        found.append("runAsUserName's User cannot be empty")
    elif len(user) > _USER_MAX:
        found.append(f"runAsUserName's User length must not be longer than {_USER_MAX} characters")
    if _dots_only(user):
        found.append("runAsUserName's User cannot contain only periods or spaces")
    if _bad_user(user):
        text = "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"
        found.append(text)
    return found


validate_options = rules.fields(
    rules.optional("gmsaCredentialSpecName", rules.SUBDOMAIN),
    rules.optional("gmsaCredentialSpec", _credential),
    rules.optional("runAsUserName", rules.form(_user_name)),
)
"""The Windows options of a security context."""


def validate_os(spec: Tree, path: str) -> Errors:
    """Check the operating system of a pod, and the fields that depend on it."""
    name = spec["os"].get("name", "")
    if not name:
        yield errors.required(f"{path}.os.name")
    elif name not in _OF_POD:
        yield errors.not_supported(f"{path}.os", name, ["linux", "windows"])
    else:
        yield from _OF_POD[name](spec, path)
        for container, place in containers_of(spec, path):
            yield from _OF_CONTAINER[name](container.get("securityContext") or {}, f"{place}.securityContext")


def _not_of_pod(spec: Tree, path: str) -> Errors:
    for place in _POD_FIELDS:
        within, _, field = place.rpartition(".")
        value = ((spec.get(within) or {}) if within else spec).get(field)
        said = field in _NEVER_FALSE if value is False else value is not None and value != []
        if said:
            yield errors.forbidden(f"{path}.{place}", _NO)


_OF_CONTAINER = {
    "linux": rules.fields(rules.forbidden("windowsOptions", _NOT_LINUX, zero=False)),
    "windows": rules.fields(*(rules.forbidden(field, _NO, zero=False) for field in _CONTAINER_FIELDS)),
}
_OF_POD = {"linux": rules.fields(rules.optional("securityContext", _OF_CONTAINER["linux"])), "windows": _not_of_pod}


def validate_host_process(spec: Tree, path: str) -> Errors:
    """Check that all or no containers are host process containers, and that these use the host network."""
    pod = _host_process(spec)
    everything = list(containers_of(spec, path))
    if pod is None and all(_host_process(container) is None for container, _ in everything):
        return
    hosted = 0
    for container, place in everything:
        own = _host_process(container)
        if pod is not None and own is not None and pod != own:
            shown = "true" if pod else "false"
            detail = f"pod hostProcess value must be identical if both are specified, was {shown}"
            yield errors.invalid(f"{place}.securityContext.windowsOptions.hostProcess", own, detail)
        hosted += bool(pod if own is None else own)
    if not hosted:
        return
    if hosted != len(everything):
        detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        yield errors.invalid(path, "", detail)
    if not spec.get("hostNetwork"):
        detail = "hostNetwork must be true if pod contains any hostProcess containers"
        yield errors.invalid(f"{path}.hostNetwork", False, detail)


def _host_process(holder: Tree) -> bool | None:
    options = (holder.get("securityContext") or {}).get("windowsOptions") or {}
    value: bool | None = options.get("hostProcess")
    return value
