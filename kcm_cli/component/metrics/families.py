"""Families of metrics as a scrape shows them: prometheus_client's, which is imported by the first scrape.

With it come an HTTP server, a WSGI server and the modules of email, which no start needs.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

Families = Iterable["Metric"]
"""What collectors return."""
Line = tuple[str, dict[str, str], float]
"""A series: its name, its labels, and its value."""


def family(name: str, text: str, kind: str, lines: Iterable[Line]) -> "Metric":
    """A family. kind: counter, gauge or histogram."""
    # imported here: see the module
    from prometheus_client.metrics_core import Metric

    made = Metric(name, text, kind)
    for line in lines:
        made.add_sample(*line)
    return made
