"""Options of /metrics."""

import re
from collections.abc import Iterator
from typing import ClassVar

from kcm_cli.component.options import OptionGroup, option
from kcm_cli.component.value_types import STRING, STRING_MAP, STRINGS
from kcm_cli.component.version import BINARY

_METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL_KEY = re.compile(_METRIC.pattern + r",[a-zA-Z_][a-zA-Z0-9_]*")


class MetricsConfig(OptionGroup):
    """Which metrics are shown, and with which values of their labels."""

    SECTION: ClassVar[str] = "Metrics"

    show_hidden_for_version: str = option(
        STRING,
        "",
        flag="show-hidden-metrics-for-version",
        help=(
            "Show the metrics that this release hid. Only the previous minor release can be named: "
            f"{BINARY.previous()}."
        ),
    )
    disabled: tuple[str, ...] = option(
        STRINGS,
        (),
        flag="disabled-metrics",
        help="Full names of metrics to disable. Overrides all other flags about metrics.",
    )
    allow_labels: tuple[tuple[str, str], ...] = option(
        STRING_MAP,
        (),
        flag="allow-metric-labels",
        help=(
            "Allowed values of a metric's label, as metric,label='v1,v2'; any other value is "
            'reported as "unexpected". May be repeated. Excludes --allow-metric-labels-manifest.'
        ),
    )
    allow_labels_manifest: str = option(
        STRING,
        "",
        flag="allow-metric-labels-manifest",
        help='YAML file with the same: {"metric,label": "v1,v2"}, or this under the key allowListMapping.',
    )

    def problems(self) -> Iterator[str]:
        shown = self.show_hidden_for_version
        if shown and shown != str(BINARY.previous()):
            yield f"show-hidden-metrics-for-version must be omitted or have the value '{BINARY.previous()}'"
        for name in self.disabled:
            if not _METRIC.fullmatch(name):
                yield f'disabled-metrics must be names of metrics, and "{name}" is none'
        if self.allow_labels and self.allow_labels_manifest:
            yield "allow-metric-labels and allow-metric-labels-manifest exclude each other"
        for key, _ in self.allow_labels:
            if not LABEL_KEY.fullmatch(key):
                yield f'allow-metric-labels must have keys of the form metric,label, and "{key}" is none'
