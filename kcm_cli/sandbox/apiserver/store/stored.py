"""Stored versions of objects, and events.

A version has the encoded bytes. Its document is decoded from them on access and cached for a while (``Recent``), since
bytes take a fifth of a document's memory.
"""

from collections import deque
from typing import Literal

import msgspec

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import object_key

EventType = Literal["ADDED", "MODIFIED", "DELETED"]


class Stored:
    """A version of an object. Immutable, and so is its document."""

    __slots__ = ("key", "namespace", "name", "revision", "data", "created", "_doc", "_recent")

    def __init__(
        self, namespace: str, name: str, revision: int, data: bytes, recent: "Recent", doc: Doc | None = None
    ) -> None:
        self.key = object_key(namespace, name)
        self.namespace = namespace
        self.name = name
        self.revision = revision
        self.data = data
        self.created = False
        """Whether this is the first version, created in this process."""
        self._recent = recent
        self._doc = doc
        if doc is not None:
            recent.add(self)

    @property
    def doc(self) -> Doc:
        """The object as a shared document. Do not change it; use ``copy``."""
        doc = self._doc
        if doc is None:
            doc = self._doc = codec.decode_doc(self.data)
            self._recent.add(self)
        return doc

    def copy(self) -> Doc:
        """The object as a new document, which may be changed."""
        return codec.decode_doc(self.data)

    def at(self, revision: int) -> "Stored":
        """The same state with another resourceVersion, for watches that the object no longer matches."""
        doc = self.copy()
        metadata = doc["metadata"]
        assert isinstance(metadata, dict)
        metadata["resourceVersion"] = str(revision)
        return Stored(self.namespace, self.name, revision, codec.encode(doc), self._recent)

    def forget(self) -> None:
        """Drop the cached document."""
        self._doc = None

    def __repr__(self) -> str:
        return f"Stored({self.key}@{self.revision})"


class Recent:
    """Limits the number of cached documents, and the sum of their encoded sizes. The oldest is dropped first."""

    def __init__(self, limit: int, size: int = 32 << 20) -> None:
        self._limit = limit
        self._left = size
        self._kept: deque[Stored] = deque()

    def add(self, stored: Stored) -> None:
        kept = self._kept
        kept.append(stored)
        self._left -= len(stored.data)
        while len(kept) > self._limit or (self._left < 0 and len(kept) > 1):
            oldest = kept.popleft()
            oldest.forget()
            self._left += len(oldest.data)


class Event(msgspec.Struct, eq=False, gc=False):
    """A write. stored: the new version (for DELETED the last state, with the deletion's revision). previous: the one
    before, or None.
    """

    type: EventType
    stored: Stored
    previous: Stored | None

    @property
    def revision(self) -> int:
        return self.stored.revision

    @property
    def frame(self) -> bytes:
        """The watch event as a line. It is as large as the object, so it is not cached."""
        return frame_of(self.type, self.stored.data)

    def __repr__(self) -> str:
        return f"Event({self.type} {self.stored!r})"


def frame_of(type_: str, data: bytes) -> bytes:
    """A watch event as a line of JSON."""
    return b'{"type":"%s","object":%s}\n' % (type_.encode(), data)
