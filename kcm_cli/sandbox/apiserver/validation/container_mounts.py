"""Mounts and block devices of containers.

upstream: pkg/apis/core/validation/validation.go#ValidateVolumeMounts, #ValidateVolumeDevices
"""

from collections.abc import Mapping

from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, file_paths

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE = ("Disabled", "Enabled", "IfPossible")
Volumes = Mapping[str, Tree]


def validate_mounts(container: Tree, volumes: Volumes, path: str) -> Errors:
    """Check the volume mounts of a container."""
    devices = {item.get("name", ""): item.get("devicePath", "") for item in container.get("volumeDevices") or ()}
    seen: set[str] = set()
    for index, mount in enumerate(container["volumeMounts"]):
        name, target = mount.get("name", ""), mount.get("mountPath", "")
        if name not in volumes or not name or not target or target in seen or devices:
            yield from _names(name, target, seen, devices, volumes, f"{path}[{index}]")
        seen.add(target)
        if len(mount) > 2:
            yield from _options(mount, container, path, f"{path}[{index}]")


def _names(name: str, target: str, seen: set[str], devices: Mapping[str, str], volumes: Volumes, path: str) -> Errors:
    if not name:
        yield errors.required(f"{path}.name")
    if name not in volumes:
        yield errors.not_found(f"{path}.name", name)
    if not target:
        yield errors.required(f"{path}.mountPath")
    if target in seen:
        yield errors.invalid(f"{path}.mountPath", target, "must be unique")
    if name in devices:
        yield errors.invalid(f"{path}.name", name, "must not already exist in volumeDevices")
    if target in devices.values():
        yield errors.invalid(f"{path}.mountPath", target, "must not already exist as a path in volumeDevices")


def _options(mount: Tree, container: Tree, path: str, place: str) -> Errors:
    if sub_path := mount.get("subPath"):
        yield from file_paths.descending(sub_path, f"{path}.subPath")
    if expression := mount.get("subPathExpr"):
        if sub_path:
            yield errors.invalid(f"{place}.subPathExpr", expression, "subPathExpr and subPath are mutually exclusive")
        yield from file_paths.descending(expression, f"{path}.subPathExpr")
    propagation = mount.get("mountPropagation")
    if propagation is not None:
        yield from _propagation(propagation, container, f"{path}.mountPropagation")
    recursive = mount.get("recursiveReadOnly")
    if recursive is not None:
        yield from _recursive(recursive, mount, f"{path}.recursiveReadOnly")


def _propagation(value: str, container: Tree, path: str) -> Errors:
    if value not in _PROPAGATIONS:
        return [errors.not_supported(path, value, _PROPAGATIONS)]
    if value == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        return [errors.forbidden(path, "Bidirectional mount propagation is available only to privileged containers")]
    return []


def _recursive(value: str, mount: Tree, path: str) -> Errors:
    if value not in _RECURSIVE:
        yield errors.not_supported(path, value, _RECURSIVE)
        return
    if value == "Disabled":
        return
    if not mount.get("readOnly"):
        yield errors.forbidden(path, "may only be specified when readOnly is true")
    if mount.get("mountPropagation") not in (None, "None"):
        yield errors.forbidden(path, "may only be specified when mountPropagation is None or not specified")


def validate_devices(container: Tree, volumes: Volumes, path: str) -> Errors:
    """Check the block devices of a container."""
    mounts = {item.get("name", ""): item.get("mountPath", "") for item in container.get("volumeMounts") or ()}
    mounted = set(mounts.values())
    names: set[str] = set()
    targets: set[str] = set()
    for index, device in enumerate(container["volumeDevices"]):
        name, target = device.get("name", ""), device.get("devicePath", "")
        yield from _device_name(name, names, volumes, f"{path}[{index}].name")
        yield from _device_path(target, targets, f"{path}[{index}].devicePath")
        if name in mounts:
            yield errors.invalid(f"{path}[{index}].name", name, "must not already exist in volumeMounts")
        if target in mounted:
            detail = "must not already exist as a path in volumeMounts"
            yield errors.invalid(f"{path}[{index}].devicePath", target, detail)
        if name:
            names.add(name)


def _device_name(name: str, seen: set[str], volumes: Volumes, path: str) -> Errors:
    source = volumes.get(name)
    if not name:
        yield errors.required(path)
    if name in seen:
        yield errors.invalid(path, name, "must be unique")
    if source is None:
        yield errors.not_found(path, name)
    elif source.get("persistentVolumeClaim") is None and source.get("ephemeral") is None:
        detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        yield errors.invalid(path, name, detail)


def _device_path(target: str, seen: set[str], path: str) -> Errors:
    if not target:
        yield errors.required(path)
    if target in seen:
        yield errors.invalid(path, target, "must be unique")
    if target and file_paths.no_backsteps(target, path):
        yield errors.invalid(path, target, "can not contain backsteps ('..')")
    else:
        seen.add(target)
