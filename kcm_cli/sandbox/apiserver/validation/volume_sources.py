"""Sources of volumes that pods and persistent volumes have in common, and those few people use.

What has only required fields is a table; the rest is a function each.

Source: pkg/apis/core/validation/validation.go#validateVolumeSource, #ValidatePersistentVolumeSpec.
"""

import re
from collections.abc import Callable, Mapping

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, file_paths

Check = Callable[[Tree, str], Errors]

HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_CACHING = ("None", "ReadOnly", "ReadWrite")
_DISKS = ("Dedicated", "Managed", "Shared")
_MANAGED = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_PARTITION = names.range_message(1, 255)
_IQN = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([0-9A-Za-z.-]+)(:[^,;*&$|\s]+)").search,
    "eui": re.compile(r"eui.[0-9A-Za-z]{16}").fullmatch,
    "naa": re.compile(r"naa.[0-9A-Za-z]{32}").fullmatch,
}
PORTAL_MAX = 64
PORTAL_TOO_LONG = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
    "if iscsi.initiatorName is specified."
)
_ISCSI_FORM = "must be valid format starting with iqn, eui, or naa"
_QUOBYTE = "must be a host:port pair or multiple pairs separated by commas"


def _required(*fields: str) -> Check:
    def check(source: Tree, path: str) -> Errors:
        return [errors.required(f"{path}.{field}") for field in fields if not source.get(field)]

    return check


def _host_path(source: Tree, path: str) -> Errors:
    target = source.get("path", "")
    if not target:
        yield errors.required(f"{path}.path")
        return
    yield from file_paths.no_backsteps(target, f"{path}.path")
    kind = source.get("type")
    if kind is not None and kind not in HOST_PATH_TYPES:
        yield errors.not_supported(f"{path}.type", kind, HOST_PATH_TYPES)


def _git_repo(source: Tree, path: str) -> Errors:
    if not source.get("repository"):
        yield errors.required(f"{path}.repository")
    yield from file_paths.descending(source.get("directory", ""), f"{path}.directory")


def _disk(name: str) -> Check:
    def check(source: Tree, path: str) -> Errors:
        if not source.get(name):
            yield errors.required(f"{path}.{name}")
        partition = source.get("partition", 0)
        if not 0 <= partition <= 255:
            yield errors.invalid(f"{path}.partition", partition, _PARTITION)

    return check


def _nfs(source: Tree, path: str) -> Errors:
    yield from _required("server", "path")(source, path)
    if not source.get("path", "").startswith("/"):
        yield errors.invalid(f"{path}.path", source.get("path", ""), "must be an absolute path")


def _fc(source: Tree, path: str) -> Errors:
    wwns, wwids, lun = source.get("targetWWNs"), source.get("wwids"), source.get("lun")
    if not wwns and not wwids:
        yield errors.required(f"{path}.targetWWNs", "must specify either targetWWNs or wwids, but not both")
    if wwns and wwids:
        yield errors.invalid(f"{path}.targetWWNs", wwns, "targetWWNs and wwids can not be specified simultaneously")
    if wwns and lun is None:
        yield errors.required(f"{path}.lun", "lun is required if targetWWNs is specified")
    elif wwns and not 0 <= (lun or 0) <= 255:
        yield errors.invalid(f"{path}.lun", lun, names.range_message(0, 255))


def _quobyte(source: Tree, path: str) -> Errors:
    registry = source.get("registry", "")
    if not registry:
        yield errors.required(f"{path}.registry", _QUOBYTE)
    elif len(source.get("tenant", "")) >= 65:
        yield errors.required(f"{path}.tenant", "must be a UUID and may not exceed a length of 64 characters")
    else:
        pairs = registry.split(",")
        wrong = [pair for pair in pairs if not re.fullmatch(r"(\[[^\]]*\]|[^:\[\]]*):[^:]*", pair)]
        yield from (errors.invalid(f"{path}.registry", registry, _QUOBYTE) for _ in wrong)
    if not source.get("volume"):
        yield errors.required(f"{path}.volume")


def _flocker(source: Tree, path: str) -> Errors:
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    if not name and not uuid:
        yield errors.required(path, "one of datasetName and datasetUUID is required")
    if name and uuid:
        yield errors.invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously")
    if "/" in name:
        yield errors.invalid(f"{path}.datasetName", name, "must not contain '/'")


def _flex(source: Tree, path: str) -> Errors:
    if not source.get("driver"):
        yield errors.required(f"{path}.driver")
    for key in source.get("options") or ():
        namespace = "." + key.partition("/")[0].lower()
        if namespace.endswith((".kubernetes.io", ".k8s.io")):
            yield errors.invalid(f"{path}.options[{key}]", key, "kubernetes.io and k8s.io namespaces are reserved")


