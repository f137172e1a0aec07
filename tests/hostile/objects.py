"""Odd objects of all kinds: valid ones in which some fields are null, empty, absurd or unknown words, by the schema
that the server itself states. Which of them are accepted, the server decides."""

import copy
import json
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tests.differential.variations import Schemas, Tree, Variation
from tests.unit.sandbox.fuzz.objects import places, valid

ODD_NAMESPACES = ("odd-0", "odd-1", "odd-2")
LIMITED_NAMESPACE = "odd-limited"
"""Odd quotas and limits are made here, so that they do not refuse all that comes after them."""
PREFIX = "odd-"
LABEL = "odd"
_ASKED_ONLY = ("reviews", "/token", "/eviction", "/binding", "/bindings")
_LEFT_OUT = (
    "webhookconfigurations",  # would be called for ordinary objects
    "policybindings",  # would refuse ordinary objects
    "apiservices",  # an aggregated API that does not answer stops every namespace deletion, as it has to
    "flowschemas",  # would slow the manager down at the server
    "apis/base.example.com/",
)
_NAMED_BY_RULE = ("ipaddresses", "customresourcedefinitions", "servicecidrs")
_UNTOUCHED = ("metadata*", "kind", "apiVersion")
_POD: Tree = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}
_CLAIM = "apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaim"
KNOWN_ODD: tuple[tuple[str, Tree], ...] = (
    ("apis/batch/v1/namespaces/{namespace}/jobs", {"spec": {"template": {"spec": _POD}, "podFailurePolicy": {}}}),
    (f"{_CLAIM}s", {"spec": {}}),
    (f"{_CLAIM}templates", {"spec": {"spec": {}}}),
    ("api/v1/namespaces/{namespace}/pods", {"spec": {**_POD, "volumes": [{"name": "v", "projected": {}}]}}),
    ("api/v1/namespaces/{namespace}/pods", {"spec": {**_POD, "volumes": [{"name": "v", "downwardAPI": {}}]}}),
    ("apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets", {"spec": {}}),
    ("api/v1/namespaces/{namespace}/endpoints", {"subsets": [{"addresses": None, "ports": None}]}),
    ("apis/rbac.authorization.k8s.io/v1/clusterroles", {"aggregationRule": {"clusterRoleSelectors": []}}),
    ("api/v1/namespaces/{namespace}/services", {"spec": {"ports": [{"port": 1}], "selector": {}}}),
    ("api/v1/namespaces/{namespace}/secrets", {"type": "kubernetes.io/never-heard-of", "data": None}),
    ("api/v1/namespaces/{namespace}/events", {"involvedObject": {"namespace": "{namespace}"}, "eventTime": None}),
)
"""Objects that stopped a controller once, or that look as if they could."""
DEPTHS = (300, 990, 1_200, 9_900)
"""kube-apiserver accepts 10,000 levels, and its documents have a few around this."""
TEXTS = {"bytes": b'{"f:\xff":{}}', "pair": rb'{"f:\ud800":{}}'}
"""Managed fields and RawExtensions that kube-apiserver stores as they are written."""
WIDGETS = "apis/deep.example.com/v1/namespaces/{namespace}/widgets"
WIDGETS_DEFINITION: Tree = {
    "metadata": {"name": "widgets.deep.example.com"},
    "spec": {
        "group": "deep.example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
_CONTAINERS = b'"containers":[{"name":"c","image":"x"}]'
_REQUEST = b'"requests":[{"name":"r","exactly":{"deviceClassName":"none"}}]'
_DEEP_KINDS: dict[str, bytes] = {
    "api/v1/namespaces": b"",
    "api/v1/namespaces/{namespace}/pods": b'"spec":{%s}' % _CONTAINERS,
    "api/v1/namespaces/{namespace}/configmaps": b"",
    "api/v1/namespaces/{namespace}/persistentvolumeclaims": (
        b'"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}'
    ),
    "apis/apps/v1/namespaces/{namespace}/deployments": (
        b'"spec":{"replicas":1,"selector":{"matchLabels":{"a":"NAME"}},"template":{"metadata":{"labels":{"a":"NAME"}},'
        b'"spec":{%s}}}' % _CONTAINERS
    ),
    "apis/apps/v1/namespaces/{namespace}/controllerrevisions": b'"revision":1,"data":DEEP',
    "apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims": (
        b'"spec":{"devices":{%s,"config":[{"opaque":{"driver":"d.example.com","parameters":DEEP}}]}}' % _REQUEST
    ),
    "apis/batch/v1/namespaces/{namespace}/jobs": (
        b'"spec":{"template":{"spec":{"restartPolicy":"Never",%s}}}' % _CONTAINERS
    ),
    WIDGETS: b'"apiVersion":"deep.example.com/v1","kind":"Widget","spec":DEEP',
}
"""Kinds with managed fields that nest deeply; and DEEP elsewhere, where a user may write anything."""
_LONGEST_PARAMETERS = 1_600
"""Levels that fit into the 10 KiB of opaque parameters."""
Ask = Callable[..., Awaitable[Any]]


@dataclass(frozen=True)
class Odd:
    """An object to create. ``status``: what its status is set to afterwards, where it has one."""

    collection: str
    body: Tree
    status: Tree | None = None

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])


