"""Sources of volumes that pods and PersistentVolumes share, and rarely used ones.

upstream: pkg/apis/core/validation/validation.go#validateVolumeSource, #ValidatePersistentVolumeSpec
"""

import re
from collections.abc import Callable, Mapping

from kcm_cli.machinery import names
from kcm_cli.machinery.regexps import compile_go
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, file_paths, rules

_MANAGED = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_IQN: Mapping[str, Callable[[str], object]] = {
    "iqn": lambda name: compile_go(r"iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$").matches(name),
    "eui": re.compile(r"eui.[0-9A-Za-z]{16}").fullmatch,
    "naa": re.compile(r"naa.[0-9A-Za-z]{32}").fullmatch,
}
SECOND = "may not specify more than 1 volume type"
PATHS = {"gcePersistentDisk": "persistentDisk"}
"""The fields of sources in paths, where they differ."""
PORTAL_MAX = 64
PORTAL_TOO_LONG = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
    "if iscsi.initiatorName is specified."
)
_QUOBYTE = "must be a host:port pair or multiple pairs separated by commas"
_pair = re.compile(r"(\[[^\]]*\]|[^:\[\]]*):[^:]*").fullmatch


_absolute = rules.must(lambda target: target.startswith("/"), "must be an absolute path")


def _fc(source: Tree, path: str) -> Errors:
    wwns, wwids, lun = source.get("targetWWNs"), source.get("wwids"), source.get("lun")
    if not wwns and not wwids:
        yield errors.required(f"{path}.targetWWNs", "must specify either targetWWNs or wwids, but not both")
    if wwns and wwids:
        yield errors.invalid(f"{path}.targetWWNs", wwns, "targetWWNs and wwids can not be specified simultaneously")
    if wwns and lun is None:
        yield errors.required(f"{path}.lun", "lun is required if targetWWNs is specified")
    elif wwns:
        yield from _LUN(lun, f"{path}.lun")


def _registry(source: Tree, path: str) -> Errors:
    registry = source.get("registry", "")
    if not registry:
        yield errors.required(f"{path}.registry", _QUOBYTE)
    elif len(source.get("tenant", "")) >= 65:
        yield errors.required(f"{path}.tenant", "must be a UUID and may not exceed a length of 64 characters")
    else:
        wrong = [pair for pair in registry.split(",") if not _pair(pair)]
        yield from (errors.invalid(f"{path}.registry", registry, _QUOBYTE) for _ in wrong)


def _flocker(source: Tree, path: str) -> Errors:
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    if not name and not uuid:
        yield errors.required(path, "one of datasetName and datasetUUID is required")
    if name and uuid:
        yield errors.invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously")
    if "/" in name:
        yield errors.invalid(f"{path}.datasetName", name, "must not contain '/'")


def _options(options: Mapping[str, str], path: str) -> Errors:
    for key in options:
        namespace = "." + key.partition("/")[0].lower()
        if namespace.endswith((".kubernetes.io", ".k8s.io")):
            yield errors.invalid(f"{path}[{key}]", key, "kubernetes.io and k8s.io namespaces are reserved")


def _disk_uri(source: Tree, path: str) -> Errors:
    kind, uri = source.get("kind"), source.get("diskURI", "")
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        yield errors.not_supported(f"{path}.diskURI", uri, [_MANAGED])
    if kind not in (None, "Managed") and not uri.startswith("https://"):
        yield errors.not_supported(f"{path}.diskURI", uri, [_BLOB])


def _required(*names_: str) -> rules.Rule:
    return rules.fields(*(rules.required(name) for name in names_))


def _disk(name: str) -> rules.Rule:
    partition = rules.between(0, 255, names.range_message(1, 255))
    return rules.fields(rules.required(name), rules.optional("partition", partition))


def _storage_os(*, namespaced: bool) -> rules.Rule:
    return rules.fields(
        rules.required("volumeName", rules.LABEL),
        rules.nonempty("volumeNamespace", rules.LABEL),
        rules.optional("secretRef", _NAMESPACED_SECRET if namespaced else _SECRET),
    )


_LUN = rules.between(0, 255)
_SECRET, _NAMESPACED_SECRET = _required("name"), _required("name", "namespace")


def _iscsi_name(form: str) -> rules.Rule:
    """An iSCSI name. ``form``: the error for one without a known prefix."""

    def check(value: str, path: str) -> Errors:
        pattern = _IQN.get(value[:3])
        if pattern is None:
            return [errors.invalid(path, value, form)]
        return [] if pattern(value) else [errors.invalid(path, value, "must be valid format")]

    return check


def _chap(source: Tree, path: str) -> Errors:
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and source.get("secretRef") is None:
        yield errors.required(f"{path}.secretRef")


def _iscsi(form: str, secret: rules.Rule) -> rules.Rule:
    return rules.fields(
        rules.required("targetPortal"),
        rules.required("iqn", _iscsi_name(form)),
        rules.optional("lun", _LUN),
        _chap,
        rules.optional("secretRef", secret),
        rules.optional("initiatorName", _iscsi_name(form), at="initiatorname"),
    )


iscsi = _iscsi("must be valid format starting with iqn, eui, or naa", _required())
"""An iSCSI target of a pod's volume."""

persistent_iscsi = _iscsi("must be valid format", _SECRET)
"""An iSCSI target of a PersistentVolume."""

CSI_DRIVER = rules.every(rules.max_bytes(63), rules.form(lambda name: names.dns1123_subdomain(name.lower())))
"""The name of a CSI driver."""

COMMON: Mapping[str, rules.Rule] = {
    "hostPath": rules.unless(
        _required("path"),
        rules.fields_of(
            "core.v1.HostPathVolumeSource", rules.optional("path", file_paths.no_backsteps), rules.maybe_one_of("type")
        ),
    ),
    "gitRepo": rules.fields(rules.required("repository"), rules.optional("directory", file_paths.descending)),
    "gcePersistentDisk": _disk("pdName"),
    "awsElasticBlockStore": _disk("volumeID"),
    "nfs": rules.fields(rules.required("server"), rules.required("path"), rules.always("path", _absolute)),
    "glusterfs": _required("endpoints", "path"),
    "flocker": _flocker,
    "rbd": _required("monitors", "image"),
    "cinder": rules.fields(rules.required("volumeID"), rules.optional("secretRef", _SECRET)),
    "cephfs": _required("monitors"),
    "quobyte": rules.fields(_registry, rules.required("volume")),
    "fc": _fc,
    "flexVolume": rules.fields(rules.required("driver"), rules.optional("options", _options)),
    "azureFile": _required("secretName", "shareName"),
    "vsphereVolume": _required("volumePath"),
    "photonPersistentDisk": _required("pdID"),
    "portworxVolume": _required("volumeID"),
    "azureDisk": rules.fields_of(
        "core.v1.AzureDiskVolumeSource",
        rules.required("diskName"),
        rules.required("diskURI"),
        rules.maybe_one_of("cachingMode"),
        rules.maybe_one_of("kind"),
        _disk_uri,
    ),
    "storageos": _storage_os(namespaced=False),
    "scaleIO": _required("gateway", "system", "volumeName"),
}
"""Rules by the name of the source."""

PERSISTENT: Mapping[str, rules.Rule] = {
    "cinder": rules.fields(rules.required("volumeID"), rules.optional("secretRef", _NAMESPACED_SECRET)),
    "storageos": _storage_os(namespaced=True),
}
"""Those that are different for PersistentVolumes."""
