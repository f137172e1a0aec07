"""Applies manifests as ``kubectl apply`` does, client-side or server-side.

Without ``--server-side`` an object is applied as kubectl would do it by default: client-side, by three-way merge with
its last-applied annotation. An object that kubectl applied server-side before is applied so again.

upstream: staging/src/k8s.io/kubectl/pkg/cmd/apply/apply.go, staging/src/k8s.io/client-go/util/csaupgrade/upgrade.go
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from kcm_cli.api.well_known import LAST_APPLIED
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_list, nested_map
from kcm_cli.planning.actions import APPLY, JSON_PATCH, MERGE, STRATEGIC_MERGE
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import ApiError, NotFound
from kcm_cli.rest.served_resources import ServedResource
from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.apiserver.apply.fieldset import union
from kcm_cli.sandbox.apiserver.apply.strategic import StrategicError
from kcm_cli.sandbox.apiserver.apply.three_way import merge_patch, strategic_patch
from kcm_cli.sandbox.apiserver.schema.model import Node

SERVER_SIDE, CLIENT_SIDE, ANNOTATION = "kubectl", "kubectl-client-side-apply", "kubectl-last-applied"
"""kubectl's field managers."""
MOST_TRIES = 5
"""Of a write that others come before."""
_PATH = ("f:metadata", "f:annotations", f"f:{LAST_APPLIED}")
_JSON = {"content-type": "application/json"}
_STRICT = ("fieldValidation", "Strict")


class ApplyError(Exception):
    """A request was rejected. when: what kubectl was doing."""

    def __init__(self, error: ApiError, when: str) -> None:
        super().__init__(str(error))
        self.error = error
        self.when = when


class NoPatchError(Exception):
    """kubectl cannot compare the manifest with the object, and sends no request. The text says why."""


