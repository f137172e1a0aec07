"""All that is specific to a kind, in one value.

Each built-in kind is a file of this package, ``GROUP/KIND.py``, with one ``KIND``. The defaults do nothing.
"""

from collections.abc import Callable, Mapping

import msgspec

from kcm_cli.sandbox.apiserver.apply.resets import Writable
from kcm_cli.sandbox.apiserver.selectable import PLAIN as SELECTABLE_PLAIN
from kcm_cli.sandbox.apiserver.selectable import Selectable
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, nothing
from kcm_cli.sandbox.apiserver.tables.column import PLAIN, Layout
from kcm_cli.sandbox.apiserver.types import Tree


class Kind(msgspec.Struct, frozen=True):
    """One built-in kind.

    defaults: sets defaults in place, and makes quantities canonical. Idempotent.
    status_defaults: the part of them that a write of the status needs which leaves the spec as it is stored.
    strategy: preparation and validation of writes of the object and of its status.
    subresources: strategies of subresources with rules of their own (``finalize``, ``approval``, ``resize``).
    table: the columns of ``kubectl get``.
    selectable: the fields for field selectors.
    writable: the fields that writers of a subresource (``""``: of the object) can own, if not the usual ones.
    """

    group: str
    resource: str
    defaults: Callable[[Tree], None] = nothing
    status_defaults: Callable[[Tree], None] | None = None
    strategy: Strategy = msgspec.field(default_factory=Strategy)
    subresources: Mapping[str, Strategy] = msgspec.field(default_factory=dict)
    table: Layout = PLAIN
    selectable: Selectable = SELECTABLE_PLAIN
    writable: Mapping[str, Writable] = msgspec.field(default_factory=dict)
