"""A collector of spans: OTLP over gRPC, by OpenTelemetry's own definitions."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector(TraceServiceServicer):
    """Keeps the spans that it gets. by: of which services they are."""

    def __init__(self) -> None:
        self.port = 0
        self.spans: list[Span] = []
        self.by: set[str] = set()

    def Export(self, request: ExportTraceServiceRequest, context: Any) -> ExportTraceServiceResponse:
        for part in request.resource_spans:
            self.by.add(attributes(part.resource)["service.name"])
            for scope in part.scope_spans:
                self.spans.extend(scope.spans)
        return ExportTraceServiceResponse()

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    def only(self, name: str) -> Span:
        (found,) = self.named(name)
        return found


@contextmanager
def collecting(address: str = "127.0.0.1:0") -> Iterator[Collector]:
    """A collector that listens."""
    collector = Collector()
    server = grpc.server(ThreadPoolExecutor(2))
    add_TraceServiceServicer_to_server(collector, server)
    collector.port = server.add_insecure_port(address)
    server.start()
    try:
        yield collector
    finally:
        server.stop(None).wait()


def attributes(about: Any) -> dict[str, Any]:
    """Of a span, link or resource."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in about.attributes}
