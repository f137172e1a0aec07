"""The Prometheus text format 0.0.4, written as the Go library writes it.

Differences from prometheus_client's writer, each of which dashboards or tests would see: a counter's name
is left as it is (no forced ``_total``), there are no ``_created`` series, numbers have Go's spelling,
families come sorted by name and families without series are left out.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kcm_cli.component.metrics.families import Families
from kcm_cli.machinery.go_floats import go_float

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"


def expose(families: Families) -> bytes:
    """The text of a scrape."""
    lines: list[str] = []
    for family in sorted(families, key=lambda metric: metric.name):
        lines.extend(_family_lines(family))
    return "".join(lines).encode()


def _family_lines(family: "Metric") -> Iterator[str]:
    if not family.samples:
        return
    name = _header_name(family)
    yield f"# HELP {name} {_escape(family.documentation)}\n"
    yield f"# TYPE {name} {'untyped' if family.type == 'unknown' else family.type}\n"
    for sample in family.samples:
        labels = _labels(sample.labels) if sample.labels else ""
        yield f"{sample.name}{labels} {go_float(sample.value)}\n"


def _header_name(family: "Metric") -> str:
    """prometheus_client's own counters carry their ``_total`` on the sample only."""
    return family.samples[0].name if family.type == "counter" else family.name


def _labels(labels: dict[str, str]) -> str:
    """Sorted by name, ``le`` last."""
    names = sorted(labels, key=lambda name: (name == "le", name))
    return "{" + ",".join(f'{name}="{_escape_value(labels[name])}"' for name in names) + "}"


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _escape_value(text: str) -> str:
    return _escape(text).replace('"', r"\"")
