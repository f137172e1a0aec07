"""One version of an object as the store keeps it, and the event that brought it.

The encoded bytes are the truth; the document is parsed from them when somebody asks. A document that has been
parsed or written is kept for a while (``Recent``) and then let go: bytes take a fifth of a document's memory.
"""

from collections import deque
from typing import Literal

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc

EventType = Literal["ADDED", "MODIFIED", "DELETED"]


def object_key(namespace: str, name: str) -> str:
    """``namespace/name``, or ``name``: the sort order of lists."""
    return f"{namespace}/{name}" if namespace else name


class Stored:
    """A version of an object. Never changed after it was made; neither may the document be."""

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
        """Whether this is the first version, and was made in this process."""
        self._recent = recent
        self._doc = doc
        if doc is not None:
            recent.add(self)

    @property
    def doc(self) -> Doc:
        """The object as a document, shared by all who ask: never change it (``copy`` is for that)."""
        doc = self._doc
        if doc is None:
            doc = self._doc = codec.decode_doc(self.data)
            self._recent.add(self)
        return doc

    def copy(self) -> Doc:
        """The object as a new document, the caller's own."""
        return codec.decode_doc(self.data)

    def at(self, revision: int) -> "Stored":
        """The same state under another version, as a watch shows what left its selection."""
        doc = self.copy()
        metadata = doc["metadata"]
        assert isinstance(metadata, dict)
        metadata["resourceVersion"] = str(revision)
        return Stored(self.namespace, self.name, revision, codec.encode(doc), self._recent)

    def forget(self) -> None:
        """Let the parsed document go; it comes back when asked for."""
        self._doc = None

    def __repr__(self) -> str:
        return f"Stored({self.key}@{self.revision})"


class Recent:
    """Bounds how many parsed documents are kept: the oldest parse is forgotten first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: deque[Stored] = deque()

    def add(self, stored: Stored) -> None:
        kept = self._kept
        kept.append(stored)
        if len(kept) > self._limit:
            kept.popleft().forget()


class Event:
    """A write: what is there since ``revision`` (for DELETED: the last state, with that revision), and what
    was.
    """

    __slots__ = ("type", "stored", "previous")

    def __init__(self, type_: EventType, stored: Stored, previous: Stored | None) -> None:
        self.type = type_
        self.stored = stored
        self.previous = previous

    @property
    def revision(self) -> int:
        return self.stored.revision

    @property
    def frame(self) -> bytes:
        """The line that a watch sends: as large as the object, so it is not kept."""
        return frame_of(self.type, self.stored.data)

    def __repr__(self) -> str:
        return f"Event({self.type} {self.stored!r})"


def frame_of(type_: str, data: bytes) -> bytes:
    """The line of a watch for one event."""
    return b'{"type":"%s","object":%s}\n' % (type_.encode(), data)
