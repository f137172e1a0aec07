"""PriorityLevelConfiguration.

Source: pkg/apis/flowcontrol/v1/defaults.go, pkg/apis/flowcontrol/validation,
pkg/registry/flowcontrol/prioritylevelconfiguration/strategy.go, pkg/printers/internalversion/printers.go.
"""

import math
from datetime import datetime

from kcm_cli.sandbox.apiserver.apply.resets import SPEC_AND_METADATA
from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.kinds.flowcontrol import common
from kcm_cli.sandbox.apiserver.kinds.flowcontrol.common import (
    ENTROPY_MAX,
    QUEUES_MAX,
    validate_conditions,
    validate_fixed,
)
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, created, name_of
from kcm_cli.sandbox.apiserver.tables.templates import NONE
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, metadata

_PRESERVE = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"


def validate_level(doc: Tree) -> Errors:
    meta, spec = doc["metadata"], doc.get("spec") or {}
    yield from metadata.validate_meta(meta, False, metadata.subdomain)
    if _PRESERVE in (meta.get("annotations") or ()):
        yield errors.forbidden("metadata.annotations", f"annotation '{_PRESERVE}' is forbidden")
    kind, limited, exempt = spec.get("type", ""), spec.get("limited"), spec.get("exempt")
    if (meta.get("name") == "exempt") != (kind == "Exempt"):
        yield errors.invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'")
    if kind == "Exempt":
        if limited is not None:
            yield errors.forbidden("spec.limited", "must be nil if the type is not Limited")
        if exempt is not None:
            yield from _shares(exempt, "spec.exempt")
    elif kind == "Limited":
        if exempt is not None:
            yield errors.forbidden("spec.exempt", "must be nil if the type is Limited")
        if limited is None:
            yield errors.required("spec.limited", "must not be empty when type is Limited")
        else:
            yield from _limited(limited, "spec.limited")
    else:
        yield errors.not_supported("spec.type", kind, ("Exempt", "Limited"))
    yield from validate_fixed(meta.get("name", ""), "PriorityLevelConfiguration", spec)
    yield from validate_conditions(doc)


def validate_level_update(new: Tree, old: Tree) -> Errors:
    return validate_level(new)


def _shares(level: Tree, path: str) -> Errors:
    shares = level.get("nominalConcurrencyShares")
    if shares is not None and shares < 0:
        place = f"{path}.nominalConcurrencyShares"
        yield errors.invalid(place, shares, "must be a non-negative integer")
    yield from _lendable(level, path)


def _lendable(level: Tree, path: str) -> Errors:
    percent = level.get("lendablePercent")
    if percent is None or 0 <= percent <= 100:
        return []
    return [errors.invalid(f"{path}.lendablePercent", percent, "must be between 0 and 100, inclusive")]


def _limited(level: Tree, path: str) -> Errors:
    shares, response = level.get("nominalConcurrencyShares"), level.get("limitResponse") or {}
    if shares is not None and shares < 0:
        place = f"{path}.nominalConcurrencyShares"
        yield errors.invalid(place, shares, "must be a non-negative integer")
    yield from _response(response, f"{path}.limitResponse")
    yield from _lendable(level, path)
    borrowing = level.get("borrowingLimitPercent")
    if borrowing is not None and borrowing < 0:
        yield errors.invalid(f"{path}.borrowingLimitPercent", borrowing, "if specified, must be a non-negative integer")


def _response(response: Tree, path: str) -> Errors:
    kind, queuing = response.get("type", ""), response.get("queuing")
    if kind == "Reject":
        if queuing is None:
            return []
        return [errors.forbidden(f"{path}.queuing", "must be nil if limited.limitResponse.type is not Limited")]
    if kind != "Queue":
        return [errors.not_supported(f"{path}.type", kind, ("Queue", "Reject"))]
    if queuing is None:
        return [errors.required(f"{path}.queuing", "must not be empty if limited.limitResponse.type is Limited")]
    return _queuing(queuing, f"{path}.queuing")


def _queuing(queuing: Tree, path: str) -> Errors:
    queues, hand = queuing.get("queues", 0), queuing.get("handSize", 0)
    for field in ("queueLengthLimit", "queues"):
        if queuing.get(field, 0) <= 0:
            yield errors.invalid(f"{path}.{field}", queuing.get(field, 0), "must be positive")
    if queues > QUEUES_MAX:
        yield errors.invalid(f"{path}.queues", queues, f"must not be greater than {QUEUES_MAX}")
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


_LIMITED = (("nominalConcurrencyShares", 30), ("lendablePercent", 0))
_EXEMPT = (("nominalConcurrencyShares", 0), ("lendablePercent", 0))
_QUEUING = (("handSize", 8), ("queues", 64), ("queueLengthLimit", 50))


def _defaults(doc: Tree) -> None:
    spec = doc.setdefault("spec", {})
    if (limited := spec.get("limited")) is not None:
        fill.absent(limited, _LIMITED)
        if (queuing := fill.made(limited, "limitResponse").get("queuing")) is not None:
            fill.empty(queuing, _QUEUING)
    if (exempt := spec.get("exempt")) is not None:
        fill.absent(exempt, _EXEMPT)


def _cells(doc: Tree, now: datetime) -> list[object]:
    spec = doc.get("spec") or {}
    limited = spec.get("limited")
    queuing = ((limited or {}).get("limitResponse") or {}).get("queuing")
    queues = [NONE] * 3 if queuing is None else [queuing.get(f, 0) for f in ("queues", "handSize", "queueLengthLimit")]
    shares = NONE if limited is None else limited.get("nominalConcurrencyShares")
    return [name_of(doc), spec.get("type", ""), shares, *queues, created(doc, now)]


KIND = Kind(
    "flowcontrol.apiserver.k8s.io",
    "prioritylevelconfigurations",
    defaults=_defaults,
    strategy=Strategy(
        namespaced=False,
        on_create=parts.new_with_status({}, generation=True),
        on_update=parts.spec_update,
        on_status=common.whole_metadata_status,
        check_create=validate_level,
        check_update=validate_level_update,
        check_status=common.validate_status,
    ),
    table=Layout(
        (
            NAME,
            Column("Type", "PriorityLevelConfigurationSpec.type"),
            Column("NominalConcurrencyShares", "LimitedPriorityLevelConfiguration.nominalConcurrencyShares"),
            Column("Queues", "QueuingConfiguration.queues"),
            Column("HandSize", "QueuingConfiguration.handSize"),
            Column("QueueLengthLimit", "QueuingConfiguration.queueLengthLimit"),
            AGE,
        ),
        _cells,
    ),
    writable={"status": SPEC_AND_METADATA},
)
