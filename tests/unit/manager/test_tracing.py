"""Spans on their way to a collector, which may be slow, or away."""

import asyncio
import logging
import threading
from collections.abc import Sequence

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from kcm_cli.component.metrics import Registry
from kcm_cli.component.tracing_config import ALL, TracingConfig
from kcm_cli.manager import tracing
from kcm_cli.manager.tracing import QUEUE, Tracing
from kcm_cli.runtime.spans import FURTHER, SYNC, WRITE, Link, Span, SpanContext
from tests.kit.controlling import metric

pytestmark = pytest.mark.real_time
PARENT = SpanContext(0xABC, 0x1, sampled=True)
WRITTEN = Span(
    WRITE,
    "create pods",
    SpanContext(0xABC, 0x2, sampled=True),
    PARENT,
    1.5,
    2.25,
    {"kcm.reason": "too few replicas", "http.response.status_code": 403},
    (Link(SpanContext(0xDEF, 0x3, sampled=True), FURTHER),),
    "Forbidden: exceeded quota q",
)


class Collector(SpanExporter):
    """Takes spans while it is open."""

    def __init__(self, *, takes: bool = True) -> None:
        self.spans: list[ReadableSpan] = []
        self.takes, self.open = takes, threading.Event()
        self.open.set()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.open.wait(60)
        if self.takes:
            self.spans += spans
        return SpanExportResult.SUCCESS if self.takes else SpanExportResult.FAILURE


def exported(metrics: Registry) -> dict[str, float]:
    found = {result: metric(metrics, "kcm_trace_spans_total", result=result) for result in ("exported", "failed")}
    return found | {"full": metric(metrics, "kcm_trace_spans_total", result="queue_full")}


async def test_a_span_is_sent_with_the_ids_that_it_has() -> None:
    collector, metrics = Collector(), Registry()
    exporting = Tracing(TracingConfig(rate=ALL), metrics, "host_1", collector)
    exporting.export(WRITTEN)
    exporting.export(Span(SYNC, "c sync", PARENT, None, 1.0, 3.0, {}))
    await exporting.stop(30)
    write, sync = collector.spans
    assert write.context is not None and write.parent is not None and sync.context is not None
    assert (write.context.trace_id, write.context.span_id, write.parent.span_id) == (0xABC, 0x2, 0x1)
    assert (sync.context.trace_id, sync.context.span_id, sync.parent) == (0xABC, 0x1, None)
    assert (write.name, write.start_time, write.end_time) == ("create pods", 1_500_000_000, 2_250_000_000)
    assert (write.kind.name, sync.kind.name) == ("CLIENT", "INTERNAL")
    assert write.attributes == {**WRITTEN.attributes, "error.type": WRITTEN.error}
    assert (write.status.status_code.name, write.status.description) == ("ERROR", WRITTEN.error)
    assert sync.status.status_code.name == "UNSET"
    (link,) = write.links
    assert (link.context.trace_id, link.context.span_id, link.attributes) == (0xDEF, 0x3, {"kcm.link": FURTHER})
    about = dict(write.resource.attributes)
    assert (about["service.name"], about["service.instance.id"]) == ("kube-controller-manager", "host_1")
    assert exported(metrics) == {"exported": 2, "failed": 0, "full": 0}


async def test_a_collector_that_takes_nothing_costs_counted_spans(caplog: pytest.LogCaptureFixture) -> None:
    collector, metrics = Collector(takes=False), Registry()
    exporting = Tracing(TracingConfig(rate=ALL), metrics, "host_1", collector)
    exporting.export(WRITTEN)
    with caplog.at_level(logging.INFO):
        await exporting.stop(30)
    assert exported(metrics) == {"exported": 0, "failed": 1, "full": 0}
    assert [vars(record)["fields"] for record in caplog.records] == [{"spans": 1}]


async def test_a_collector_that_hangs_holds_neither_the_loop_nor_the_end() -> None:
    collector, metrics = Collector(), Registry()
    collector.open.clear()
    exporting = Tracing(TracingConfig(rate=ALL), metrics, "host_1", collector)
    for _ in range(QUEUE + tracing.BATCH + 7):
        exporting.export(WRITTEN)
    lost = exported(metrics)["full"]
    assert 7 <= lost <= 7 + tracing.BATCH  # the thread may have taken a batch, or not yet
    loop = asyncio.get_running_loop()
    before = loop.time()
    await exporting.stop(0.1)
    assert loop.time() - before < 30  # it does not wait for the collector
    collector.open.set()


async def test_spans_are_lost_where_no_thread_can_start(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def none_left(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    exporting = Tracing(TracingConfig(rate=ALL), Registry(), "host_1", collector := Collector())
    exporting.export(WRITTEN)
    with monkeypatch.context() as limited, caplog.at_level(logging.INFO):
        limited.setattr(threading.Thread, "start", none_left)
        await exporting.stop(30)
    (record,) = caplog.records
    assert vars(record)["fields"] == {"spans": 1, "err": "[Errno 11] can't start new thread"}
    await exporting.stop(30)
    assert len(collector.spans) == 1


async def test_an_outage_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    collector, metrics = Collector(), Registry()
    exporter = Tracing(TracingConfig(rate=ALL), metrics, "host_1", collector)._exporter
    sdk = logging.getLogger(tracing._SDK)
    with caplog.at_level(logging.INFO):
        for takes in (True, False, False, True, False):
            collector.takes = takes
            if not takes:
                sdk.error("Failed to export traces")
                sdk.warning("Transient error")
            exporter.export(())
            exporter.export([WRITTEN] if takes else [WRITTEN, WRITTEN])  # type: ignore[list-item]  # it counts them
    assert [record.getMessage() for record in caplog.records] == [
        "Failed to export traces",
        "Spans are exported again",
        "Failed to export traces",
    ]
    exporter.shutdown()
