"""Errors of the machinery: invalid text or documents.

    MachineryError
    ├── FormatError    invalid text (selector, quantity, duration, time, percentage)
    └── PatchError     a patch that does not apply to its document
    SyncError          a state in which a controller cannot sync

Clients of Kubernetes see their texts.
"""

from collections.abc import Iterable

TIMED_OUT = "context deadline exceeded"
"""What Go says when a time has run out."""


def text_of(error: BaseException) -> str:
    """The text of an error; the name of its class if it has none."""
    return str(error) or (TIMED_OUT if isinstance(error, TimeoutError) else type(error).__name__)


def aggregated(texts: Iterable[str]) -> str:
    """Several errors as one text: the only one, or all in brackets, each once; empty without any.

    upstream: staging/src/k8s.io/apimachinery/pkg/util/errors/errors.go#aggregate.Error
    """
    found = list(dict.fromkeys(texts))
    return f"[{', '.join(found)}]" if len(found) > 1 else "".join(found)


class MachineryError(ValueError):
    """The base of all errors of this layer."""


class FormatError(MachineryError):
    """The text does not follow its grammar."""

    reason = "FormatError"


class PatchError(MachineryError):
    """The patch is malformed or does not apply."""


class SyncError(Exception):
    """A state of the cluster in which a sync cannot go on. It is logged without a traceback, and the key is retried."""

    reason = ""
