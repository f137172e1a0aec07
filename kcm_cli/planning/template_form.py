"""The canonical form of pod templates: templates that mean the same have equal forms.

The same template has many spellings, depending on the releases that wrote it: null, empty or absent fields, quantities,
defaults. Deployments find their ReplicaSet by it, DaemonSets and StatefulSets their ControllerRevision, so that a
spelling taken for a change would restart every pod. The walk follows the types of the fields (``machinery.go_types``):
keys of labels, annotations and other maps are data, and unknown fields are kept as they are.

Not guaranteed: defaults of fields that 1.36 does not know count as differences.

upstream: apimachinery pkg/api/equality (Semantic.DeepEqual), pkg/controller/statefulset/stateful_set_control.go#
setMatchesLatestExistingRevision, pkg/apis/core/v1/defaults.go
"""

import re
from collections.abc import Callable, Mapping
from functools import cache

import msgspec

from kcm_cli.machinery import go_types
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.images import pull_policy
from kcm_cli.machinery.quantity import Quantity, from_json
from kcm_cli.machinery.same import same
from kcm_cli.machinery.times import format_time, parse_time

_TEMPLATE = "v1.PodTemplateSpec"
_MILLI = -3
_RESOURCES = "map[v1.ResourceName]resource.Quantity"

_map_type = re.compile(r"map\[[^]]+\](.+)").fullmatch

Form = Callable[[object], object]


def serialised(template: Doc, *, defaulted: bool = False) -> Doc:
    """The template as Go's JSON encoder writes it, but for the order of keys. ``defaulted``: with defaults."""
    return _doc(_walk(_TEMPLATE, _Mode(defaulted=defaulted))(template))


def same_when_defaulted(left: Doc, right: Doc) -> bool:
    """Whether two templates are serialised the same with the defaults of 1.36."""
    return same(serialised(left, defaulted=True), serialised(right, defaulted=True))


def meaning_as(template: Doc) -> Callable[[Doc], bool]:
    """Whether other templates are semantically equal to this one, whose form is computed once at most: quantities are
    compared as numbers, defaults are not filled in."""
    walk = _walk(_TEMPLATE, _Mode(numbers=True))
    own: list[object] = []

    def matches(other: Doc) -> bool:
        if other == template:
            return True
        if not own:
            own.append(walk(template))
        return same(walk(other), own[0])

    return matches


class _Mode(msgspec.Struct, frozen=True):
    """``defaulted``: fill in defaults. ``numbers``: quantities become numbers instead of texts."""

    defaulted: bool = False
    numbers: bool = False


class _Field(msgspec.Struct, frozen=True):
    """``form``: of its value. ``pointer``: a zero value is not the same as an absent one."""

    form: Form
    pointer: bool


class _Struct(msgspec.Struct, frozen=True):
    """A Go struct: its fields by JSON name, and those that are written even if empty."""

    fields: dict[str, _Field] = msgspec.field(default_factory=dict)
    always: dict[str, object] = msgspec.field(default_factory=dict)
    defaults: dict[str, object] = msgspec.field(default_factory=dict)


def _doc(value: object) -> Doc:
    return value if isinstance(value, dict) else {}


@cache
def _walk(type_: str, mode: _Mode) -> Form:
    type_ = go_types.aliases().get(type_, type_)
    if type_ == _RESOURCES and mode.defaulted:
        return _map(_rounded)
    if type_ == "resource.Quantity":
        return _number if mode.numbers else _text
    if type_ == "v1.Time":
        return _time
    if type_.startswith("[]"):
        return _list(_walk(type_[2:], mode), _zero(type_[2:]))
    if match := _map_type(type_):
        return _map(_walk(match[1], mode))
    if type_ in go_types.structs():
        return _struct(type_, mode)
    return _integer if type_ in ("int32", "int64") else _as_is


def _struct(type_: str, mode: _Mode) -> Form:
    known = _Struct()
    _collect(known, type_, mode)
    fields, always, defaults = known.fields, known.always.items(), known.defaults.items()

    def form(value: object) -> object:
        if not isinstance(value, dict):
            return {} if value is None else value
        found: Doc = {}
        for key, item in value.items():
            if item is None:
                continue
            one = fields.get(key)
            if one is None:
                found[key] = item
                continue
            made = one.form(item)
            if one.pointer or not _empty(made):
                found[key] = made
        for key, default in defaults:
            if key not in found:
                filled = default(found) if callable(default) else default
                if filled is not None:
                    found[key] = filled
        for key, zero in always:
            if key not in found:
                found[key] = zero
        return found

    return form


