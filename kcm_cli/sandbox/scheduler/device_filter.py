"""Filters nodes by the claims of one pod, and computes the writes for them.

upstream: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go
"""

import random

import msgspec

from kcm_cli.planning.node_affinity import selects
from kcm_cli.planning.resource_claims import is_reserved_for
from kcm_cli.sandbox.scheduler.compared import Compared
from kcm_cli.sandbox.scheduler.devices.allocator import Choice, Search, allocate
from kcm_cli.sandbox.scheduler.devices.binding import NotPrepared, is_prepared
from kcm_cli.sandbox.scheduler.devices.errors import NodeRefused
from kcm_cli.sandbox.scheduler.devices.extended import ExtendedClaim, extended_claim
from kcm_cli.sandbox.scheduler.devices.pools import Target
from kcm_cli.sandbox.scheduler.devices.results import Reservation, allocation_of
from kcm_cli.sandbox.scheduler.devices.state import DeviceState
from kcm_cli.sandbox.scheduler.devices.views import Claim
from kcm_cli.sandbox.scheduler.node_info import NodeInfo
from kcm_cli.sandbox.scheduler.podinfo import PodInfo
from kcm_cli.sandbox.scheduler.verdict import MAX_SCORE, Refusal, Scores

PLUGIN = "DynamicResources"
WEIGHT = 2
_ALTERNATIVES_MAX = 8
MOST_USERS = 256
"""A claim cannot be reserved for more pods."""
CANNOT = Refusal(PLUGIN, ("cannot allocate all claims",))
ELSEWHERE = Refusal(PLUGIN, ("resourceclaim not available on the node",))


STALE = Refusal(PLUGIN, ("cannot schedule extended resource claim",))


class _Variant(msgspec.Struct, frozen=True):
    """The search on nodes that lack the same of the pod's extended resources."""

    search: Search | None
    extended: ExtendedClaim | None


class DeviceFilter:
    """The filter for one pod.

    refusal: set if no node is feasible. away: claims whose devices are on other nodes. stale: a claim that an earlier
    attempt left. offered: the extended resources that a class provides.
    """

    def __init__(self, info: PodInfo, state: DeviceState) -> None:
        self._pod, self._state = info.pod, state
        self.refusal: Refusal | None = None
        self.away: dict[str, Claim] = {}
        self.offered = state.offered(info.requests)
        self.stale = state.extended_claim(info.pod) if self.offered else None
        self._choices: dict[str, list[Choice]] = {}
        self._variants: dict[tuple[str, ...], _Variant] = {}
        self._variant_on: dict[str, _Variant] = {}
        self._missing: list[Claim] = []
        found = state.claims_of(info.pod) if info.pod.spec.resource_claims else ()
        self._claims = () if isinstance(found, str) else found
        problem = found if isinstance(found, str) else self._problem()
        if problem:
            self.refusal = Refusal(PLUGIN, (problem,))
            return
        self._missing = [claim for claim in self._claims if claim.status.allocation is None]

    @property
    def used(self) -> bool:
        """Whether the pod has claims, or will get one."""
        return bool(self._claims or self.offered)

    def check(self, node: NodeInfo) -> Refusal | None:
        """The refusal of a node, or None. Raises AllocationError."""
        if self.stale is not None:
            return STALE
        variant = self._variant(node)
        away = [claim for claim in self._claims if not _reaches(claim, node) or self._has_failed(claim)]
        if variant.search is not None and node.name not in self._choices:
            try:
                choices = allocate(variant.search, Target(node.name, node.labels))
            except NodeRefused as error:
                return Refusal(PLUGIN, (str(error),))
            if choices is None:
                return CANNOT
            self._choices[node.name] = choices
            self._variant_on[node.name] = variant
        self.away.update((claim.uid, claim) for claim in away)
        return ELSEWHERE if away else None

    def reservations(self, node: str, rng: random.Random) -> tuple[Reservation, ...]:
        """The reservations to write for a node that passed the filter."""
        chosen = {choice.claim.uid: choice for choice in self._choices.get(node, ())}
        found: list[Reservation] = []
        for claim in self._claims:
            choice = chosen.get(claim.uid)
            if choice is not None:
                found.append(Reservation(claim, allocation_of(choice, node, rng)))
            elif not is_reserved_for(self._pod, claim.status.reserved_for, groups=False):
                found.append(Reservation(claim, None))
        variant = self._variant_on.get(node)
        if variant is not None and variant.extended is not None:
            made = variant.extended
            found.append(Reservation(made.claim, allocation_of(chosen[made.claim.uid], node, rng), made.mappings))
        return tuple(found)

    def _variant(self, node: NodeInfo) -> "_Variant":
        """The search for a node, including devices for extended resources that it lacks."""
        names = tuple(sorted(name for name in self.offered if not node.allocatable.get(name)))
        found = self._variants.get(names)
        if found is None:
            state = self._state
            made = extended_claim(self._pod, {name: state.offers[name] for name in names}) if names else None
            claims = [*self._missing, made.claim] if made is not None else self._missing
            search = Search(claims, state.classes.get, state.inventory, state.usage) if claims else None
            found = self._variants[names] = _Variant(search, made)
        return found

    def scores(self, compared: Compared) -> Scores | None:
        """Up to 100 for each node; higher if earlier alternatives are available."""
        if not self._choices:
            return None
        settled = sum(map(_settled_preference, self._claims))
        chosen = [self._choices.get(node.name, ()) for node in compared.nodes]
        raw = [settled + sum(map(_preference, choices)) if choices else 0 for choices in chosen]
        top = max(raw)
        return Scores(raw, {score: score * MAX_SCORE // top for score in set(raw)}) if top else None

    def _has_failed(self, claim: Claim) -> bool:
        """Whether a device of a claim could not be prepared, so that others are tried."""
        try:
            is_prepared(claim, self._state.now())
        except NotPrepared:
            return True
        return False

    def _problem(self) -> str:
        for claim in self._claims:
            users = claim.status.reserved_for
            if claim.status.allocation is not None:
                if len(users) >= MOST_USERS and not is_reserved_for(self._pod, users, groups=False):
                    return "resourceclaim in use"
            else:
                if claim.uid in self._state.pending:
                    return f"resource claim {claim.key} is in the process of being allocated"
                missing = self._missing_class(claim)
                if missing:
                    return missing
        return ""

    def _missing_class(self, claim: Claim) -> str:
        for request in claim.spec.devices.requests:
            for wanted in (request.exactly,) if request.exactly is not None else request.first_available:
                if self._state.classes.get(wanted.device_class_name) is None:
                    name = f"{request.name}/{wanted.name}" if wanted.name else request.name
                    return f"request {name}: device class {wanted.device_class_name} does not exist"
        return ""


def _reaches(claim: Claim, node: NodeInfo) -> bool:
    allocation = claim.status.allocation
    if allocation is None or allocation.node_selector is None:
        return True
    return selects(allocation.node_selector, node.name, node.labels)


def _settled_preference(claim: Claim) -> int:
    """The preference of a claim that is allocated, which is the same on all nodes."""
    if claim.status.allocation is None:
        return 0
    given = {result.request for result in claim.status.allocation.devices.results}
    return sum(
        _ALTERNATIVES_MAX - number
        for request in claim.spec.devices.requests
        for number, wanted in enumerate(request.first_available)
        if f"{request.name}/{wanted.name}" in given
    )


def _preference(choice: Choice) -> int:
    score = 0
    for request, data in zip(choice.claim.spec.devices.requests, choice.request_data, strict=True):
        if request.exactly is None:
            score += _ALTERNATIVES_MAX - request.first_available.index(data.wanted)
    return score
