"""What is known of a terminating namespace's content after one pass over it."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Remains:
    """What is left, by resource (``plural.group``) and by finalizer; errors by what they stopped.

    estimate_s: how long the longest graceful termination may still take.
    """

    resources: Counter[str] = field(default_factory=Counter)
    finalizers: Counter[str] = field(default_factory=Counter)
    discovery_error: str = ""
    content_errors: list[str] = field(default_factory=list)
    estimate_s: int = 0
    pods_only: bool = False
