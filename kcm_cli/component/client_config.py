"""Options of the client of the API server."""

from collections.abc import Iterator
from typing import ClassVar

from kcm_cli.component.options import OptionGroup, option
from kcm_cli.component.value_types import FLOAT32, INT32, STRING
from kcm_cli.machinery.envelope import MEDIA_TYPE


class ClientConnectionConfig(OptionGroup):
    """Kubeconfig, content type and rate limits of clients."""

    SECTION: ClassVar[str] = "Generic"

    kubeconfig: str = option(
        STRING,
        "",
        flag="kubeconfig",
        key="kubeconfig",
        section="Misc",
        help=(
            "kubeconfig file with the address of the API server and the credentials. Without it, "
            "those of the pod are used."
        ),
    )
    accept_content_types: str = option(
        STRING,
        "",
        key="acceptContentTypes",
        help="Overrides contentType for lists and watches: protobuf if it is among these types, else JSON.",
    )
    content_type: str = option(
        STRING,
        MEDIA_TYPE,
        flag="kube-api-content-type",
        key="contentType",
        help=(
            "Content type of lists and watches. Protobuf is for kinds that have it and that kcm does not update; "
            "all else, and everything with another content type, is JSON."
        ),
    )
    qps: float = option(
        FLOAT32,
        20.0,
        flag="kube-api-qps",
        key="qps",
        unit="requests/s",
        help=("Requests per second that each client may send to the API server on average. Below 0: no limit."),
    )
    burst: int = option(
        INT32,
        30,
        flag="kube-api-burst",
        key="burst",
        unit="requests",
        help="Requests that each client may send at once, above --kube-api-qps.",
    )

    @property
    def protobuf(self) -> bool:
        """Whether to ask for protobuf."""
        return MEDIA_TYPE in (self.accept_content_types or self.content_type)

    def problems(self) -> Iterator[str]:
        if self.qps > 0 and self.burst <= 0:
            yield f"kube-api-burst must be greater than 0 where kube-api-qps is, but got {self.burst}"


class ServerAddressConfig(OptionGroup):
    """The API server's address, which overrides the kubeconfig's."""

    SECTION: ClassVar[str] = "Misc"

    master: str = option(
        STRING, "", flag="master", help="Address of the API server. Overrides the one in the kubeconfig."
    )
