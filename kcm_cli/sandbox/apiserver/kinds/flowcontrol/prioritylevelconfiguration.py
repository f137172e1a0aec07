"""PriorityLevelConfiguration.

upstream: pkg/apis/flowcontrol/v1/defaults.go, pkg/apis/flowcontrol/validation,
pkg/registry/flowcontrol/prioritylevelconfiguration/strategy.go, pkg/printers/internalversion/printers.go
"""

import math

from msgspec.structs import replace

from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.kinds.flowcontrol import common
from kcm_cli.sandbox.apiserver.kinds.flowcontrol.common import (
    ENTROPY_MAX,
    QUEUES_MAX,
    validate_fixed,
    validate_status,
)
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Cell, Column, at, layout, of_field, shown
from kcm_cli.sandbox.apiserver.tables.templates import NONE
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, rules

_PRESERVE = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"


def _check(doc: Tree, old: Tree | None) -> Errors:
    meta, spec = doc["metadata"], doc.get("spec") or {}
    if _PRESERVE in (meta.get("annotations") or ()):
        yield errors.forbidden("metadata.annotations", f"annotation '{_PRESERVE}' is forbidden")
    kind = spec.get("type", "")
    if (meta.get("name") == "exempt") != (kind == "Exempt"):
        yield errors.invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'")
    yield from _LEVELS(spec, "spec")
    yield from validate_fixed(meta.get("name", ""), "PriorityLevelConfiguration", spec)
    yield from validate_status(doc.get("status") or {}, "status")


def _hand(queuing: Tree, path: str) -> Errors:
    queues, hand = queuing.get("queues", 0), queuing.get("handSize", 0)
    if problem := _hand_problem(queues, hand):
        yield errors.invalid(f"{path}.handSize", hand, problem)


def _hand_problem(queues: int, hand: int) -> str:
    if hand <= 0:
        return "must be positive"
    if hand > queues:
        return f"should not be greater than queues ({queues})"
    if math.ceil(math.log2(queues) * hand) <= ENTROPY_MAX:
        return ""
    start = f"required entropy bits of deckSize {queues} and handSize {hand}"
    return f"{start} should not be greater than {ENTROPY_MAX}"


_POSITIVE = rules.at_least(1, "must be positive")
_FEW = rules.at_most(QUEUES_MAX, f"must not be greater than {QUEUES_MAX}")
_QUEUES = rules.fields(
    rules.always("queueLengthLimit", _POSITIVE, default=0),
    rules.always("queues", _POSITIVE, _FEW, default=0),
    _hand,
)
_SHARES = rules.optional("nominalConcurrencyShares", rules.at_least(0, "must be a non-negative integer"))
_LENDABLE = rules.optional("lendablePercent", rules.between(0, 100, "must be between 0 and 100, inclusive"))
_RESPONSES = {
    "Queue": rules.fields(
        rules.present("queuing", _QUEUES, detail="must not be empty if limited.limitResponse.type is Limited")
    ),
    "Reject": rules.fields(
        rules.forbidden("queuing", "must be nil if limited.limitResponse.type is not Limited", zero=False)
    ),
}
_LEVEL = rules.fields(
    _SHARES,
    rules.always("limitResponse", rules.by_value("type", _RESPONSES), default={}),
    _LENDABLE,
    rules.optional("borrowingLimitPercent", rules.at_least(0, "if specified, must be a non-negative integer")),
)
_BY_TYPE = {
    "Exempt": rules.fields(
        rules.forbidden("limited", "must be nil if the type is not Limited", zero=False),
        rules.optional("exempt", rules.fields(_SHARES, _LENDABLE)),
    ),
    "Limited": rules.fields(
        rules.forbidden("exempt", "must be nil if the type is Limited", zero=False),
        rules.present("limited", _LEVEL, detail="must not be empty when type is Limited"),
    ),
}
_LEVELS = rules.by_value("type", _BY_TYPE)


def _defaults(doc: Tree) -> None:
    spec = doc.setdefault("spec", {})
    if (limited := spec.get("limited")) is not None:
        fill.absent(limited, nominalConcurrencyShares=30, lendablePercent=0)
        fill.empty(fill.made(limited, "limitResponse").get("queuing"), handSize=8, queues=64, queueLengthLimit=50)
    fill.absent(spec.get("exempt"), nominalConcurrencyShares=0, lendablePercent=0)


def _queuing(name: str) -> tuple[str, Cell]:
    return f"QueuingConfiguration.{name}", at(f"spec.limited.limitResponse.queuing.{name}", NONE)


KIND = Kind(
    "flowcontrol.apiserver.k8s.io",
    "prioritylevelconfigurations",
    defaults=_defaults,
    strategy=replace(common.STRATEGY, check=_check),
    table=layout(
        NAME,
        Column("Type", *of_field("PriorityLevelConfiguration", "spec.type")),
        Column(
            "NominalConcurrencyShares",
            "LimitedPriorityLevelConfiguration.nominalConcurrencyShares",
            shown("spec.limited", NONE, lambda limited: limited.get("nominalConcurrencyShares")),
        ),
        Column("Queues", *_queuing("queues")),
        Column("HandSize", *_queuing("handSize")),
        Column("QueueLengthLimit", *_queuing("queueLengthLimit")),
        AGE,
    ),
)
