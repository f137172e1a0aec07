"""The limits for the size of an object: 1.5 MiB for a transaction of etcd, 2 MiB for a message of its client.

The sizes are those of kube-apiserver's transactions: built-in kinds are stored in protobuf, custom ones in JSON.

upstream: etcd server/embed/config.go#DefaultMaxRequestBytes, client/v3/options.go, client/v3/kubernetes/client.go,
apiserver pkg/endpoints/handlers/rest.go#isTooLargeError (v1.36)
"""

from kcm_cli.api.protobuf.decoding import UnknownForm
from kcm_cli.api.protobuf.encoding import to_protobuf
from kcm_cli.machinery import go_json
from kcm_cli.machinery.protowire import numbered, packed
from kcm_cli.sandbox.apiserver.errors import plain
from kcm_cli.sandbox.apiserver.store import Check, Stored
from kcm_cli.sandbox.apiserver.types import Tree

MOST_REQUEST, MOST_MESSAGE = 3 << 19, 2 << 20
_LARGE = 1 << 19
"""Objects with less JSON are not looked at: no protobuf is three times as long."""
_RAFT_BYTES = 17
"""What etcd adds to a transaction: the header of its log's entry."""


class TooLarge(Exception):
    """The object is too large for etcd. The text is upstream's."""


def limit(key: str, old: int) -> Check:
    """The check of a version, which raises TooLarge. key: that of etcd. old: the stored object's revision, or 0."""

    def check(stored: Stored) -> None:
        if len(stored.data) >= _LARGE and (why := _problem(stored.doc, key, old)):
            raise TooLarge(why)

    return check


def smaller(doc: Tree, error: TooLarge, *, applied: bool) -> Tree:
    """The object without managedFields, which upstream tries next, unless it was ``applied``. Raises ApiError 500 if
    there is nothing to leave out."""
    if applied or "managedFields" not in doc["metadata"]:
        raise plain(str(error)) from None
    return {**doc, "metadata": {name: value for name, value in doc["metadata"].items() if name != "managedFields"}}


def _problem(doc: Tree, key: str, old: int) -> str:
    """Why etcd refuses an object; empty if it does not."""
    message = len(_transaction(_value(doc), key.encode(), old))
    if message > MOST_MESSAGE:
        why = f"trying to send message larger than max ({message} vs. {MOST_MESSAGE})"
        return f"rpc error: code = ResourceExhausted desc = {why}"
    return "etcdserver: request is too large" if message + _RAFT_BYTES > MOST_REQUEST else ""


def _value(doc: Tree) -> bytes:
    """What is stored of an object."""
    metadata = {name: value for name, value in doc["metadata"].items() if name != "resourceVersion"}
    kept = {**doc, "metadata": metadata}
    try:
        return to_protobuf(kept)
    except UnknownForm:
        return go_json.encode(kept) + b"\n"


def _transaction(value: bytes, key: bytes, old: int) -> bytes:
    """The message with which an object is put, if its revision is still ``old``; an update reads it otherwise."""
    compare = numbered(2, 2) + packed(3, key) + numbered(6, old)
    put = packed(2, packed(1, key) + packed(2, value))
    otherwise = packed(3, packed(1, packed(1, key))) if old else b""
    return packed(1, compare) + packed(2, put) + otherwise