def _collect(known: _Struct, type_: str, mode: _Mode) -> None:
    required = go_types.required().get(type_, frozenset())
    for _, name, type_of in go_types.structs()[type_]:
        if name == ".":
            _collect(known, type_of, mode)
            continue
        pointer = type_of.startswith("*")
        known.fields[name] = _Field(_walk(type_of.removeprefix("*"), mode), pointer)
        basic = go_types.aliases().get(type_of, type_of)
        if name in required:
            known.always[name] = None if pointer else _zero(basic)
        elif basic in go_types.structs():
            known.always[name] = known.fields[name].form({})
        elif basic == "resource.Quantity":
            known.always[name] = known.fields[name].form("0")
    if mode.defaulted:
        known.defaults.update(_DEFAULTS.get(type_, {}))


def _zero(type_: str) -> object:
    type_ = go_types.aliases().get(type_, type_)
    if type_ in ("int32", "int64", "intstr.IntOrString"):
        return 0
    if type_ == "string":
        return ""
    return {} if type_ in go_types.structs() else None


def _empty(value: object) -> bool:
    """Whether a value is the zero value of a field that is not a pointer."""
    return not value and not isinstance(value, Quantity)


def _list(element: Form, zero: object) -> Form:
    def form(value: object) -> object:
        return [zero if item is None else element(item) for item in value] if isinstance(value, list) else value

    return form


def _map(item_form: Form) -> Form:
    def form(value: object) -> object:
        return {key: item_form(item) for key, item in value.items()} if isinstance(value, dict) else value

    return form


def _as_is(value: object) -> object:
    return value


def _integer(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _number(value: object) -> object:
    try:
        return from_json(value)
    except FormatError:
        return value


def _text(value: object) -> object:
    found = _number(value)
    return str(found) if isinstance(found, Quantity) else found


def _rounded(value: object) -> object:
    found = _number(value)
    return str(found.rounded(_MILLI)) if isinstance(found, Quantity) else found


def _time(value: object) -> object:
    try:
        return format_time(parse_time(value)) if isinstance(value, str) else value
    except FormatError:
        return value


# -- defaults


def _empty_dir(holder: Doc) -> object:
    """A volume that names no source is an empty directory."""
    return {} if holder.keys() <= {"name"} else None


_MODE: Mapping[str, object] = {"defaultMode": 0o644}
_CONTAINER: Mapping[str, object] = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": lambda holder: pull_policy(str(holder.get("image", ""))),
}
_DEFAULTS: Mapping[str, Mapping[str, object]] = {
    "v1.PodSpec": {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {},
        "serviceAccount": lambda holder: holder.get("serviceAccountName"),
        "serviceAccountName": lambda holder: holder.get("serviceAccount"),
    },
    "v1.Container": _CONTAINER,
    "v1.EphemeralContainerCommon": _CONTAINER,
    "v1.SecurityContext": {"procMount": "Default"},  # filled in by releases before 1.36 only
    "v1.ContainerPort": {"protocol": "TCP"},
    "v1.Probe": {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
    "v1.HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "v1.GRPCAction": {"service": ""},
    "v1.ObjectFieldSelector": {"apiVersion": "v1"},
    "v1.FileKeySelector": {"optional": False},
    "v1.Volume": {"emptyDir": _empty_dir},
    "v1.ImageVolumeSource": {"pullPolicy": lambda holder: pull_policy(str(holder.get("reference", "")))},
    "v1.HostPathVolumeSource": {"type": ""},
    "v1.SecretVolumeSource": _MODE,
    "v1.ConfigMapVolumeSource": _MODE,
    "v1.DownwardAPIVolumeSource": _MODE,
    "v1.ProjectedVolumeSource": _MODE,
    "v1.ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "v1.PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "v1.ISCSIVolumeSource": {"iscsiInterface": "default"},
    "v1.RBDVolumeSource": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "v1.AzureDiskVolumeSource": {"cachingMode": "ReadWrite", "kind": "Shared", "fsType": "ext4", "readOnly": False},
    "v1.ScaleIOVolumeSource": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
"""What an API server of 1.36 fills in, by Go type and JSON name. A function returns the default for the object that
holds the field; None for none."""
