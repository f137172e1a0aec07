"""Errors of the machinery: text or documents that do not follow their rules.

MachineryError
├── FormatError    a text outside its grammar (selector, quantity, duration, time, percentage)
└── PatchError     a patch that does not apply to its document
SyncError          what a controller waits for, or cannot work with

The text of each is what Kubernetes' clients see.
"""


class MachineryError(ValueError):
    """Base of all errors of this layer."""


class FormatError(MachineryError):
    """A text does not follow its grammar."""

    reason = "FormatError"


class PatchError(MachineryError):
    """A patch is malformed or does not apply."""


class SyncError(Exception):
    """A state of the cluster in which a sync cannot go on. It is logged without a traceback, and retried."""

    reason = ""
