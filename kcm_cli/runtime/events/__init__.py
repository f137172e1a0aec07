"""Events: what is said of an object, aggregated, limited and written in the background."""

from kcm_cli.runtime.events.recorder import EventWriter, ObjectRecorder

__all__ = ["EventWriter", "ObjectRecorder"]
