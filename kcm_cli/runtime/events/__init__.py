"""Events: aggregated, rate limited and written in the background."""

from kcm_cli.runtime.events.counted import EventNames
from kcm_cli.runtime.events.recorder import EventWriter, ObjectRecorder

__all__ = ["EventNames", "EventWriter", "ObjectRecorder"]
