"""Where spans may be sent."""

import pytest

from kcm_cli.component.options import problems
from kcm_cli.component.tracing_config import TracingConfig


@pytest.mark.parametrize(
    ("endpoint", "target"),
    [
        ("", "localhost:4317"),
        ("collector:4317", "collector:4317"),
        ("[::1]:4317", "[::1]:4317"),
        ("dns://google.com:4317", "google.com:4317"),
        ("dns:///collector.observability.svc:4317", "collector.observability.svc:4317"),
        ("dns:collector:4317", "dns:collector:4317"),
        ("unix:///run/otel.sock", "unix:/run/otel.sock"),
        ("unix:/run/otel.sock", "unix:/run/otel.sock"),
        ("unix-abstract://otel", "unix-abstract:otel"),
    ],
)
def test_grpc_gets_the_endpoint(monkeypatch: pytest.MonkeyPatch, endpoint: str, target: str) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    config = TracingConfig(endpoint=endpoint, rate=1)
    assert problems(config) == []
    otlp = pytest.importorskip("opentelemetry.exporter.otlp.proto.grpc.trace_exporter")
    exporter = otlp.OTLPSpanExporter(config.target or None, insecure=True)
    assert exporter._endpoint == target
    exporter.shutdown()


@pytest.mark.parametrize(
    ("endpoint", "problem"),
    [
        ("http://collector:4317", "must be host:port, or begin with"),
        ("https://collector:4317", "must be host:port, or begin with"),
        ("://collector:4317", "must be host:port, or begin with"),
        ("collector", "must have a port"),
        ("collector:", "must have a port"),
        (":4317", "must have a port"),
        ("collector:otlp", "must have a port"),
        ("collector:0", "must have a port"),
        ("collector:65536", "must have a port"),
        ("collector:" + "9" * 5000, "must have a port"),
        ("dns:///collector", "must have a port"),
        ("dns://8.8.8.8/collector:4317", "must not name a DNS server"),
        ("unix://run/otel.sock", "absolute path"),
        ("a b:4317", "no spaces"),
        ("collector:4317\n", "no spaces"),
    ],
)
def test_an_endpoint_that_cannot_work_is_refused(endpoint: str, problem: str) -> None:
    (found,) = problems(TracingConfig(endpoint=endpoint, rate=1))
    assert found.startswith(f"endpoint {problem}") or problem in found


def test_a_rate_has_bounds() -> None:
    assert problems(TracingConfig(rate=-1)) == ["samplingRatePerMillion must not be less than 0, but got -1"]
    assert problems(TracingConfig(rate=1_000_001)) == [
        "samplingRatePerMillion must not be more than 1000000, but got 1000001"
    ]


def test_no_rate_is_warned_about() -> None:
    assert [*TracingConfig(rate=1).warnings()] == []
    (warning,) = TracingConfig().warnings()
    assert "samplingRatePerMillion" in warning and "1000000" in warning
