"""What kopf loses by itself. Handlers cannot avoid it, so it is noted, not reported as a failure of the operator.

Seen with kopf 1.44 and 1.45.
"""

from kcm_cli.sandbox.apiserver.entrance import Asked
from kcm_cli.testing.perturb.points import Spot

LATE_STATUS = (
    "kopf notes that an object is handled, and then sends its status (patch.status, what handlers return) in another "
    "request, which is lost: write the status in the handler with a client, or set it again in on.resume and a timer"
)
FINALIZER = (
    "kopf repeats the patch with its finalizer after a lost response, is refused for its own change, and does not "
    "handle the object until the next one: settings.networking.error_backoffs = () avoids it"
)
_HANDLED = b'"kopf.zalando.org/last-handled-configuration"'
_FINALIZER = b'"kopf.zalando.org/KopfFinalizerMarker"'
_STATUS = "/status"


class KopfFlaws:
    """Watches the requests of one trial.

    handled: the object that kopf noted as handled last, before the perturbation. late: that object, if the
    perturbation was between this note and the status.
    """

    def __init__(self) -> None:
        self._handled = self._late = ""
        self._repeated = False

    def arrived(self, asked: Asked, spot: Spot, *, perturbed: bool) -> None:
        """Look at a write, before or at the perturbation."""
        if not asked.user_agent.startswith("kopf/"):
            return
        subject = f"{spot.resource.removesuffix(_STATUS)} {spot.name}"
        notes = _HANDLED in asked.request.body
        if notes:
            self._handled = subject
        if perturbed and subject == self._handled and (notes or spot.resource.endswith(_STATUS)):
            self._late = subject

    def refused_again(self, asked: Asked) -> None:
        """Look at a repeated write that is refused because its first attempt has taken effect."""
        self._repeated |= asked.user_agent.startswith("kopf/") and _FINALIZER in asked.request.body

    def explain(self, differences: list[str]) -> str:
        """The flaw that explains all differences from the reference, or an empty string."""
        if self._repeated:
            return FINALIZER
        late = differences and self._late and all(line.startswith(f"{self._late}: status") for line in differences)
        return LATE_STATUS if late else ""