class KubectlApply(msgspec.Struct):
    """Applies objects of one kind. node: the type of a built-in kind; None for a custom one."""

    client: Client
    served: ServedResource
    node: Node | None

    async def live(self, namespace: str, name: str) -> Doc | None:
        """The object, or None. Raises ApplyError."""
        try:
            return await self.client.get_doc(self.served.partial(), namespace, name)
        except NotFound:
            return None
        except ApiError as error:
            raise ApplyError(error, "retrieving current configuration") from None

    async def client_side(self, namespace: str, name: str, doc: Doc, live: Doc | None) -> Doc:
        """Create the object, or send the three-way merge as a patch. Returns what it is then. Raises ApplyError and
        NoPatchError."""
        wanted = _annotated(doc, namespace)
        query = (("fieldManager", CLIENT_SIDE), _STRICT)
        if live is None:
            body = codec.encode(_created(wanted))
            return await self._send(Request("POST", self.served.gvr.path(namespace), query, _JSON, body), "creating")
        if patch := self._patch(last_applied(live), wanted, live):
            headers = {"content-type": MERGE if self.node is None else STRATEGIC_MERGE}
            path = self.served.gvr.path(namespace, name)
            return await self._send(Request("PATCH", path, query, headers, codec.encode(patch)), "patching")
        return live

    def _patch(self, original: Doc, wanted: Doc, live: Doc) -> Doc:
        try:
            if self.node is None:
                return merge_patch(original, wanted, live)
            return strategic_patch(self.node, original, wanted, live)
        except StrategicError as error:
            raise NoPatchError(str(error)) from None

    async def server_side(self, namespace: str, name: str, doc: Doc, *, force: bool) -> Doc:
        """Apply the object, and take over what client-side applies own. Returns what it is then. Raises ApplyError."""
        doc = _placed(doc, namespace)
        applied = await self._apply(namespace, name, doc, SERVER_SIDE, force=force)
        if LAST_APPLIED in nested_map(applied, "metadata", "annotations") and not any(_owners(applied, "Apply")):
            applied = await self._apply(namespace, name, _only_annotation(applied), ANNOTATION, force=False)
        if await self._migrate(namespace, name, applied):
            return await self._apply(namespace, name, doc, SERVER_SIDE, force=force)
        return applied

    async def _migrate(self, namespace: str, name: str, applied: Doc | None) -> bool:
        """Take over the fields of client-side applies. Returns whether there were any. As for kubectl, it is no error
        if others keep changing the object meanwhile."""
        path, query = self.served.gvr.path(namespace, name), (("fieldManager", SERVER_SIDE),)
        for _ in range(MOST_TRIES):
            entries = taken_over(applied) if applied is not None else None
            if entries is None:
                return False
            version = nested_map(applied, "metadata").get("resourceVersion")
            patch = [
                {"op": "replace", "path": "/metadata/managedFields", "value": entries},
                {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
            ]
            try:
                await self.client.call(Request("PATCH", path, query, {"content-type": JSON_PATCH}, codec.encode(patch)))
                return True
            except ApiError:
                applied = await self.live(namespace, name)
        return False

    async def _apply(self, namespace: str, name: str, doc: Doc, manager: str, *, force: bool) -> Doc:
        query = (("fieldManager", manager), ("force", "true" if force else "false"), _STRICT)
        path = self.served.gvr.path(namespace, name)
        return await self._send(Request("PATCH", path, query, {"content-type": APPLY}, codec.encode(doc)), "applying")

    async def _send(self, request: Request, when: str) -> Doc:
        try:
            return codec.decode_doc(await self.client.call(request))
        except ApiError as error:
            raise ApplyError(error, when) from None


def is_server_side(live: Doc | None) -> bool:
    """Whether kubectl has applied the object server-side."""
    entries = nested_list(live, "metadata", "managedFields")
    return any(
        isinstance(one, dict) and one.get("manager") == SERVER_SIDE and one.get("operation") == "Apply"
        for one in entries
    )


def last_applied(live: Doc) -> Doc:
    """The manifest that was applied client-side last; empty if the object has none. Raises NoPatchError for a text that
    is none."""
    text = nested_map(live, "metadata", "annotations").get(LAST_APPLIED)
    if not isinstance(text, str) or text.strip() in ("", "null"):
        return {}
    try:
        return codec.decode_doc(text)
    except codec.DecodeError:
        raise NoPatchError(f"the annotation {LAST_APPLIED} of the object is an invalid JSON document") from None


def taken_over(doc: Doc) -> list[Doc] | None:
    """The object's managedFields after fields of client-side applies were given to kubectl's server-side ones; None if
    there are none. The managers are those that own the last-applied annotation."""
    entries: list[Any] = nested_list(doc, "metadata", "managedFields")
    before = [one for one in entries if isinstance(one, dict)]
    managers = {str(one.get("manager")) for one in _owners(doc, "Update")}
    kept = before
    for manager in sorted(managers):
        kept = _upgraded(kept, manager)
    return kept if kept != before else None


def _upgraded(entries: list[Doc], manager: str) -> list[Doc]:
    def updates(one: Doc) -> bool:
        return (one.get("manager"), one.get("operation")) == (manager, "Update") and not one.get("subresource")

    def applies(one: Doc) -> bool:
        return (one.get("manager"), one.get("operation")) == (SERVER_SIDE, "Apply") and not one.get("subresource")

    target = next((one for one in entries if applies(one)), None) or next(filter(updates, entries), None)
    if target is None:
        return entries
    fields = nested_map(target, "fieldsV1")
    for one in entries:
        if updates(one) and one.get("apiVersion") == target.get("apiVersion"):
            fields = union(fields, nested_map(one, "fieldsV1"))
            break
    whole: Doc = {**target, "manager": SERVER_SIDE, "operation": "Apply", "fieldsV1": fields}
    return [whole if one is target else one for one in entries if one is target or not updates(one)]


def _owners(doc: Doc, operation: str) -> Iterator[Doc]:
    """The managers that own the last-applied annotation."""
    for one in nested_list(doc, "metadata", "managedFields"):
        if isinstance(one, dict) and one.get("operation") == operation:
            *above, last = _PATH
            if last in nested_map(one, "fieldsV1", *above):
                yield one


def _placed(doc: Doc, namespace: str) -> Doc:
    """The manifest with its namespace; of a kind that has none, without one."""
    metadata: Doc = {name: value for name, value in nested_map(doc, "metadata").items() if name != "namespace"}
    return {**doc, "metadata": {**metadata, "namespace": namespace} if namespace else metadata}


def _created(doc: Doc) -> Doc:
    """The body of a creation: without nulls, and without the version of the object that was exported."""
    found: Doc = without_nulls(doc)
    nested_map(found, "metadata").pop("resourceVersion", None)
    return found


def _annotated(doc: Doc, namespace: str) -> Doc:
    """The manifest with itself in the last-applied annotation."""
    doc = _placed(doc, namespace)
    metadata = nested_map(doc, "metadata")
    given = nested_map(metadata, "annotations")
    notes: Doc = {name: "" if text is None else text for name, text in given.items() if name != LAST_APPLIED}
    plain: Doc = {**doc, "metadata": {**metadata, "annotations": notes}}
    recorded = codec.encode_sorted(plain).decode() + "\n"
    return {**doc, "metadata": {**metadata, "annotations": {**notes, LAST_APPLIED: recorded}}}


def _only_annotation(doc: Doc) -> Doc:
    before = nested_map(doc, "metadata")
    metadata: Doc = {name: before[name] for name in ("name", "namespace") if name in before}
    metadata["annotations"] = {LAST_APPLIED: nested_map(before, "annotations")[LAST_APPLIED]}
    return {"apiVersion": doc.get("apiVersion"), "kind": doc.get("kind"), "metadata": metadata}


def without_nulls(value: Any) -> Any:
    """A value without members that are null."""
    if isinstance(value, dict):
        return {name: without_nulls(one) for name, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value
