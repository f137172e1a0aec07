"""Exports spans by OTLP over gRPC, with OpenTelemetry's SDK. Imported only where --tracing-config-file is given.

Nothing here waits: the SDK's thread takes spans from a bounded queue. What finds no room in it, and what the collector
does not take, is counted and lost. As in other components of Kubernetes, the connection has no TLS, and what the file
does not say the SDK reads from its environment variables (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS,
OTEL_BSP_SCHEDULE_DELAY).

upstream: staging/src/k8s.io/component-base/tracing/utils.go#NewProvider
"""

import asyncio
import logging
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Link as SdkLink
from opentelemetry.trace import NonRecordingSpan, SpanKind, Status, StatusCode, TraceFlags, set_span_in_context
from opentelemetry.trace import SpanContext as SdkContext

from kcm_cli.component import threads
from kcm_cli.component.metrics import Counter, Registry
from kcm_cli.component.metrics.spans import EXPORTED, FAILED, FULL, span_counters
from kcm_cli.component.tracing_config import TracingConfig
from kcm_cli.component.version import OWN_VERSION
from kcm_cli.manager.running import MANAGER
from kcm_cli.runtime.spans import WRITE, Span, SpanContext

log = logging.getLogger(__name__)

QUEUE = 4096
"""Spans that wait to be sent, at most."""
BATCH = 512
SCOPE = "kcm_cli"
_SDK = "opentelemetry.exporter.otlp.proto.grpc.exporter"


class Tracing:
    """Spans on their way. ``export`` is used from one thread."""

    def __init__(
        self, config: TracingConfig, registry: Registry, instance: str, exporter: SpanExporter | None = None
    ) -> None:
        """instance: of this process, as its lease names it. exporter: another one than OTLP's, for tests."""
        self._counts = span_counters(registry)
        self._exporter = _Counted(exporter or OTLPSpanExporter(config.target or None, insecure=True), self._counts)
        resource = {"service.name": MANAGER, "service.instance.id": instance, "service.version": OWN_VERSION}
        self._ids = _GivenIds()
        self._provider = TracerProvider(
            sampler=ALWAYS_ON,  # what is exported has been chosen
            resource=Resource.create(resource),
            shutdown_on_exit=False,
            id_generator=self._ids,
        )
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter, QUEUE, max_export_batch_size=BATCH))
        self._tracer = self._provider.get_tracer(SCOPE, OWN_VERSION)
        self._submitted = 0

    @property
    def _waiting(self) -> int:
        return self._submitted - self._exporter.taken

    def export(self, span: Span) -> None:
        """Send it later, or count it as lost."""
        if self._waiting >= QUEUE:
            self._counts[FULL].inc()
            return
        self._ids.given = span.context
        made = self._tracer.start_span(
            span.name,
            Context() if span.parent is None else set_span_in_context(NonRecordingSpan(_sdk(span.parent)), Context()),
            SpanKind.CLIENT if span.kind == WRITE else SpanKind.INTERNAL,
            span.attributes,
            [SdkLink(_sdk(link.to), {"kcm.link": link.why}) for link in span.links],
            _ns(span.start),
        )
        if span.error:
            made.set_attribute("error.type", span.error)
            made.set_status(Status(StatusCode.ERROR, span.error))
        self._submitted += made.is_recording()  # it is not with OTEL_SDK_DISABLED
        made.end(_ns(span.end))

    async def stop(self, timeout_s: float) -> None:
        """Send what waits, for so long at most. Without a thread to do it, nothing is sent."""
        ended: Future[None] = Future()

        def flush() -> None:
            self._provider.shutdown()
            ended.set_result(None)

        # not an executor's thread, which would be waited for at the end of the process
        thread, why = threading.Thread(target=flush, name="last spans", daemon=True), {}
        try:
            threads.start(thread)
        except OSError as error:
            why = {"err": str(error)}
        else:
            await asyncio.wait([asyncio.wrap_future(ended)], timeout=timeout_s)
        if lost := self._waiting + self._exporter.failed_since_success:
            log.info("Spans were not exported", extra={"fields": {"spans": lost, **why}})


class _Counted(SpanExporter):
    """Counts what another exporter sends. It reports once that it fails, and once that it works again.

    taken: spans that it has got from the queue.
    """

    def __init__(self, inner: SpanExporter, counts: Mapping[str, Counter]) -> None:
        self._inner = inner
        self._counts = counts
        self.taken = 0
        self.failed_since_success = 0
        logging.getLogger(_SDK).addFilter(self._first)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.taken += len(spans)
        result = self._inner.export(spans)
        if result is SpanExportResult.SUCCESS:
            self._counts[EXPORTED].inc(len(spans))
            if self.failed_since_success:
                log.info("Spans are exported again", extra={"fields": {"lost": self.failed_since_success}})
            self.failed_since_success = 0
        else:
            self._counts[FAILED].inc(len(spans))
            self.failed_since_success += len(spans)
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()
        logging.getLogger(_SDK).removeFilter(self._first)

    def _first(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.ERROR and not self.failed_since_success


class _GivenIds(IdGenerator):
    """The ids of the span that is made next."""

    given = SpanContext(1, 1, sampled=True)

    def generate_span_id(self) -> int:
        return self.given.span

    def generate_trace_id(self) -> int:
        return self.given.trace


def _sdk(context: SpanContext) -> SdkContext:
    flags = TraceFlags(TraceFlags.SAMPLED if context.sampled else TraceFlags.DEFAULT)
    return SdkContext(context.trace, context.span, is_remote=False, trace_flags=flags)


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)
