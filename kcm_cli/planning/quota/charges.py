"""What objects are charged with, added up as they come and go.

Every object is measured when it changes, never when a quota is looked at: a total is kept per combination of scopes
that objects are in, and the use of any quota is the sum of the totals whose scopes it asks for. So neither the number
of objects nor that of quotas counts for a sync, and a quota that changes needs no recount.
"""

from collections.abc import Callable, Iterator
from weakref import WeakValueDictionary

from kcm_cli.machinery.quantity import ZERO, Quantity
from kcm_cli.planning.pod_resources import Amounts
from kcm_cli.planning.quota.scopes import Profile


class Charge:
    """What one object uses, and the scopes that it is in. Never changes; equal ones are one (see ``Charges``)."""

    __slots__ = ("__weakref__", "profile", "usage")

    def __init__(self, profile: Profile, usage: tuple[tuple[str, Quantity], ...]) -> None:
        self.profile = profile
        self.usage = usage

    def amounts(self) -> Amounts:
        """The usage by name."""
        return dict(self.usage)


class Charges:
    """Makes charges. Objects that use the same share one: pods of a template cost a reference each."""

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
        """What an object is charged with."""
        return self._held.get(key)

    def put(self, key: str, charge: Charge) -> bool:
        """Charge an object, instead of what it was charged with before; whether that changes anything."""
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
        """Charge an object no more; whether it was charged."""
        before = self._held.pop(key, None)
        if before is not None:
            self._take(before)
        return before is not None

    def used(self, wanted: Callable[[Profile], bool]) -> Amounts:
        """What the objects use whose scopes are wanted; a name that is missing is used by none."""
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
