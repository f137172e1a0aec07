"""Scenarios of requests. Each reads its decisions from a tape and cleans up."""

import json

from tests.unit.sandbox.fuzz.cluster import JSON, Cluster, Failed, Pairs
from tests.unit.sandbox.fuzz.mutations import SENDABLE, Tape, encoded, json_patch, mutated
from tests.unit.sandbox.fuzz.objects import valid

COLLECTIONS = tuple(valid())
ASKED = COLLECTIONS[COLLECTIONS.index("api/v1/namespaces/{namespace}/serviceaccounts/default/token") :]
"""What is created and not kept; they are the last in the file."""
STORED = COLLECTIONS[: -len(ASKED)]
PARTS = ("", "", "", "/status", "/scale", "/approval", "/finalize", "/resize", "/ephemeralcontainers", "/binding")
PATCHES = ("merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml", "json-patch+json")
_META = "v=v1;g=meta.k8s.io"
TABLE = {"accept": f"{JSON};as=Table;{_META}"}
ACCEPTS = (
    *("", "*/*", "application/*", "application/yaml", "text/html", ";;;", ",", f"{JSON};q=nan", "*;q=1e999"),
    *(f"{JSON};as=Table;{_META}", f"{JSON};as=PartialObjectMetadata;{_META}", "application/cbor", "application/yaml"),
    *(f"{JSON};as=PartialObjectMetadataList;v=v1beta1;g=meta.k8s.io", "application/vnd.kubernetes.protobuf"),
    *(f"{JSON};as=Table;v=v2;g=x", f"{JSON};stream=watch", f"application/yaml;as=Table;{_META}"),
    *(f"{JSON};=;a", "é/ü", f"{JSON}, */*;q=-1"),
)
CONTENTS = (
    *("application/yaml", "application/vnd.kubernetes.protobuf", "", "text/plain", "application/cbor", "é", ";"),
    *(f"{JSON}; charset=latin-1", "application/x-www-form-urlencoded", "application/merge-patch+json"),
)
PARAMETERS = (
    *("allowWatchBookmarks", "continue", "dryRun", "fieldManager", "fieldSelector", "fieldValidation", "force"),
    *("gracePeriodSeconds", "labelSelector", "limit", "orphanDependents", "pretty", "propagationPolicy", "timeout"),
    *("resourceVersion", "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch", "includeObject"),
    *("é", ""),
)
VALUES = (
    *("All", "Strict", "Warn", "Ignore", "Exact", "NotOlderThan", "metadata.name=x", "app=x", "app in (x,y)", "None"),
    *("app notin ()", "!app", "a==b,", "status.phase!=Running", "spec.nodeName=", "Object", "Metadata", "Orphan"),
    *("metadata.name==a,metadata.namespace=b", "eyJ2IjoxfQ", "bnVsbA", "W10", "Background"),
    *("\0", "\n", "é" * 200, "%00", "a\tb"),
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Mywic3RhcnQiOiJhXHUwMDAwIn0",
    *SENDABLE,
)
HEADERS = (
    *("authorization", "impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-é", "accept"),
    *("content-type", "user-agent", "if-none-match", "accept-encoding", "x-remote-user"),
)
METHODS = ("GET", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "")


def odd_object(cluster: Cluster, tape: Tape) -> None:
    """Create an object with errors."""
    collection = tape.one(COLLECTIONS)
    origin = cluster.filled.get(collection, {}) if tape.seldom(2) else cluster.valid[collection]
    doc = mutated(tape, cluster.named(origin), tape.number(5))
    kind = tape.one(CONTENTS) if tape.seldom() else JSON
    path = cluster.place(collection)
    answer = cluster.send("POST", path, encoded(tape, doc), _query(tape), content_type=kind, **_headers(tape))
    if answer.status == 201 and collection in STORED and answer.body.startswith(b'{"kind"'):
        _read_and_delete(cluster, tape, path, json.loads(answer.body)["metadata"].get("name", "none"))


def odd_changes(cluster: Cluster, tape: Tape) -> None:
    """Create an object, and change it in invalid ways."""
    collection = tape.one(STORED)
    path = cluster.place(collection)
    doc = cluster.named(cluster.valid[collection])
    answer = cluster.send("POST", path, json.dumps(doc).encode())
    if answer.status not in (201, 409):
        raise Failed(f"no {collection} can be made: {answer.body!r}")
    name = str(doc["metadata"]["name"])
    for _ in range(1 + tape.number(3)):
        _change(cluster, tape, f"{path}/{name}")
    _read_and_delete(cluster, tape, path, name)


def odd_address(cluster: Cluster, tape: Tape) -> None:
    """Request unusual paths with unusual headers."""
    collection = cluster.place(tape.one(COLLECTIONS))
    parts = collection.split("/") + [tape.one((*SENDABLE, "status", "scale", "log")) for _ in range(tape.number(4))]
    if tape.seldom():
        parts[tape.number(len(parts))] = tape.one((*SENDABLE, "watch", "openapi", "metrics"))
    method = tape.one(METHODS)
    named = {tape.one(HEADERS): tape.one(VALUES) for _ in range(tape.number(3))}
    if method == "DELETE" and len(parts) < 6:
        return
    options = (("timeoutSeconds", "1"), *_query(tape))
    authorized = tape.seldom(2)
    cluster.send(method, "/".join(parts), b"", options, authorized=authorized, **(_headers(tape) | named))


SCENARIOS = (odd_object, odd_changes, odd_address)


def _query(tape: Tape) -> Pairs:
    if not tape.seldom():
        return ()
    return tuple((tape.one(PARAMETERS), tape.one(VALUES)) for _ in range(1 + tape.number(3)))


def _headers(tape: Tape) -> dict[str, str]:
    return {"accept": tape.one(ACCEPTS)} if tape.seldom() else {}


def _change(cluster: Cluster, tape: Tape, path: str) -> None:
    place = path + tape.one(PARTS)
    answer = cluster.send("GET", place)
    answer = answer if answer.status == 200 else cluster.send("GET", path)
    now = json.loads(answer.body) if answer.body.startswith(b"{") else {}
    how = tape.one(("PUT", "POST", *PATCHES))
    options = _query(tape)
    if how in ("PUT", "POST"):
        doc = mutated(tape, now, tape.number(5))
        cluster.send(how, place, encoded(tape, doc), options, **_headers(tape))
        return
    if how == "apply-patch+yaml":
        now.get("metadata", {}).pop("managedFields", None)
        options += (("fieldManager", "m"),) if tape.seldom() else (("fieldManager", "m"), ("force", "1"))
    patch = json_patch(tape, now) if how.startswith("json") else mutated(tape, now, tape.number(5))
    body = encoded(tape, patch)
    cluster.send("PATCH", place, body, options, content_type=f"application/{how}", **_headers(tape))


def _read_and_delete(cluster: Cluster, tape: Tape, path: str, name: str) -> None:
    one = f"{path}/{name}"
    cluster.send("GET", one, query=_query(tape), **_headers(tape))
    cluster.send("GET", one, **TABLE)
    cluster.send("GET", path, query=_query(tape), **(_headers(tape) or TABLE))
    body = encoded(tape, mutated(tape, cluster.options, 2)) if tape.seldom() else b""
    cluster.send("DELETE", one, body, _query(tape), **_headers(tape))
    cluster.send("PATCH", one, b'{"metadata":{"finalizers":null}}', content_type="application/merge-patch+json")
    cluster.send("DELETE", one, b'{"gracePeriodSeconds":0}')
