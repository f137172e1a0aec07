"""The Prometheus text format 0.0.4, written as the Go library writes it.

Differences from prometheus_client's writer, each of which dashboards or tests would see: a counter's name
is left as it is (no forced ``_total``), there are no ``_created`` series, numbers have Go's spelling,
families come sorted by name and families without series are left out.
"""

from collections.abc import Iterable, Iterator
from decimal import Decimal

from prometheus_client.metrics_core import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
_PLAIN_EXPONENTS = range(-4, 6)


def go_float(value: float) -> str:
    """A number as Go's strconv writes it with format 'g' and the fewest exact digits.

    Examples: 0.005, 1e-08, 3.1104e+07.
    """
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    if -1e6 < value < 1e6 and value == int(value):
        return str(int(value))
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    point = len(digits) + exponent - 1
    if point in _PLAIN_EXPONENTS:
        return repr(value)
    text = "".join(map(str, digits))
    mantissa = f"{text[0]}.{text[1:]}" if len(text) > 1 else text
    return f"{'-' if sign else ''}{mantissa}e{point:+03d}"


def expose(families: Iterable[Metric]) -> bytes:
    """The text of a scrape."""
    lines: list[str] = []
    for family in sorted(families, key=lambda metric: metric.name):
        lines.extend(_family_lines(family))
    return "".join(lines).encode()


def _family_lines(family: Metric) -> Iterator[str]:
    if not family.samples:
        return
    name = _header_name(family)
    yield f"# HELP {name} {_escape(family.documentation)}\n"
    yield f"# TYPE {name} {'untyped' if family.type == 'unknown' else family.type}\n"
    for sample in family.samples:
        labels = _labels(sample.labels) if sample.labels else ""
        yield f"{sample.name}{labels} {go_float(sample.value)}\n"


def _header_name(family: Metric) -> str:
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
