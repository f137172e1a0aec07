"""The operations of resources, for both versions of OpenAPI.

upstream: apiserver pkg/endpoints/installer.go (paths, operation ids, actions)
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from http import HTTPStatus

import msgspec
from msgspec.structs import replace

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.data import read_data
from kcm_cli.sandbox.apiserver.kinds import KINDS
from kcm_cli.sandbox.apiserver.registry.catalog import Served, Subresource

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
STATUS = META + "Status"
CUSTOM_PATCH_TYPES = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
PATCH_TYPES = (*CUSTOM_PATCH_TYPES[:2], "application/strategic-merge-patch+json", *CUSTOM_PATCH_TYPES[2:])
CUSTOM_TYPES = ("application/json", "application/yaml")
MEDIA_TYPES = (*CUSTOM_TYPES, "application/vnd.kubernetes.protobuf")
_WATCH_TYPES = ("application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")

_LIST = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
    "watch",
)
_DELETE = (
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
)
_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_CONNECTED = frozenset(["attach", "exec", "portforward", "proxy"])
_STREAMS = ("container", "stderr", "stdin", "stdout", "tty")
_CONNECTIONS: dict[str, tuple[str, ...]] = {
    "attach": _STREAMS,
    "exec": ("command", *_STREAMS),
    "log": (
        *("container", "follow", "insecureSkipTLSVerifyBackend", "limitBytes", "previous", "sinceSeconds"),
        *("stream", "tailLines", "timestamps"),
    ),
    "portforward": ("ports",),
    "proxy": ("path",),
}
_PROXY_METHODS = ("delete", "get", "head", "options", "patch", "post", "put")


class GVK(msgspec.Struct, frozen=True):
    """A kind as in ``x-kubernetes-group-version-kind``."""

    group: str
    version: str
    kind: str


class Operation(msgspec.Struct, frozen=True):
    """A method of a path. body, answer: the definitions of request and response; an empty answer is a string."""

    path: str
    method: str
    id: str
    action: str
    description: str
    kind: GVK | None
    tag: str
    query: tuple[str, ...] = ()
    body: str = ""
    body_types: tuple[str, ...] = ("*/*",)
    body_required: bool = True
    answer: str = ""
    answer_types: tuple[str, ...] = MEDIA_TYPES
    codes: tuple[int, ...] = (200,)


class Parameter(msgspec.Struct, frozen=True):
    """A parameter of operations. ref: its name among those that operations of v2 share; empty if they do
    not."""

    name: str
    place: str
    type: str = "string"
    description: str = ""
    ref: str = ""

    @property
    def plain(self) -> Doc:
        """The fields that both versions of OpenAPI have."""
        required: Doc = {"required": True} if self.place == "path" else {}
        return {"name": self.name, "in": self.place, "description": self.description, **required}


class _Known(msgspec.Struct, frozen=True):
    type: str = "string"
    description: str = ""
    ref: str = ""


@cache
def _parameters() -> dict[str, _Known]:
    """By variant, name and place; without a variant for all others."""
    return codec.decode(read_data("parameters"), dict[str, _Known])


def variant(path: str, action: str) -> str:
    """What the form of the parameters of an operation depends on: a patch, or a connection to a kind."""
    parts = [part for part in path.split("/") if part]
    if parts and parts[-1] in _STREAMED:
        return parts[-1]
    if "proxy" in parts:
        return f"{parts[parts.index('proxy') - 2]}/proxy"
    return action if action == "patch" else ""


_STREAMED = frozenset(["attach", "exec", "log", "portforward"])


def parameter_of(operation: Operation, name: str, place: str) -> Parameter:
    """A parameter of an operation."""
    known = _parameters()
    found = known.get(f"{variant(operation.path, operation.action)} {name} {place}") or known[f" {name} {place}"]
    text = found.description
    if name == "name" and operation.kind is not None:
        text += operation.kind.kind
    return Parameter(name, place, found.type, text, found.ref)


def shared_body(definition: str) -> str:
    """The name among shared parameters of a body with this definition; empty if it is not shared."""
    found = _parameters().get(f" {definition} body")
    return found.ref if found is not None else ""


def responses(operation: Operation, definitions: str, form: Callable[[Doc], Doc]) -> Doc:
    """The responses by code. definitions: the place of schemas. form: a schema, as a version of OpenAPI writes it."""
    schema: Doc = {"$ref": definitions + operation.answer} if operation.answer else {"type": "string"}
    answer = form(schema)
    found: Doc = {str(code): {"description": HTTPStatus(code).phrase, **answer} for code in operation.codes}
    return {**found, "401": {"description": "Unauthorized"}}


def extensions(operation: Operation) -> Doc:
    """The action and the kind of an operation."""
    found: Doc = {"x-kubernetes-action": operation.action} if operation.action else {}
    if operation.kind is not None:
        found["x-kubernetes-group-version-kind"] = msgspec.to_builtins(operation.kind)
    return found


def laid_out(
    operations: Iterable[Operation], parameter: Callable[[Parameter], Doc], form: Callable[[Operation], Doc]
) -> Iterator[tuple[str, Doc]]:
    """The path items, sorted by path. Parameters that all methods of a path share are in the item.

    parameter, form: make a parameter and an operation.

    upstream: kube-openapi pkg/builder
    """
    paths: dict[str, list[Operation]] = {}
    for operation in operations:
        paths.setdefault(operation.path, []).append(operation)
    return ((path, _path_item(path, paths[path], parameter, form)) for path in sorted(paths))


def _path_item(
    path: str, methods: list[Operation], parameter: Callable[[Parameter], Doc], form: Callable[[Operation], Doc]
) -> Doc:
    common = set.intersection(*(set(operation.query) for operation in methods))
    shared = [(part.strip("{}"), "path") for part in path.split("/") if part.startswith("{")]
    shared += [(name, "query") for name in common]
    if any(operation.action not in ("", "connect") for operation in methods):
        shared.append(("pretty", "query"))
    first = methods[0]
    item: Doc = {"parameters": [parameter(parameter_of(first, *each)) for each in sorted(shared)]} if shared else {}
    for operation in methods:
        own = tuple(name for name in operation.query if name not in common)
        item[operation.method] = form(replace(operation, query=own))
    return item


def tag(group: str, version: str) -> str:
    """``apps_v1``, ``core_v1``, ``rbacAuthorization_v1``."""
    return f"{_group_word(group, first_upper=False)}_{version}"


def _group_word(group: str, *, first_upper: bool = True) -> str:
    """``RbacAuthorization`` for ``rbac.authorization.k8s.io``."""
    if not group:
        word = "Core"
    else:
        word = "".join(part[:1].upper() + part[1:] for part in group.removesuffix(".k8s.io").split("."))
    return word if first_upper else word[:1].lower() + word[1:]


class Names:
    """The operationIds of a resource."""

    def __init__(self, served: Served) -> None:
        gvr = served.info.gvr
        self.kind = served.info.kind
        self.namespaced = served.info.namespaced
        self.tag = tag(gvr.group, gvr.version)
        self._word = _group_word(gvr.group) + gvr.version[:1].upper() + gvr.version[1:]

    def id(self, verb: str, suffix: str = "", *, collection: bool = False) -> str:
        scope = "Namespaced" if self.namespaced else ""
        whole = "Collection" if collection else ""
        return f"{verb}{self._word}{whole}{scope}{self.kind}{suffix}"

    def everywhere(self, verb: str, suffix: str = "") -> str:
        return f"{verb}{self._word}{self.kind}{suffix}ForAllNamespaces"


def operations(served: Served, definition: str) -> Iterator[Operation]:
    """All operations of a resource. ``definition``: the name of its kind's definition."""
    for operation in _operations(served, definition):
        yield _of_custom(operation) if served.info.custom else operation


