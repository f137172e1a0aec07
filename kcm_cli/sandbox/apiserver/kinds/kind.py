"""What a kind is to the API server: everything that it has of its own, in one value.

Each built-in kind is one file of this package, ``GROUP/KIND.py``, with one ``KIND``. What is left out does nothing.
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

    defaults: fills in, in place, what a client left out; idempotent, and quantities are canonical afterwards.
    strategy: what happens around writes of the object and of its status.
    subresources: strategies of subresources with rules of their own (``finalize``, ``approval``, ``resize``).
    table: the columns of ``kubectl get``.
    selectable: the fields that a field selector may name.
    writable: which fields each path may own (``""`` the object's, ``status``, ``approval``...), where not the usual.
    """

    group: str
    resource: str
    defaults: Callable[[Tree], None] = nothing
    strategy: Strategy = msgspec.field(default_factory=Strategy)
    subresources: Mapping[str, Strategy] = msgspec.field(default_factory=dict)
    table: Layout = PLAIN
    selectable: Selectable = SELECTABLE_PLAIN
    writable: Mapping[str, Writable] = msgspec.field(default_factory=dict)