@dataclass
class OddObjects:
    """Draws odd objects. ``schemas``: OpenAPI v3 of the server, by ``apis/group/version``."""

    rng: random.Random
    schemas: Mapping[str, Mapping[str, Tree]]
    _bases: list[tuple[str, Tree]] = field(default_factory=list)
    _variations: dict[str, list[Variation]] = field(default_factory=dict)
    _count: int = 0

    def __post_init__(self) -> None:
        self._bases = [(collection, doc) for collection, doc in valid().items() if _wanted(collection)]

    def draw(self) -> Odd:
        """The next one; kind by kind, so that each has its share."""
        number = self._count
        self._count += 1
        if number < len(KNOWN_ODD):
            collection, doc = KNOWN_ODD[number]
            return self._odd(collection, doc, None)
        collection, base = self._bases[(number - len(KNOWN_ODD)) % len(self._bases)]
        doc = base
        for variation in self.rng.sample(self._of(collection, base), self.rng.choice((1, 1, 2, 3))):
            with suppress(TypeError, LookupError):  # an earlier one took its place away
                doc = variation.applied(doc)
        if self.rng.random() < 0.5:
            doc = self._with_nulls(doc)
        return self._odd(collection, doc, doc.get("status") if isinstance(doc, dict) else None)

    def _odd(self, collection: str, doc: Tree, status: Tree | None) -> Odd:
        limiting = collection.endswith(("resourcequotas", "limitranges"))
        namespace = LIMITED_NAMESPACE if limiting else self.rng.choice((*ODD_NAMESPACES * 2, LIMITED_NAMESPACE))
        made: Tree = json.loads(json.dumps(doc).replace("{namespace}", namespace))
        name = f"{PREFIX}{self._count}"
        if collection.endswith("servicecidrs"):
            made["spec"] = {"cidrs": [f"10.{100 + self._count % 100}.{self._count % 256}.0/28"]}
        elif collection.endswith("ipaddresses"):
            name = f"10.99.{self._count // 250 % 250}.{self._count % 250 + 1}"
        elif collection.endswith("customresourcedefinitions"):
            spec = _map_of(made.get("spec"))
            names = {**_map_of(spec.get("names")), "plural": name, "kind": f"Odd{self._count}"}
            names |= {"singular": f"{name}s", "listKind": f"Odd{self._count}List", "shortNames": None}
            made["spec"] = {**spec, "names": names}
            name = f"{name}.example.com"
        made["metadata"] = {"name": name, "labels": {LABEL: "yes"}}
        if collection.endswith("/events"):
            made["metadata"]["namespace"] = namespace
        return Odd(collection.replace("{namespace}", namespace), made, status)

    def _of(self, collection: str, base: Tree) -> list[Variation]:
        if collection not in self._variations:
            schemas = Schemas(self.schemas[group_version(collection)], _UNTOUCHED)
            self._variations[collection] = list(schemas.variations(_schema(schemas, collection), base))
        return self._variations[collection]

    def _with_nulls(self, doc: Tree) -> Tree:
        spots = [path for path in places(doc) if path and path[0] not in ("metadata", "kind", "apiVersion")]
        if not spots:
            return doc
        return Variation(self.rng.choice(spots), None).applied(copy.deepcopy(doc))


def deep_objects() -> Iterator[tuple[str, bytes]]:
    """Objects of several kinds, as (collection, text): Python's json module cannot write them."""
    texts = {str(depth): nested(depth) for depth in DEPTHS} | TEXTS
    for collection, more in _DEEP_KINDS.items():
        for what, text in texts.items():
            name = f"{PREFIX}deep-{what}"
            inner = nested(_LONGEST_PARAMETERS) if b"opaque" in more and len(text) > 10_000 else text
            fields = b'"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1",'
            fields += b'"time":"2026-01-01T00:00:00Z","fieldsV1":%s}]' % text
            metadata = b'"metadata":{"name":"%s","labels":{"%s":"yes"},%s}' % (name.encode(), LABEL.encode(), fields)
            rest = more.replace(b"DEEP", inner).replace(b"NAME", name.encode())
            body = b"{%s}" % b",".join(filter(None, (metadata, rest)))
            yield collection.replace("{namespace}", ODD_NAMESPACES[0]), body


def nested(depth: int) -> bytes:
    """Fields that nest to this depth."""
    return b'{"f:a":' * depth + b"{}" + b"}" * depth


def _map_of(value: Any) -> Tree:
    return value if isinstance(value, dict) else {}


def collections() -> list[str]:
    """Of all that odd objects are made of."""
    return [collection for collection in valid() if _wanted(collection)]


def group_version(collection: str) -> str:
    """``apis/group/version`` or ``api/v1``."""
    parts = collection.split("/")
    return "/".join(parts[: 2 if parts[0] == "api" else 3])


def _wanted(collection: str) -> bool:
    return not collection.endswith(_ASKED_ONLY + _LEFT_OUT) and not collection.startswith(_LEFT_OUT)


def _schema(schemas: Schemas, collection: str) -> Tree:
    """The schema whose kind has the collection's plural name."""
    plural = collection.rpartition("/")[2]
    version = group_version(collection).partition("/")[2]
    for schema in schemas.named.values():
        for kind in schema.get("x-kubernetes-group-version-kind", ()):
            same = f"{kind['group']}/{kind['version']}".lstrip("/") == version
            if same and plural in _plurals(kind["kind"].lower()):
                return schema
    raise LookupError(f"no schema for {collection}")


def _plurals(kind: str) -> tuple[str, ...]:
    return (kind, f"{kind}s", f"{kind}es", f"{kind[:-1]}ies")
