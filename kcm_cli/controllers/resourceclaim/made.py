"""The claims that were made for an owner: those of the cache, and those that it does not show yet.

Guarantees: an entry of an owner whose claim was created gets no second one while the manager lives, even where the
answer to the creation was lost (then the server is asked once).

upstream: client-go's MutationCache, which does not know of lost answers.
"""

from kcm_cli.api.devices import RESOURCE_CLAIMS, ResourceClaim
from kcm_cli.engine.door import Door
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import Object, controller_of, number_of
from kcm_cli.planning.resource_claims import POD_CLAIM
from kcm_cli.rest.listing import list_all
from kcm_cli.rest.transport import TransportError, Unreachable
from kcm_cli.runtime.informer import Informer
from kcm_cli.runtime.store import CONTROLLER_UID, by_controller

_Place = tuple[str, str]
"""An owner's uid and the name of its entry."""


class MadeClaims:
    """See the module."""

    def __init__(self, client: Door, claims: Informer[ResourceClaim]) -> None:
        self._client = client
        self._claims = claims
        self._made: dict[_Place, ResourceClaim] = {}
        self._doubtful: set[_Place] = set()
        claims.store.add_index(CONTROLLER_UID, by_controller)
        claims.listen(on_add=self._shown, on_delete=self._shown)

    def known(self, owner: Object, entry: str) -> ResourceClaim | None:
        """The claim, without asking the server."""
        for claim in self._claims.store.by_index(CONTROLLER_UID, owner.uid):
            if claim.annotations.get(POD_CLAIM) == entry:
                return claim
        made = self._made.get((owner.uid, entry))
        if made is not None and number_of(self._claims.last_version) >= made.version:
            del self._made[owner.uid, entry]  # the cache has come to that version, and does not have it
            return None
        return made

    async def find(self, owner: Object, entry: str) -> ResourceClaim | None:
        """The claim; None if there is none for sure. Raises what a list raises."""
        place = owner.uid, entry
        found = self.known(owner, entry)
        if found is None and place in self._doubtful:
            for claim in (await list_all(self._client, RESOURCE_CLAIMS, owner.namespace)).items:
                if _place(claim) == place:
                    found = self._made[place] = claim
        self._doubtful.discard(place)
        return found

    async def create(self, owner: Object, entry: str, body: Doc) -> ResourceClaim:
        place = owner.uid, entry
        try:
            made = await self._client.create(RESOURCE_CLAIMS, owner.namespace, body)
        except TransportError as error:
            if not isinstance(error, Unreachable):
                self._doubtful.add(place)
            raise
        if self._claims.store.get(made.key) is None:
            self._made[place] = made
        return made

    def forget(self, owner: Object) -> None:
        """The owner is gone."""
        for place in [place for place in (*self._made, *self._doubtful) if place[0] == owner.uid]:
            self._made.pop(place, None)
            self._doubtful.discard(place)

    def _shown(self, claim: ResourceClaim) -> None:
        place = _place(claim)
        if place is not None:
            self._made.pop(place, None)


def _place(claim: ResourceClaim) -> _Place | None:
    ref, entry = controller_of(claim), claim.annotations.get(POD_CLAIM)
    return None if ref is None or entry is None else (ref.uid, entry)
