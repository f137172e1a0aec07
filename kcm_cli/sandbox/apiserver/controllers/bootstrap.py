"""Creates the objects that every cluster has from its start."""

from collections.abc import Sequence
from typing import Protocol

from kcm_cli.api.well_known import AUTHENTICATED, MASTERS
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.rest.errors import from_response
from kcm_cli.rest.transport import Request, Response, Stream
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.types import Tree, User

SYSTEM = User("system:apiserver", groups=(MASTERS, AUTHENTICATED))


class Server(Protocol):
    """An ``ApiServer``."""

    catalog: Catalog
    core: Core

    async def handle_as(self, user: User, request: Request) -> Response | Stream:
        """See ``ApiServer.handle_as``."""


class BootstrapError(Exception):
    """An object could not be created or updated."""


async def create_missing(server: Server, documents: Sequence[Doc]) -> None:
    """Create missing objects, and update those with the server's address, port and CA. Raises BootstrapError."""
    for document in documents:
        doc: Tree = dict(document)
        served = server.catalog.by_kind(doc["apiVersion"], doc["kind"])
        if served is None:
            raise BootstrapError(f"{doc['kind']} of {doc['apiVersion']} is not served")
        gvr, namespace, name = served.info.gvr, doc["metadata"].get("namespace", ""), doc["metadata"]["name"]
        method, path = "POST", gvr.path(namespace)
        if (known := server.core.store.get(served.storage, namespace, name)) is not None:
            if not _outdated(doc, known.doc):
                continue
            method, path, doc = "PUT", gvr.path(namespace, name), _renewed(doc, known.copy())
        request = Request(method, path, _QUERIES.get(doc["kind"], ()), HEADERS, codec.encode(doc))
        answer = await server.handle_as(SYSTEM, request)
        if isinstance(answer, Response) and answer.status not in (200, 201, 409):
            raise BootstrapError(f"{path}: {from_response(answer)}")


HEADERS = {"user-agent": "kube-apiserver/", "content-type": "application/json"}
FLOWS = (("fieldManager", "api-priority-and-fairness-config-producer-v1"),)
_QUERIES = {"FlowSchema": FLOWS, "PriorityLevelConfiguration": FLOWS}
_OF_THIS_START: dict[tuple[str, str], tuple[str, ...]] = {
    ("Endpoints", "kubernetes"): ("subsets",),
    ("EndpointSlice", "kubernetes"): ("endpoints", "ports"),
    ("ConfigMap", "extension-apiserver-authentication"): ("data",),
}
"""Fields that differ from start to start (addresses, the port, the CA), by kind and name."""


TRACKING = "kube-apiserver-legacy-service-account-token-tracking"
"""A ConfigMap with the date of the first start."""


def _of_this_start(doc: Tree) -> tuple[str, ...]:
    return _OF_THIS_START.get((doc["kind"], doc["metadata"]["name"]), ())


def _outdated(doc: Tree, known: Tree) -> bool:
    return any(doc.get(field) != known.get(field) for field in _of_this_start(doc))


def _renewed(doc: Tree, known: Tree) -> Tree:
    return known | {field: doc[field] for field in _of_this_start(doc) if field in doc}
