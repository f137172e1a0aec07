"""The usage of objects, summed up as they are added, updated and deleted.

An object is measured when it changes, and not when a quota is synced. There is one total per combination of scopes, and
the usage of a quota is the sum of the totals that match its scopes. So the cost of a sync depends neither on the number
of objects nor on that of quotas, and a changed quota needs no recount.
"""

from collections.abc import Callable, Iterator
from weakref import WeakValueDictionary

from kcm_cli.machinery.quantity import ZERO, Quantity
from kcm_cli.planning.pod_resources import Amounts
from kcm_cli.planning.quota.scopes import Profile


class Charge:
    """The usage of one object, and its scopes. Immutable; equal charges are the same object (see ``Charges``)."""

    __slots__ = ("__weakref__", "profile", "usage")

    def __init__(self, profile: Profile, usage: tuple[tuple[str, Quantity], ...]) -> None:
        self.profile = profile
        self.usage = usage


class Charges:
    """Makes charges. Objects with equal usage share one: each pod of a template costs a reference."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[Profile, tuple[tuple[str, Quantity], ...]], Charge] = (
            WeakValueDictionary()
        )

    def make(self, profile: Profile, usage: Amounts) -> Charge:
        """The charge of an object."""
        items = tuple(sorted(usage.items()))
        found = self._known.get((profile, items))
        if found is None:
            found = self._known[(profile, items)] = Charge(profile, items)
        return found


class Totals:
    """The charges of the objects of one kind in one namespace, and their sums."""

    def __init__(self) -> None:
        self._held: dict[str, Charge] = {}
        self._sums: dict[Profile, Amounts] = {}
        self._sizes: dict[Profile, int] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def get(self, key: str) -> Charge | None:
        """The charge of an object."""
        return self._held.get(key)

    def put(self, key: str, charge: Charge) -> bool:
        """Replace the charge of an object. Returns whether that changes anything."""
        before = self._held.get(key)
        if before is charge:
            return False
        if before is not None:
            self._take(before)
        self._held[key] = charge
        sums = self._sums.setdefault(charge.profile, {})
        self._sizes[charge.profile] = self._sizes.get(charge.profile, 0) + 1
        for name, amount in charge.usage:
            known = sums.get(name)
            sums[name] = amount if known is None else known + amount
        return True

    def drop(self, key: str) -> bool:
        """Remove the charge of an object. Returns whether it had one."""
        before = self._held.pop(key, None)
        if before is not None:
            self._take(before)
        return before is not None

    def used(self, wanted: Callable[[Profile], bool]) -> Amounts:
        """The usage of the objects that match these scopes. A missing name stands for no usage."""
        total: Amounts = {}
        for profile, sums in self._sums.items():
            if wanted(profile):
                for name, amount in sums.items():
                    known = total.get(name)
                    total[name] = amount if known is None else known + amount
        return total

    def _take(self, charge: Charge) -> None:
        left = self._sizes[charge.profile] - 1
        if not left:
            del self._sizes[charge.profile], self._sums[charge.profile]
            return
        self._sizes[charge.profile] = left
        sums = self._sums[charge.profile]
        for name, amount in charge.usage:
            rest = sums.get(name, ZERO) - amount
            if rest:
                sums[name] = rest
            else:
                sums.pop(name, None)