def _of_custom(operation: Operation) -> Operation:
    """The operation for custom resources: no protobuf, no body for deletecollection, no creation by patches.

    upstream: apiextensions-apiserver pkg/controller/openapi/builder/builder.go
    """
    changed = replace(operation, answer_types=CUSTOM_TYPES)
    match operation.action:
        case "get":
            return replace(changed, query=("resourceVersion",))
        case "patch":
            return replace(changed, codes=(200,), body_types=CUSTOM_PATCH_TYPES)
        case "deletecollection":
            return replace(changed, query=_LIST, body="")
    return replace(changed, body_types=CUSTOM_TYPES)


def _operations(served: Served, definition: str) -> Iterator[Operation]:
    info = served.info
    names = Names(served)
    kind = GVK(info.gvr.group, info.gvr.version, info.kind)
    base = info.gvr.base
    plural = info.gvr.plural
    collection = f"{base}/namespaces/{{namespace}}/{plural}" if info.namespaced else f"{base}/{plural}"
    yield from _collection(served, names, kind, collection, definition)
    yield from _single(served, names, kind, f"{collection}/{{name}}", definition)
    if info.namespaced and "list" in info.verbs:
        yield _list(names.everywhere("list"), f"{base}/{plural}", names, kind, definition)
    if "watch" in info.verbs and not info.custom:
        yield from _watches(served, names, kind)
    for name in sorted(served.subresources):
        yield from _subresource(served.subresources[name], names, kind, f"{collection}/{{name}}", definition)


