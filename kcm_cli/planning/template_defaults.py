"""Whether an old pod template becomes the present one once an API server fills in its defaults.

An API server that knows a new field with a default adds it to templates that it stored before; a revision that was
made earlier lacks it. The two are the same, and taking them for different would restart every pod.

Not guaranteed: defaults that depend on more than the field's neighbours (resources of the whole pod) count as
differences, as they did before upstream compared in this way.

upstream: pkg/controller/statefulset/stateful_set_control.go#setMatchesLatestExistingRevision,
pkg/apis/core/v1/defaults.go
"""

from collections.abc import Callable, Mapping

from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.patches import equal

Path = tuple[str, ...]
Default = Callable[[Doc], object]
"""The default of a field, given the object that holds it."""

_MODE = 0o644


def same_when_defaulted(old: Doc, new: Doc) -> bool:
    """Whether ``new`` says what ``old`` says, and beyond that only defaults."""
    return _same(old, new, ())


def _same(old: object, new: object, path: Path) -> bool:
    if isinstance(old, dict) and isinstance(new, dict):
        if not old.keys() <= new.keys():
            return False
        if not all(_same(value, new[key], (*path, key)) for key, value in old.items()):
            return False
        return all(_is_default(new, key, (*path, key)) for key in new.keys() - old.keys())
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(_same(a, b, path) for a, b in zip(old, new, strict=True))
    return equal(old, new)


def _is_default(holder: Doc, key: str, path: Path) -> bool:
    for length in range(len(path), 0, -1):
        default = _DEFAULTS.get(path[-length:])
        if default is not None:
            return equal(holder[key], default(holder))
    return False


def _always(value: object) -> Default:
    return lambda holder: value


def _pull_policy(holder: Doc) -> object:
    """Images without a tag, or tagged latest, are pulled always."""
    image = str(holder.get("image") or holder.get("reference") or "")
    if "@" in image:
        return "IfNotPresent"
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _tables() -> Mapping[Path, Default]:
    table: dict[Path, Default] = {
        ("spec", "restartPolicy"): _always("Always"),
        ("spec", "dnsPolicy"): _always("ClusterFirst"),
        ("spec", "schedulerName"): _always("default-scheduler"),
        ("spec", "terminationGracePeriodSeconds"): _always(30),
        ("spec", "securityContext"): _always({}),
        ("spec", "serviceAccount"): lambda holder: holder.get("serviceAccountName"),
        ("spec", "serviceAccountName"): lambda holder: holder.get("serviceAccount"),
        ("fieldRef", "apiVersion"): _always("v1"),
        ("fileKeyRef", "optional"): _always(False),
        ("httpGet", "path"): _always("/"),
        ("httpGet", "scheme"): _always("HTTP"),
        ("grpc", "service"): _always(""),
        ("ports", "protocol"): _always("TCP"),
        ("ports", "hostPort"): lambda holder: holder.get("containerPort"),
        ("secret", "defaultMode"): _always(_MODE),
        ("configMap", "defaultMode"): _always(_MODE),
        ("downwardAPI", "defaultMode"): _always(_MODE),
        ("projected", "defaultMode"): _always(_MODE),
        ("serviceAccountToken", "expirationSeconds"): _always(3600),
        ("volumes", "emptyDir"): _always({}),
        ("volumes", "image", "pullPolicy"): _pull_policy,
        ("hostPath", "type"): _always(""),
        ("iscsi", "iscsiInterface"): _always("default"),
        ("volumeClaimTemplate", "spec", "volumeMode"): _always("Filesystem"),
        ("rbd", "pool"): _always("rbd"),
        ("rbd", "user"): _always("admin"),
        ("rbd", "keyring"): _always("/etc/ceph/keyring"),
        ("azureDisk", "cachingMode"): _always("ReadWrite"),
        ("azureDisk", "kind"): _always("Shared"),
        ("azureDisk", "fsType"): _always("ext4"),
        ("azureDisk", "readOnly"): _always(False),
        ("scaleIO", "storageMode"): _always("ThinProvisioned"),
        ("scaleIO", "fsType"): _always("xfs"),
    }
    for containers in ("containers", "initContainers"):
        table |= {
            (containers, "terminationMessagePath"): _always("/dev/termination-log"),
            (containers, "terminationMessagePolicy"): _always("File"),
            (containers, "imagePullPolicy"): _pull_policy,
            (containers, "resources"): _always({}),
            (containers, "securityContext", "procMount"): _always("Default"),
        }
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        table |= {
            (probe, "timeoutSeconds"): _always(1),
            (probe, "periodSeconds"): _always(10),
            (probe, "successThreshold"): _always(1),
            (probe, "failureThreshold"): _always(3),
        }
    return table


_DEFAULTS = _tables()
"""Defaults by the end of the path to the field; the longest end counts. Lists are no part of a path."""
