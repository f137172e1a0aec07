"""The schemas of a group version, as the server publishes them.

upstream: staging/src/k8s.io/apiserver/pkg/cel/openapi/resolver/discovery.go
"""

from collections.abc import Mapping

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.codec import Doc
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import Forbidden, NotFound
from kcm_cli.rest.reading import read, read_doc
from kcm_cli.rest.transport import Request

_PREFIX = "#/components/schemas/"


class _Kind(msgspec.Struct, frozen=True, gc=False):
    group: str = ""
    version: str = ""
    kind: str = ""


class _Marked(msgspec.Struct, frozen=True, gc=False):
    kinds: tuple[_Kind, ...] = msgspec.field(default=(), name="x-kubernetes-group-version-kind")


class _Components(msgspec.Struct, frozen=True):
    schemas: dict[str, msgspec.Raw] = {}


class _Document(msgspec.Struct, frozen=True):
    components: _Components = _Components()


class Schemas:
    """Schemas by name. Each is decoded when it is first used."""

    def __init__(self, raw: Mapping[str, msgspec.Raw]) -> None:
        self._raw = raw
        self._decoded: dict[str, Doc] = {}

    def get(self, reference: str) -> Doc | None:
        """The schema that a reference names."""
        name = reference.removeprefix(_PREFIX)
        if name not in self._decoded and name in self._raw:
            self._decoded[name] = read_doc(self._raw[name])
        return self._decoded.get(name)

    def reference_to(self, group: str, version: str, kind: str) -> str | None:
        """The reference to the schema of a kind."""
        wanted = _Kind(group, version, kind)
        for name, raw in self._raw.items():
            if wanted in read(raw, _Marked).kinds:
                return _PREFIX + name
        return None


async def schemas(client: Client, group: str, version: str) -> Schemas | None:
    """The schemas of a group version; None where the server publishes none. Raises RequestError."""
    path = f"/openapi/v3{GVR(group, version, '').base}"
    try:
        document = await client.ask(Request("GET", path), _Document)
    except (NotFound, Forbidden):
        return None
    return Schemas(document.components.schemas)
