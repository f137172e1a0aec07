"""The hashes in names and labels of ReplicaSets and ControllerRevisions, equal to upstream's.

With them, kcm finds the ReplicaSets and revisions that kube-controller-manager created, and vice versa.

upstream: pkg/controller/controller_utils.go#ComputeHash, pkg/controller/history/controller_history.go, apimachinery
pkg/util/rand#SafeEncodeString
"""

from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.go_dump import dump_pod_template
from kcm_cli.machinery.names import ALPHANUMS

_OFFSET = 2166136261
_PRIME = 16777619
_MASK = 0xFFFFFFFF
_OFFSET_128 = 0x6C62272E07BB014262B821756295C58D
_PRIME_128 = (1 << 88) + 0x13B
_MASK_128 = (1 << 128) - 1
_SAFE = {code: ALPHANUMS[code % len(ALPHANUMS)] for code in range(128)}


def fnv32a(data: bytes, seed: int = _OFFSET) -> int:
    """The 32-bit FNV-1a hash; ``seed`` continues an earlier one."""
    value = seed
    for byte in data:
        value = (value ^ byte) * _PRIME & _MASK
    return value


def fnv32(data: bytes, seed: int = _OFFSET) -> int:
    """The 32-bit FNV-1 hash; ``seed`` continues an earlier one."""
    value = seed
    for byte in data:
        value = value * _PRIME & _MASK ^ byte
    return value


def fnv128a(data: bytes) -> int:
    """The 128-bit FNV-1a hash."""
    value = _OFFSET_128
    for byte in data:
        value = (value ^ byte) * _PRIME_128 & _MASK_128
    return value


def safe_encode(text: str) -> str:
    """The text with each (ASCII) character replaced by one that cannot form words."""
    return text.translate(_SAFE)


def pod_template_hash(template: Doc, collision_count: int | None) -> str:
    """The ``pod-template-hash`` of a template with the API server's defaults."""
    value = fnv32a(dump_pod_template(template).encode())
    if collision_count is not None:
        value = fnv32a(collision_count.to_bytes(8, "little"), value)
    return safe_encode(str(value))


def controller_revision_hash(data: bytes, collision_count: int | None) -> str:
    """The hash of a ControllerRevision's raw data (``machinery.go_json`` of its patch)."""
    value = fnv32(data)
    if collision_count is not None:
        value = fnv32(str(collision_count).encode(), value)
    return safe_encode(str(value))
