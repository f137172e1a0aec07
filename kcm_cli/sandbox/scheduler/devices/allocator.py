"""Allocates devices for the claims of a pod on one node: the first solution of an exhaustive search.

Claims and requests are tried in their order, devices in that of the pools. Within a request only combinations are
tried, no permutations. A claim gets at most RESULTS_MAX devices; a search that would exceed this backtracks further
than to the last device.

upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from kcm_cli.machinery import cel
from kcm_cli.machinery.quantity import Quantity
from kcm_cli.planning.resource_claims import tolerates
from kcm_cli.sandbox.scheduler.devices import capacity, selectors
from kcm_cli.sandbox.scheduler.devices.constraints import Agreement
from kcm_cli.sandbox.scheduler.devices.counters import Counters
from kcm_cli.sandbox.scheduler.devices.errors import AllocationError, NodeRefused
from kcm_cli.sandbox.scheduler.devices.pools import Candidate, Inventory, Pool, Target, on_node
from kcm_cli.sandbox.scheduler.devices.usage import Usage
from kcm_cli.sandbox.scheduler.devices.views import Claim, Device, DeviceClass, DeviceId, Request, Selector, Wanted

RESULTS_MAX = 32
_PREVENTING = ("NoSchedule", "NoExecute")
_INVALID = "invalid resource pools were encountered"


class _TooMany(Exception):
    """The claim would get too many devices."""


class RequestData(msgspec.Struct):
    """One request, or one alternative of a request. ``all``: its devices, if it asks for all."""

    claim: Claim
    parent: str
    wanted: Wanted
    class_: DeviceClass
    all: list[Candidate] | None = None
    matched: dict[DeviceId, bool] = msgspec.field(default_factory=dict)

    @property
    def name(self) -> str:
        """The request's name in results."""
        alternative = self.parent and self.wanted.name
        return f"{self.parent}/{self.wanted.name}" if alternative else self.parent

    @property
    def alternative(self) -> str:
        return self.wanted.name

    @property
    def own_name(self) -> str:
        """The request's name in errors."""
        return self.wanted.name or self.parent

    @property
    def count(self) -> int:
        return self.wanted.count if self.all is None else len(self.all)


class Given(msgspec.Struct, frozen=True):
    """A device for a request. ``amounts``: the consumed capacity of a ``shared`` device."""

    data: RequestData
    candidate: Candidate
    shared: bool = False
    amounts: Mapping[str, Quantity] = msgspec.field(default_factory=dict)


class Choice(msgspec.Struct, frozen=True):
    """The devices of one claim, and the chosen alternatives, in the order of its requests."""

    claim: Claim
    given: tuple[Given, ...]
    request_data: tuple[RequestData, ...]


class Search(msgspec.Struct, frozen=True):
    """The arguments of a search that do not depend on the node."""

    claims: Sequence[Claim]
    classes: Callable[[str], DeviceClass | None]
    inventory: Inventory
    usage: Usage


def allocate(search: Search, node: Target) -> list[Choice] | None:
    """The devices for all claims; None if the node does not have them. Raises AllocationError, NodeRefused."""
    pools = search.inventory.pools_of(node)
    run = _Run(search, node, pools)
    if run.solve():
        return run.choices()
    if any(pool.invalid for pool in pools):
        raise NodeRefused(_INVALID)
    return None