def _collection(served: Served, names: Names, kind: GVK, path: str, definition: str) -> Iterator[Operation]:
    verbs = served.info.verbs
    if "list" in verbs:
        yield _list(names.id("list"), path, names, kind, definition)
    if "create" in verbs:
        yield from _on_object("create", path, names, kind, definition)
    if "deletecollection" in verbs:
        query = tuple(sorted({*_LIST, *_DELETE} - {"allowWatchBookmarks", "watch"}))
        yield Operation(
            path, "delete", names.id("delete", collection=True), "deletecollection",
            f"delete a collection of {names.kind}", kind, names.tag, query,
            body=META + "DeleteOptions", body_required=False, answer=STATUS,
        )  # fmt: skip


def _list(id_: str, path: str, names: Names, kind: GVK, definition: str) -> Operation:
    return Operation(
        path, "get", id_, "list", f"list or watch {names.kind}", kind, names.tag, _LIST, answer=f"{definition}List",
        answer_types=MEDIA_TYPES + _WATCH_TYPES,
    )  # fmt: skip


def _single(served: Served, names: Names, kind: GVK, path: str, definition: str) -> Iterator[Operation]:
    verbs = served.info.verbs
    for verb in ("get", "update", "patch"):
        if verb in verbs:
            yield from _on_object(verb, path, names, kind, definition)
    if "delete" in verbs:
        returned = KINDS.strategy(served.info).returns_object_on_delete and kind.kind != "Namespace"  # as upstream
        answered = definition if returned else STATUS
        yield Operation(
            path, "delete", names.id("delete"), "delete", f"delete {names.kind}", kind, names.tag, _DELETE,
            body=META + "DeleteOptions", body_required=False, answer=answered, codes=(200, 202),
        )  # fmt: skip


def _on_object(verb: str, path: str, names: Names, kind: GVK, definition: str, sub: str = "") -> Iterator[Operation]:
    """The operation of a verb on a resource or its subresource ``sub``; none for other verbs."""
    suffix, what = _capitalized(sub), f"{sub} of {names.kind}" if sub else names.kind
    match verb:
        case "get":
            yield Operation(
                path, "get", names.id("read", suffix), "get", f"read {what}", kind, names.tag, answer=definition
            )
        case "update":
            yield Operation(
                path, "put", names.id("replace", suffix), "put", f"replace {what}", kind, names.tag, _WRITE,
                body=definition, answer=definition, codes=(200, 201),
            )  # fmt: skip
        case "patch":
            yield Operation(
                path, "patch", names.id("patch", suffix), "patch", f"change part of {names.kind}", kind, names.tag,
                (*_WRITE, "force"), body=META + "Patch", body_types=PATCH_TYPES, answer=definition, codes=(200, 201),
            )  # fmt: skip
        case "create":
            yield Operation(
                path, "post", names.id("create", suffix), "post", f"create {what}", kind, names.tag, _WRITE,
                body=definition, answer=definition, codes=(200, 201, 202),
            )  # fmt: skip


