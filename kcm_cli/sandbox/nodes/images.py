"""The images on a node: those that its containers had pulled.

Every image can be pulled, and with the policy Never it is assumed to be present. Its size and the duration of the pull
are derived from its name.

upstream: pkg/kubelet/images/image_manager.go, pkg/kubelet/nodestatus/setters.go#Images
"""

from collections.abc import Iterable
from hashlib import sha256

import msgspec

from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.recent import Bounded
from kcm_cli.sandbox.nodes.containers import full_image, image_id
from kcm_cli.sandbox.views import ContainerImage

MOST_REPORTED, _MOST_KNOWN = 50, 1000
"""The limits for the images in a node's status, and for all; those used longest ago are removed."""
_LEAST_BYTES, _SPREAD_BYTES = 4_000_000, 120_000_000
_LEAST_MS, _SPREAD_MS = 120, 800


class Pull(msgspec.Struct, frozen=True):
    """The result of a pull."""

    took_ms: int
    size: int


class Images:
    """The images of one node.

    changed: whether there are images that the node's status does not list yet.
    """

    def __init__(self, known: Iterable[ContainerImage] = ()) -> None:
        self._sizes: Bounded[str, int] = Bounded(_MOST_KNOWN)
        for image in known:
            if image.names:
                self._sizes[full_image(image.names[-1])] = image.size_bytes
        self.changed = False

    def use(self, image: str, policy: str) -> Pull | None:
        """Make an image present on the node. Return None if nothing had to be pulled."""
        name = full_image(image)
        number = int.from_bytes(sha256(name.encode()).digest()[:8])
        known = self._sizes.get(name)
        size = self._sizes[name] = _LEAST_BYTES + number % _SPREAD_BYTES if known is None else known
        self.changed = self.changed or known is None
        if policy == "Never" or (known is not None and policy != "Always"):
            return None
        return Pull(_LEAST_MS + number % _SPREAD_MS, size)

    def has(self, image: str) -> bool:
        """Whether the image is on the node."""
        return full_image(image) in self._sizes

    def docs(self) -> list[Doc]:
        """Return the images for the node's status, the largest first."""
        largest = sorted(self._sizes.items(), key=lambda item: (-item[1], item[0]))[:MOST_REPORTED]
        return [{"names": list(dict.fromkeys((image_id(name), name))), "sizeBytes": size} for name, size in largest]
