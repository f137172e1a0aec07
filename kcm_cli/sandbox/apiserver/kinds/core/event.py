"""Event.

upstream: pkg/apis/core/validation, pkg/registry/core/event/strategy.go, pkg/printers/internalversion/printers.go
"""

from kcm_cli.sandbox.apiserver.kinds.events.common import EVENTS, SELECTABLE, validate_event
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy

KIND = Kind(
    "",
    "events",
    strategy=Strategy(
        names=None,
        creates_on_update=True,
        propagation="Unsupported",
        check=lambda doc, old: validate_event(doc, "reportingComponent"),
    ),
    table=EVENTS,
    selectable=SELECTABLE,
)
