"""Event.

Source: pkg/apis/core/validation, pkg/registry/core/event/strategy.go, pkg/printers/internalversion/printers.go.
"""

from kcm_cli.sandbox.apiserver.kinds.events.common import EVENTS, SELECTABLE
from kcm_cli.sandbox.apiserver.kinds.events.common import validate_event as events_validate_event
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.types import Errors, Tree


def validate_event(doc: Tree) -> Errors:
    """An event of core/v1."""
    return events_validate_event(doc, "reportingComponent")


def validate_event_update(new: Tree, old: Tree) -> Errors:
    return validate_event(new)


KIND = Kind(
    "",
    "events",
    strategy=Strategy(
        creates_on_update=True,
        check_create=validate_event,
        check_update=validate_event_update,
    ),
    table=EVENTS,
    selectable=SELECTABLE,
)
