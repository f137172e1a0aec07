"""The variables and result types of expressions in admission policies and webhooks.

upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/cel/{compile,composition}.go
"""

from collections.abc import Iterator, Mapping, Sequence

from kcm_cli.machinery import cel
from kcm_cli.machinery.cel.check import Fields
from kcm_cli.machinery.cel.parser import parse
from kcm_cli.machinery.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    list_of,
    map_of,
)

VARIABLES = "kubernetes.variables"
PATCH, OBJECT = cel.Type("JSONPatch"), cel.Type("Object")
_SIMPLE = frozenset({BOOL, BYTES, DOUBLE, DURATION, INT, NULL, STRING, TIMESTAMP, UINT})
_TEXTS, _LABELS = list_of(STRING), map_of(STRING, STRING)
_KIND, _RESOURCE = cel.Type("kubernetes.GroupVersionKind"), cel.Type("kubernetes.GroupVersionResource")
_AUTHORIZER = "kubernetes.authorization."
_OBJECTS: Mapping[str, Fields] = {
    _KIND.name: {"group": STRING, "version": STRING, "kind": STRING},
    _RESOURCE.name: {"group": STRING, "version": STRING, "resource": STRING},
    "kubernetes.UserInfo": {"username": STRING, "uid": STRING, "groups": _TEXTS, "extra": map_of(STRING, _TEXTS)},
    "kubernetes.AdmissionRequest": {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": STRING,
        "name": STRING,
        "namespace": STRING,
        "operation": STRING,
        "userInfo": cel.Type("kubernetes.UserInfo"),
        "dryRun": BOOL,
        "options": DYN,
    },
    "kubernetes.Namespace": {
        "metadata": cel.Type("kubernetes.NamespaceMetadata"),
        "spec": cel.Type("kubernetes.NamespaceSpec"),
        "status": cel.Type("kubernetes.NamespaceStatus"),
    },
    "kubernetes.NamespaceMetadata": {
        "name": STRING,
        "generateName": STRING,
        "namespace": STRING,
        "labels": _LABELS,
        "annotations": _LABELS,
        "UID": STRING,
        "creationTimestamp": TIMESTAMP,
        "deletionGracePeriodSeconds": INT,
        "deletionTimestamp": TIMESTAMP,
        "generation": INT,
        "resourceVersion": STRING,
        "finalizers": _TEXTS,
    },
    "kubernetes.NamespaceSpec": {"finalizers": _TEXTS},
    "kubernetes.NamespaceStatus": {
        "conditions": list_of(cel.Type("kubernetes.NamespaceCondition")),
        "phase": STRING,
    },
    "kubernetes.NamespaceCondition": {
        "status": STRING,
        "type": STRING,
        "lastTransitionTime": TIMESTAMP,
        "message": STRING,
        "reason": STRING,
    },
}
_PATCH_FIELDS: Fields = {"op": STRING, "path": STRING, "from": STRING, "value": DYN}


class _AnyField(Mapping[str, cel.Type]):
    """The fields of an object in an apply configuration: any name, of type dyn."""

    def __getitem__(self, name: str) -> cel.Type:
        return DYN

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


_ANY_FIELD = _AnyField()


def environment(
    *,
    params: bool = False,
    authorizer: bool = True,
    patches: bool = False,
    variables: Mapping[str, cel.Type] | None = None,
) -> cel.Environment:
    """The variables of an expression. variables: the types of a policy's own variables so far; None if it may have
    none."""
    names = {
        "object": DYN,
        "oldObject": DYN,
        "namespaceObject": cel.Type("kubernetes.Namespace"),
        "request": cel.Type("kubernetes.AdmissionRequest"),
    }
    if params:
        names["params"] = DYN
    if authorizer:
        names["authorizer"] = cel.Type(f"{_AUTHORIZER}Authorizer")
        names["authorizer.requestResource"] = cel.Type(f"{_AUTHORIZER}ResourceCheck")
    if variables is not None:
        names["variables"] = cel.Type(VARIABLES)

    def objects(name: str) -> Fields | None:
        if name == VARIABLES:
            return variables
        if patches and name == PATCH.name:
            return _PATCH_FIELDS
        if patches and (name == OBJECT.name or name.startswith(f"{OBJECT.name}.")):
            return _ANY_FIELD
        return _OBJECTS.get(name)

    return cel.Environment(names, objects)


def problem(text: str, known: cel.Environment, returns: Sequence[cel.Type]) -> str:
    """The error text of an invalid expression; empty if it is valid. returns: the allowed result types; empty for
    any."""
    try:
        result = cel.check(text, parse(text), known).result
    except cel.CelProblem as error:
        return f"compilation failed: {error}"
    if not returns or result in returns:
        return ""
    if len(returns) == 1:
        return f"must evaluate to {returns[0].full_name} but got {result.full_name}"
    wanted = " ".join(each.full_name for each in returns)
    return f"must evaluate to one of [{wanted}] but got {result.full_name}"


def variable_type(text: str, known: cel.Environment) -> cel.Type:
    """The type of a variable in later expressions; dyn if its expression is invalid."""
    try:
        node = parse(text)
        result = cel.check(text, node, known).result
    except cel.CelProblem:
        return DYN
    return DYN if cel.failed_conversion(node) else _declared(result)


def _declared(kind: cel.Type) -> cel.Type:
    """The type as it is declared for later expressions: simple types and collections of these are kept, others become
    dyn."""
    if kind.name in ("list", "map"):
        return cel.Type(kind.name, tuple(map(_declared, kind.params)))
    return kind if kind in _SIMPLE else DYN
