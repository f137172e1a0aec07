"""What a kind is called on the wire, and the view it decodes to."""

from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import Object

T = TypeVar("T", bound=Object)


@dataclass(frozen=True, slots=True)
class GVR:
    """Group, version and plural name: the address of a collection."""

    group: str
    version: str
    plural: str

    @property
    def group_version(self) -> str:
        """``apps/v1``, or ``v1`` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def base(self) -> str:
        """``/apis/apps/v1`` or ``/api/v1``."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of the collection (no name), of an object, or of its subresource."""
        path = f"{self.base}/namespaces/{namespace}/{self.plural}" if namespace else f"{self.base}/{self.plural}"
        if name:
            path += f"/{name}"
        return f"{path}/{subresource}" if subresource else path

    def __str__(self) -> str:
        return f"{self.group or 'core'}/{self.version}/{self.plural}"


@dataclass(frozen=True, slots=True, eq=False)
class Resource(Generic[T]):
    """A kind: its address, whether it is namespaced, and the view that controllers get of it.

    keeps_raw: views carry the raw document, so that an update can edit it and lose nothing.
    """

    gvr: GVR
    kind: str
    view: type[T]
    namespaced: bool = True
    keeps_raw: bool = False

    @property
    def api_version(self) -> str:
        return self.gvr.group_version

    @property
    def plural(self) -> str:
        return self.gvr.plural

    def decode(self, data: bytes | msgspec.Raw) -> T:
        """Decode one object; keeps its bytes where this kind is written back. Raises codec.DecodeError."""
        obj = codec.decode(data, self.view)
        if self.keeps_raw:
            msgspec.structs.force_setattr(obj, "raw", bytes(data))
        return obj

    def __str__(self) -> str:
        return str(self.gvr)
