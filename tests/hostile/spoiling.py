"""What a proxy between the manager and its API server does to JSON."""

import copy
import json
import random
import zlib
from typing import Any

from tests.differential.variations import Tree
from tests.hostile.objects import LABEL
from tests.unit.sandbox.fuzz.objects import places

WORDS: tuple[Any, ...] = (
    None,
    None,
    None,
    "never-heard-of",
    "",
    -1,
    2**63,
    1.5,
    {},
    [],
    [None],
    {"neverHeardOf": None},
    True,
)
"""What a field of an object that is stored past validation is."""
_LEFT = frozenset({"metadata", "kind", "apiVersion"})
_SCALES = frozenset({"selector", "template", "replicas", "parallelism", "completions", "finalizers"})
"""A workload whose selector does not match what it creates creates without end; no server accepts such a one."""
HTML = b"<!DOCTYPE html><html><body><h1>It works!</h1></body></html>"
ODD_GROUP = "odd.example.com"
NO_GROUP: Tree = {"name": ODD_GROUP, "versions": None, "preferredVersion": None}
NULL_GROUP: Tree = {
    "name": ODD_GROUP,
    "versions": [{"groupVersion": f"{ODD_GROUP}/v1", "version": "v1"}],
    "preferredVersion": None,
    "serverAddressByClientCIDRs": None,
}
NULL_RESOURCES: Tree = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": f"{ODD_GROUP}/v1",
    "resources": [{"name": None, "kind": None, "verbs": None}, None],
}
NULL_AGGREGATED: Tree = {
    "metadata": {"name": ODD_GROUP, "creationTimestamp": None},
    "versions": [
        {"version": "v1", "resources": None, "freshness": "Current"},
        {"version": "v2", "resources": [{"resource": "odds", "verbs": None, "responseKind": None}, None]},
    ],
}


def is_odd(obj: Any) -> bool:
    """Whether an object is one of a hostile tenant, made by no controller."""
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(metadata, dict) or metadata.get("ownerReferences"):
        return False
    return bool((metadata.get("labels") or {}).get(LABEL))


def past_validation(obj: Tree, share: float, seed: int) -> Tree:
    """The object as it would be if it were stored past validation: always the same for the same uid."""
    rng = random.Random(zlib.crc32(f"{seed}/{obj['metadata'].get('uid')}".encode()))
    if rng.random() >= share:
        return obj
    spots = [path for path in places(obj) if path and path[0] not in _LEFT and not _SCALES & set(map(str, path))]
    made: Tree = json.loads(json.dumps(obj))
    for path in rng.sample(spots, min(len(spots), rng.choice((1, 2)))):
        parent: Any = made
        for step in path[:-1]:
            parent = parent[step] if _has(parent, step) else None
        if _has(parent, path[-1]):
            parent[path[-1]] = copy.deepcopy(rng.choice(WORDS))  # the next spot may be within it
    made["neverHeardOf"] = {"a": None}
    return made


def _has(parent: Any, step: Any) -> bool:
    if isinstance(parent, dict):
        return step in parent
    return isinstance(parent, list) and isinstance(step, int) and step < len(parent)


def rewritten(rng: random.Random, doc: Any) -> bytes:
    """The same JSON with spaces and the keys of every object in another order."""
    text = json.dumps(_shuffled(rng, doc), ensure_ascii=rng.random() < 0.5, separators=(" , ", " : "))
    return text.encode("utf-8", "surrogatepass")


def _shuffled(rng: random.Random, doc: Any) -> Any:
    if isinstance(doc, dict):
        keys = list(doc)
        rng.shuffle(keys)
        return {key: _shuffled(rng, doc[key]) for key in keys}
    return [_shuffled(rng, one) for one in doc] if isinstance(doc, list) else doc


def not_utf8(data: bytes) -> bytes:
    """With bytes that are no UTF-8 in the middle."""
    at = len(data) // 2
    return data[:at] + b"\xff\xfe\xc3(" + data[at:]


def wrong_kind(rng: random.Random) -> bytes:
    """An object of a kind that was not asked for."""
    return json.dumps(
        rng.choice(
            (
                {},
                None,
                [],
                "x",
                {"kind": "APIVersions", "versions": ["v1"]},
                {"kind": "Status", "apiVersion": "v1", "status": "Success"},
                {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "phantom", "namespace": "odd-0"}},
                {"kind": "FlunderList", "apiVersion": "v1", "metadata": None, "items": None},
            )
        )
    ).encode()