class _Run:
    """One search on one node."""

    def __init__(self, search: Search, node: Target, pools: Sequence[Pool]) -> None:
        self._search, self._node, self._pools = search, node, pools
        self._candidates = [one for pool in pools if pool.usable for one in pool.candidates()]
        self._variables: dict[DeviceId, dict[str, cel.Value]] = {}
        self._agreements = [[Agreement(c) for c in claim.spec.devices.constraints] for claim in search.claims]
        self._given: list[list[Given]] = [[] for _ in search.claims]
        self._chosen: dict[tuple[int, int], int] = {}
        self._taken: dict[DeviceId, set[int]] = {}
        self._shared: dict[DeviceId, dict[str, list[Quantity]]] = {}
        self._counters = Counters(search.usage)
        self._by_claim = [
            [self._alternatives(claim, r) for r in claim.spec.devices.requests] for claim in search.claims
        ]
        self._check_sizes()

    def choices(self) -> list[Choice]:
        return [
            Choice(
                claim, tuple(self._given[c]), tuple(w[self._chosen.get((c, r), 0)] for r, w in enumerate(request_data))
            )
            for c, (claim, request_data) in enumerate(zip(self._search.claims, self._by_claim, strict=True))
        ]

    # -- what is asked for

    def _alternatives(self, claim: Claim, request: Request) -> list[RequestData]:
        wanted = [request.exactly] if request.exactly is not None else request.first_available
        return [self._request_data(claim, request.name, one) for one in wanted]

    def _request_data(self, claim: Claim, request: str, wanted: Wanted) -> RequestData:
        name, class_ = wanted.name or request, self._search.classes(wanted.device_class_name)
        where = f"claim {claim.key}, request {name}"
        if class_ is None:
            missing = f'deviceclass.resource.k8s.io "{wanted.device_class_name}" not found'
            raise AllocationError(f"{where}: could not retrieve device class {wanted.device_class_name}: {missing}")
        data = RequestData(claim, request, wanted, class_)
        if wanted.allocation_mode == "All":
            data.all = self._all(data, where)
        return data

    def _all(self, data: RequestData, where: str) -> list[Candidate]:
        found: list[Candidate] = []
        for pool in self._pools:
            if not pool.usable:
                state = "being updated" if pool.incomplete else "invalid"
                shown = "/".join(pool.id)
                raise AllocationError(f"{where}: asks for all devices, but resource pool {shown} is currently {state}")
            found += [one for one in pool.candidates() if self._is_selectable(data, one) and self._has_room(data, one)]
        return found

    def _check_sizes(self) -> None:
        for claim, request_data in zip(self._search.claims, self._by_claim, strict=True):
            least = sum(min(data.count for data in alternatives) for alternatives in request_data if alternatives)
            if least > RESULTS_MAX:
                problem = f"number of requested devices {least} exceeds the claim limit of {RESULTS_MAX}"
                raise AllocationError(f"claim {claim.key}: {problem}")

    # -- the search

    def solve(self) -> bool:
        try:
            return self._claim(0)
        except _TooMany:
            return False

    def _claim(self, claim: int) -> bool:
        return claim == len(self._by_claim) or self._request(claim, 0)

    def _request(self, claim: int, request: int) -> bool:
        if request == len(self._by_claim[claim]):
            try:
                return self._claim(claim + 1)
            except _TooMany:
                return False  # other devices for this claim may leave the next one another alternative
        alternatives = self._by_claim[claim][request]
        if not alternatives[0].alternative:
            return self._devices(claim, request, alternatives[0], 0, 0)
        exceeded = True
        for number, data in enumerate(alternatives):
            try:
                found = self._devices(claim, request, data, 0, 0)
            except _TooMany:
                continue
            exceeded = False
            if found:
                self._chosen[claim, request] = number
                return True
        if exceeded:
            raise _TooMany
        return False

    def _devices(self, claim: int, request: int, data: RequestData, number: int, start: int) -> bool:
        """Allocate the devices of a request from the one with this number on. Candidates before ``start`` were
        tried."""
        if data.all is not None and not data.all:
            return False
        if number >= data.count:
            return self._request(claim, request + 1)
        if len(self._given[claim]) + data.count - number > RESULTS_MAX:
            raise _TooMany
        if data.all is not None:
            return self._try(claim, request, data, number, 0, data.all[number])
        for place in range(start, len(self._candidates)):
            candidate = self._candidates[place]
            if self._may_have(claim, data, candidate) and self._try(claim, request, data, number, place + 1, candidate):
                return True
        return False

    def _try(
        self, claim: int, request: int, data: RequestData, number: int, following: int, candidate: Candidate
    ) -> bool:
        undo = self._take(claim, data, candidate, must=data.all is not None)
        if undo is None:
            return False
        done = False
        try:
            done = self._devices(claim, request, data, number + 1, following)
        finally:
            if not done:
                undo()
        return done

    # -- one device

    def _may_have(self, claim: int, data: RequestData, candidate: Candidate) -> bool:
        return (
            not self._is_in_use(claim, data, candidate.id)
            and self._is_selectable(data, candidate)
            and self._has_room(data, candidate)
        )

    def _is_in_use(self, claim: int, data: RequestData, device: DeviceId) -> bool:
        """Whether the device is taken. With admin access, only devices of the same claim are."""
        taken = self._taken.get(device, ())
        if data.wanted.admin_access:
            return claim in taken
        return bool(taken) or self._search.usage.is_taken(device)

    def _is_selectable(self, data: RequestData, candidate: Candidate) -> bool:
        """Whether the device matches the class and the request, and is available on the node."""
        known = data.matched.get(candidate.id)
        if known is None:
            known = (
                self._matches(f"class {data.class_.name}", data.class_.spec.selectors, candidate)
                and self._matches(f"claim {data.claim.key}", data.wanted.selectors, candidate)
                and self._is_there(candidate)
            )
            data.matched[candidate.id] = known
        return known

    def _matches(self, whose: str, found: Sequence[Selector], candidate: Candidate) -> bool:
        for number, selector in enumerate(found):
            try:
                if not selectors.matches(selector.cel.expression if selector.cel else "", self._seen(candidate)):
                    return False
            except cel.CelError as error:
                raise AllocationError(f"{whose}: selector #{number}: CEL runtime error: {error}") from error
            except cel.CelProblem as error:
                raise AllocationError(f"{whose}: selector #{number}: CEL compile error: {error}") from error
        return True

    def _seen(self, candidate: Candidate) -> dict[str, cel.Value]:
        variables = self._variables.get(candidate.id)
        if variables is None:
            variables = self._variables[candidate.id] = selectors.variables_of(candidate.id[0], candidate.device)
        return variables

    def _is_there(self, candidate: Candidate) -> bool:
        device = candidate.device
        if not candidate.slice.spec.per_device_node_selection:
            return True
        return on_node(self._node, device.node_name, device.node_selector, everywhere=device.all_nodes)

    def _has_room(self, data: RequestData, candidate: Candidate) -> bool:
        return capacity.fits(data.wanted, candidate.device, self._used(candidate.id))

    def _used(self, device: DeviceId) -> capacity.Amounts:
        before, now = self._search.usage.capacity.get(device, capacity.NOTHING), self._shared.get(device)
        if not now:
            return before
        return {name: sum(now.get(name, ()), before.get(name, Quantity())) for name in (*before, *now)}

    def _take(self, claim: int, data: RequestData, candidate: Candidate, *, must: bool) -> Callable[[], None] | None:
        """Give the device to the claim. Returns a function that undoes it; None if that is not possible.

        As upstream, the search does not return counters of shared devices, nor those of a device that a taint or
        constraint excludes.
        """
        if self._is_in_use(claim, data, candidate.id) or not self._has_room(data, candidate):
            return None
        shared = candidate.device.allow_multiple_allocations
        counted = bool(candidate.device.consumes_counters) and not (shared and self._is_shared(candidate.id))
        if counted and not self._counters.take(candidate):
            return None
        if _is_repelled(candidate.device, data.wanted):
            return None
        agreed = self._agree(claim, data, candidate)
        if agreed is None:
            if must:
                shown = "/".join(candidate.id)
                problem = f"cannot add device {shown} because a claim constraint would not be satisfied"
                raise AllocationError(f"claim {data.claim.key}, request {data.own_name}: {problem}")
            return None
        given = _shared(data, candidate) if shared else Given(data, candidate)
        self._put(claim, given)

        def undo() -> None:
            self._drop(claim, given)
            for agreement in agreed:
                agreement.remove_last(data.parent)
            if counted and not shared:
                self._counters.give_back(candidate)

        return undo

    def _agree(self, claim: int, data: RequestData, candidate: Candidate) -> list[Agreement] | None:
        agreed: list[Agreement] = []
        for agreement in self._agreements[claim]:
            if not agreement.concerns(data.parent, data.alternative):
                continue
            if not agreement.add(data.parent, candidate):
                for other in agreed:
                    other.remove_last(data.parent)
                return None
            agreed.append(agreement)
        return agreed

    def _is_shared(self, device: DeviceId) -> bool:
        return device in self._search.usage.capacity or device in self._shared

    def _put(self, claim: int, given: Given) -> None:
        device = given.candidate.id
        self._given[claim].append(given)
        if not given.shared:
            self._taken.setdefault(device, set()).add(claim)
            return
        amounts = self._shared.setdefault(device, {})
        for name, amount in given.amounts.items():
            amounts.setdefault(name, []).append(amount)

    def _drop(self, claim: int, given: Given) -> None:
        device = given.candidate.id
        self._given[claim].pop()
        if not given.shared:
            self._taken[device].discard(claim)
            return
        amounts = self._shared[device]
        for name in given.amounts:
            amounts[name].pop()
        if given.amounts and not any(map(any, amounts.values())):
            del self._shared[device]


def _shared(data: RequestData, candidate: Candidate) -> Given:
    return Given(data, candidate, shared=True, amounts=capacity.consumed(data.wanted, candidate.device))


def _is_repelled(device: Device, wanted: Wanted) -> bool:
    """Whether the device has an untolerated taint that prevents allocation."""
    return any(
        taint.effect in _PREVENTING
        and not any(tolerates(one, taint.key, taint.value, taint.effect) for one in wanted.tolerations)
        for taint in device.taints
    )
