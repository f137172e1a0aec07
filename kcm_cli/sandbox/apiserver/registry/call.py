"""A routed and authorized request to a resource."""

from collections.abc import Mapping

import msgspec

from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.apiserver.entrance import Asked
from kcm_cli.sandbox.apiserver.registry.catalog import Served
from kcm_cli.sandbox.apiserver.registry.media import Media
from kcm_cli.sandbox.apiserver.types import RequestInfo, ResourceInfo, User


class Call(msgspec.Struct):
    """One request to a resource.

    query: the first value of each parameter. hub: the resource in whose form objects are stored (mostly ``served``
    itself). rest: the path after the subresource. at: the revision that reads show; None: the latest. asked: the
    request as it was received.
    """

    request: Request
    info: RequestInfo
    served: Served
    hub: Served
    user: User
    query: Mapping[str, str]
    media: Media
    asked: Asked
    rest: str = ""
    at: int | None = None
    warnings: list[str] = msgspec.field(default_factory=list)

    @property
    def resource(self) -> ResourceInfo:
        return self.served.info

    @property
    def ruled(self) -> ResourceInfo:
        """The resource whose strategy applies. Events of both groups are stored alike, but each group has its own."""
        return self.hub.info if self.hub.info.custom else self.served.info

    @property
    def namespace(self) -> str:
        """The namespace of the objects; empty for cluster-scoped ones, including Namespaces."""
        return self.info.namespace if self.served.info.namespaced else ""

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def subresource(self) -> str:
        return self.info.subresource

    @property
    def content_type(self) -> str:
        return self.request.headers.get("content-type", "")