def _watches(served: Served, names: Names, kind: GVK) -> Iterator[Operation]:
    """The deprecated paths of watches."""
    info = served.info
    base = f"{info.gvr.base}/watch"
    scoped = f"{base}/namespaces/{{namespace}}/{info.gvr.plural}" if info.namespaced else f"{base}/{info.gvr.plural}"
    said = f"watch {names.kind}; deprecated: use the watch parameter of a list"

    def watch(path: str, id_: str, action: str) -> Operation:
        return Operation(
            path, "get", id_, action, said, kind, names.tag, _LIST, answer=META + "WatchEvent",
            answer_types=MEDIA_TYPES + _WATCH_TYPES,
        )  # fmt: skip

    yield watch(scoped, names.id("watch", "List"), "watchlist")
    if "get" in info.verbs:
        yield watch(f"{scoped}/{{name}}", names.id("watch"), "watch")
    if info.namespaced:
        yield watch(f"{base}/{info.gvr.plural}", names.everywhere("watch", "List"), "watchlist")


def _subresource(sub: Subresource, names: Names, parent: GVK, path: str, definition: str) -> Iterator[Operation]:
    own = sub.kind != parent.kind
    kind = GVK(sub.group or parent.group, sub.version or parent.version, sub.kind) if own else parent
    path = f"{path}/{sub.name}"
    suffix = _capitalized(sub.name)
    if sub.name in _CONNECTED:
        yield from _connections(sub, names, kind, path, suffix)
        return
    body = DEFINITIONS.get((kind.group, kind.version, kind.kind), definition) if own else definition
    if sub.name == "log":
        yield Operation(
            path, "get", names.id("read", suffix), "get", f"read {sub.name} of {names.kind}", parent, names.tag,
            _CONNECTIONS["log"], answer_types=("text/plain", *MEDIA_TYPES),
        )  # fmt: skip
        return
    for verb in sorted(sub.verbs):
        yield from _on_object(verb, path, names, kind, body, sub.name)


def _capitalized(name: str) -> str:
    return name[:1].upper() + name[1:]


def _connections(sub: Subresource, names: Names, kind: GVK, path: str, suffix: str) -> Iterator[Operation]:
    methods = _PROXY_METHODS if sub.name == "proxy" else ("get", "post")
    for place, more in ((path, ""), (f"{path}/{{path}}", "WithPath")) if sub.name == "proxy" else ((path, ""),):
        for method in methods:
            verb = "connect"
            yield Operation(
                place, method, _connect_id(names, verb, method, suffix + more), verb,
                f"connect to {sub.name} of {names.kind}", kind, names.tag, _CONNECTIONS.get(sub.name, ()),
                answer_types=("*/*",),
            )  # fmt: skip


def _connect_id(names: Names, verb: str, method: str, suffix: str) -> str:
    plain = names.id(verb, suffix)
    scope = "Namespaced" if names.namespaced else names.kind
    head, found, rest = plain.partition(scope)
    return f"{head}{method.capitalize()}{found}{rest}"


DEFINITIONS = {
    ("autoscaling", "v1", "Scale"): "io.k8s.api.autoscaling.v1.Scale",
    ("policy", "v1", "Eviction"): "io.k8s.api.policy.v1.Eviction",
    ("authentication.k8s.io", "v1", "TokenRequest"): "io.k8s.api.authentication.v1.TokenRequest",
    ("", "v1", "Binding"): "io.k8s.api.core.v1.Binding",
}
"""Definitions of the kinds of subresources."""