def _azure_disk(source: Tree, path: str) -> Errors:
    yield from _required("diskName", "diskURI")(source, path)
    caching, kind, uri = source.get("cachingMode"), source.get("kind"), source.get("diskURI", "")
    if caching is not None and caching not in _CACHING:
        yield errors.not_supported(f"{path}.cachingMode", caching, _CACHING)
    if kind is None:
        return
    if kind not in _DISKS:
        yield errors.not_supported(f"{path}.kind", kind, _DISKS)
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        yield errors.not_supported(f"{path}.diskURI", uri, [_MANAGED])
    if kind != "Managed" and not uri.startswith("https://"):
        yield errors.not_supported(f"{path}.diskURI", uri, [_BLOB])


def secret_reference(field: str, *, namespaced: bool) -> Check:
    """A reference to a secret that, if it is there, is complete."""

    def check(source: Tree, path: str) -> Errors:
        reference = source.get(field)
        if reference is None:
            return []
        fields = ("name", "namespace") if namespaced else ("name",)
        return [errors.required(f"{path}.{field}.{part}") for part in fields if not reference.get(part)]

    return check


def _all(*checks: Check) -> Check:
    def check(source: Tree, path: str) -> Errors:
        return [error for one in checks for error in one(source, path)]

    return check


def _storage_os(*, namespaced: bool) -> Check:
    def check(source: Tree, path: str) -> Errors:
        name, namespace = source.get("volumeName", ""), source.get("volumeNamespace", "")
        if not name:
            yield errors.required(f"{path}.volumeName")
        if name:
            yield from errors.invalid_each(f"{path}.volumeName", name, names.dns1123_label(name))
        if namespace:
            yield from errors.invalid_each(f"{path}.volumeNamespace", namespace, names.dns1123_label(namespace))
        yield from secret_reference("secretRef", namespaced=namespaced)(source, path)

    return check


def iscsi_name(value: str, path: str, form: str) -> Errors:
    """An iSCSI name; ``form`` is what is said of one that begins with none of the known prefixes."""
    pattern = _IQN.get(value[:3])
    if pattern is None:
        return [errors.invalid(path, value, form)]
    return [] if pattern(value) else [errors.invalid(path, value, "must be valid format")]


def iscsi(source: Tree, path: str, form: str = _ISCSI_FORM, *, named_secret: bool = False) -> Errors:
    """An iSCSI target."""
    if not source.get("targetPortal"):
        yield errors.required(f"{path}.targetPortal")
    name, lun = source.get("iqn", ""), source.get("lun", 0)
    if name:
        yield from iscsi_name(name, f"{path}.iqn", form)
    else:
        yield errors.required(f"{path}.iqn")
    if not 0 <= lun <= 255:
        yield errors.invalid(f"{path}.lun", lun, names.range_message(0, 255))
    chap = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if chap and source.get("secretRef") is None:
        yield errors.required(f"{path}.secretRef")
    if named_secret:
        yield from secret_reference("secretRef", namespaced=False)(source, path)
    initiator = source.get("initiatorName")
    if initiator is not None:
        yield from iscsi_name(initiator, f"{path}.initiatorname", form)


def csi_driver_name(name: str, path: str) -> Errors:
    """The name of a CSI driver."""
    if not name:
        yield errors.required(path)
        return
    if len(name.encode()) > 63:
        yield errors.too_long(path, 63)
    yield from errors.invalid_each(path, name, names.dns1123_subdomain(name.lower()))


COMMON: Mapping[str, Check] = {
    "hostPath": _host_path,
    "gitRepo": _git_repo,
    "gcePersistentDisk": _disk("pdName"),
    "awsElasticBlockStore": _disk("volumeID"),
    "nfs": _nfs,
    "glusterfs": _required("endpoints", "path"),
    "flocker": _flocker,
    "rbd": _required("monitors", "image"),
    "cinder": _all(_required("volumeID"), secret_reference("secretRef", namespaced=False)),
    "cephfs": _required("monitors"),
    "quobyte": _quobyte,
    "fc": _fc,
    "flexVolume": _flex,
    "azureFile": _required("secretName", "shareName"),
    "vsphereVolume": _required("volumePath"),
    "photonPersistentDisk": _required("pdID"),
    "portworxVolume": _required("volumeID"),
    "azureDisk": _azure_disk,
    "storageos": _storage_os(namespaced=False),
    "scaleIO": _required("gateway", "system", "volumeName"),
}
"""Checks by the name of the source."""

PERSISTENT: Mapping[str, Check] = {
    "cinder": _all(_required("volumeID"), secret_reference("secretRef", namespaced=True)),
    "storageos": _storage_os(namespaced=True),
}
"""Those that persistent volumes check otherwise."""
