"""Mounts and block devices of containers.

Source: pkg/apis/core/validation/validation.go#ValidateVolumeMounts, #ValidateVolumeDevices.
"""

from collections.abc import Mapping

from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, file_paths

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE = ("Disabled", "Enabled", "IfPossible")
Volumes = Mapping[str, Tree]


def validate_mounts(container: Tree, volumes: Volumes, path: str) -> list[FieldError]:
    """Where volumes appear in a container."""
    devices = {item.get("name", ""): item.get("devicePath", "") for item in container.get("volumeDevices") or ()}
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, mount in enumerate(container["volumeMounts"]):
        name, target = mount.get("name", ""), mount.get("mountPath", "")
        if name not in volumes or not name or not target or target in seen or devices:
            found += _names(name, target, seen, devices, volumes, f"{path}[{index}]")
        seen.add(target)
        if len(mount) > 2:
            found += _options(mount, container, path, f"{path}[{index}]")
    return found


def _names(
    name: str, target: str, seen: set[str], devices: Mapping[str, str], volumes: Volumes, path: str
) -> list[FieldError]:
    found: list[FieldError] = []
    if not name:
        found.append(errors.required(f"{path}.name"))
    if name not in volumes:
        found.append(errors.not_found(f"{path}.name", name))
    if not target:
        found.append(errors.required(f"{path}.mountPath"))
    if target in seen:
        found.append(errors.invalid(f"{path}.mountPath", target, "must be unique"))
    if name in devices:
        found.append(errors.invalid(f"{path}.name", name, "must not already exist in volumeDevices"))
    if target in devices.values():
        detail = "must not already exist as a path in volumeDevices"
        found.append(errors.invalid(f"{path}.mountPath", target, detail))
    return found


def _options(mount: Tree, container: Tree, path: str, place: str) -> list[FieldError]:
    found: list[FieldError] = []
    if sub_path := mount.get("subPath"):
        found += file_paths.descending(sub_path, f"{path}.subPath")
    if expression := mount.get("subPathExpr"):
        if sub_path:
            detail = "subPathExpr and subPath are mutually exclusive"
            found.append(errors.invalid(f"{place}.subPathExpr", expression, detail))
        found += file_paths.descending(expression, f"{path}.subPathExpr")
    propagation = mount.get("mountPropagation")
    if propagation is not None:
        found += _propagation(propagation, container, f"{path}.mountPropagation")
    recursive = mount.get("recursiveReadOnly")
    if recursive is not None:
        found += _recursive(recursive, mount, f"{path}.recursiveReadOnly")
    return found


def _propagation(value: str, container: Tree, path: str) -> list[FieldError]:
    if value not in _PROPAGATIONS:
        return [errors.not_supported(path, value, _PROPAGATIONS)]
    if value == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        detail = "Bidirectional mount propagation is available only to privileged containers"
        return [errors.forbidden(path, detail)]
    return []


def _recursive(value: str, mount: Tree, path: str) -> list[FieldError]:
    if value not in _RECURSIVE:
        return [errors.not_supported(path, value, _RECURSIVE)]
    if value == "Disabled":
        return []
    found: list[FieldError] = []
    if not mount.get("readOnly"):
        found.append(errors.forbidden(path, "may only be specified when readOnly is true"))
    if mount.get("mountPropagation") not in (None, "None"):
        detail = "may only be specified when mountPropagation is None or not specified"
        found.append(errors.forbidden(path, detail))
    return found


def validate_devices(container: Tree, volumes: Volumes, path: str) -> list[FieldError]:
    """Volumes that a container gets as raw devices."""
    mounts = {item.get("name", ""): item.get("mountPath", "") for item in container.get("volumeMounts") or ()}
    found: list[FieldError] = []
    names: set[str] = set()
    targets: set[str] = set()
    for index, device in enumerate(container["volumeDevices"]):
        name, target = device.get("name", ""), device.get("devicePath", "")
        found += _device_name(name, names, volumes, f"{path}[{index}].name")
        found += _device_path(target, targets, f"{path}[{index}].devicePath")
        if name in mounts:
            detail = "must not already exist in volumeMounts"
            found.append(errors.invalid(f"{path}[{index}].name", name, detail))
        if target in mounts.values():
            detail = "must not already exist as a path in volumeMounts"
            found.append(errors.invalid(f"{path}[{index}].devicePath", target, detail))
        if name:
            names.add(name)
    return found


def _device_name(name: str, seen: set[str], volumes: Volumes, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    source = volumes.get(name)
    if not name:
        found.append(errors.required(path))
    if name in seen:
        found.append(errors.invalid(path, name, "must be unique"))
    if source is None:
        found.append(errors.not_found(path, name))
    elif source.get("persistentVolumeClaim") is None and source.get("ephemeral") is None:
        detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        found.append(errors.invalid(path, name, detail))
    return found


def _device_path(target: str, seen: set[str], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    if not target:
        found.append(errors.required(path))
    if target in seen:
        found.append(errors.invalid(path, target, "must be unique"))
    if target and file_paths.no_backsteps(target, path):
        found.append(errors.invalid(path, target, "can not contain backsteps ('..')"))
    else:
        seen.add(target)
    return found
