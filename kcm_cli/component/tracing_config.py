"""The file of --tracing-config-file: a TracingConfiguration, as kube-apiserver's flag of this name reads.

upstream: staging/src/k8s.io/component-base/tracing/api/v1, staging/src/k8s.io/apiserver/pkg/server/options/tracing.go
"""

import json
from collections.abc import Iterator

from kcm_cli.component.options import OptionGroup, option
from kcm_cli.component.value_types import INT32, STRING

ALL = 1_000_000
_SCHEMES = ("dns", "unix", "unix-abstract")
_WITHOUT_SLASHES = tuple(f"{scheme}:" for scheme in _SCHEMES)
_CONTROL = range(33)


class TracingConfig(OptionGroup):
    """Where spans are sent, and of how many traces.

    endpoint: as gRPC names it, ``host:port`` or a URL of one of three schemes; "" for OTLP's default, localhost:4317 or
    what OTEL_EXPORTER_OTLP_ENDPOINT says. rate: of a million traces; 0 for none.
    """

    endpoint: str = option(STRING, "", key="endpoint", help="Address of the collector: OTLP over gRPC, without TLS.")
    rate: int = option(
        INT32,
        0,
        key="samplingRatePerMillion",
        minimum=0,
        maximum=ALL,
        help="How many of a million traces are exported.",
    )

    def problems(self) -> Iterator[str]:
        problem = _problem(self.endpoint)
        if problem:
            yield f"endpoint {problem}, but got {json.dumps(self.endpoint)}"

    def warnings(self) -> Iterator[str]:
        """What to log at the start."""
        if not self.rate:
            yield (
                "tracing-config-file: samplingRatePerMillion is not set, so that no span is exported, as in other "
                f"components of Kubernetes: {ALL} exports all traces"
            )

    @property
    def target(self) -> str:
        """The endpoint in the form in which the SDK passes it on to gRPC unchanged, which takes URLs apart itself."""
        scheme, url, rest = self.endpoint.partition("://")
        if not url:
            return self.endpoint
        return rest.lstrip("/") if scheme == "dns" else f"{scheme}:{rest}"


def _problem(endpoint: str) -> str:
    if any(ord(character) in _CONTROL for character in endpoint):
        return "must have no spaces"
    scheme, url, rest = endpoint.partition("://")
    if not url:
        return "" if not endpoint or endpoint.startswith(_WITHOUT_SLASHES) else _port_problem(endpoint)
    if scheme not in _SCHEMES:
        return "must be host:port, or begin with dns://, unix:// or unix-abstract:// (OTLP over gRPC, without TLS)"
    if scheme == "unix" and not rest.startswith("/"):
        return "must name a socket by its absolute path, as unix:///run/otel.sock"
    if scheme == "dns" and "/" in rest.lstrip("/"):
        return "must not name a DNS server: leave it out, as in dns:///host:port"
    return _port_problem(rest) if scheme == "dns" else ""


def _port_problem(address: str) -> str:
    """gRPC takes 443 where there is no port, on which no collector listens for this."""
    host, colon, port = address.strip("/").rpartition(":")
    valid = host and colon and port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536
    return "" if valid else "must have a port, as collector:4317"
