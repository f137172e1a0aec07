"""The objects that every cluster begins with."""

from collections.abc import Sequence
from typing import Protocol

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.rest.transport import Request, Response, Stream
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog
from kcm_cli.sandbox.apiserver.types import Tree, User

SYSTEM = User("system:apiserver", groups=("system:masters", "system:authenticated"))


class Server(Protocol):
    """What is needed of a server."""

    catalog: Catalog

    async def handle_as(self, user: User, request: Request) -> Response | Stream:
        """Answer a request."""


class BootstrapError(Exception):
    """An object that every cluster needs could not be made."""


async def create_missing(server: Server, documents: Sequence[Doc]) -> None:
    """Create what is not there. Raises BootstrapError."""
    for document in documents:
        doc: Tree = dict(document)
        served = server.catalog.by_kind(doc["apiVersion"], doc["kind"])
        if served is None:
            raise BootstrapError(f"nothing serves {doc['kind']} of {doc['apiVersion']}")
        path = served.info.gvr.path(doc["metadata"].get("namespace", ""))
        request = Request("POST", path, headers={"user-agent": "kube-apiserver/"}, body=codec.encode(doc))
        answer = await server.handle_as(SYSTEM, request)
        if isinstance(answer, Response) and answer.status not in (201, 409):
            raise BootstrapError(f"{path}: {answer.body.decode()}")
