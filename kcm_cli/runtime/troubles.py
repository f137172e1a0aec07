"""The failures of an informer's lists and watches: logged as client-go does, and reported if they go on.

upstream: staging/src/k8s.io/client-go/tools/cache/reflector.go#DefaultWatchErrorHandler
"""

import logging
from typing import Any

import msgspec

from kcm_cli.api.resource import Resource
from kcm_cli.component.logs import V1, V2, V4
from kcm_cli.rest import errors
from kcm_cli.rest.transport import ConnectionLost, RequestError, Unreachable, Untrusted
from kcm_cli.runtime.object_errors import ObjectErrors

log = logging.getLogger(__name__)

STALLED_S = 60.0
"""Lists and watches that have failed for this time are reported."""


class Trouble(msgspec.Struct, frozen=True):
    """Lists and watches fail. since: monotonic seconds of the first failure after the last progress. why: the error."""

    since: float
    why: str


class Troubles:
    """The failures of one informer. current: None while there are none.

    metadata_only: whether the informer follows only the metadata of its objects.
    """

    def __init__(self, resource: Resource[Any], object_errors: ObjectErrors, *, metadata_only: bool) -> None:
        self.current: Trouble | None = None
        self._resource = resource
        self._object_errors = object_errors
        self._metadata_only = metadata_only
        self._is_reported = False

    @property
    def fields(self) -> dict[str, object]:
        """The informer in a log line, as client-go names it."""
        kind = "PartialObjectMetadata" if self._metadata_only else self._resource.kind
        return {"type": f"*{self._resource.gvr.version}.{kind}", "reflector": str(self._resource)}

    def failed(self, error: RequestError, now: float, *, watching: bool) -> None:
        """A list or a watch has failed. now: monotonic seconds. A kind that the server does not have is no trouble."""
        if not isinstance(error, errors.NotFound):
            self.current = Trouble(self.current.since if self.current else now, errors.one_line(error))
        level, text = self._level_and_text(error, watching=watching)
        fields = self.fields
        why = str(error) if watching else f"failed to list {fields['type']}: {error}"
        log.log(level, text, extra={"fields": {**fields, "err": why}})
        if self.current is not None and now - self.current.since >= STALLED_S and not self._is_reported:
            self._is_reported = True
            self._object_errors.stalled(self._resource, 1)
            level = V2 if isinstance(error, Unreachable) else logging.ERROR  # else each informer would say it
            about = {**fields, "since_s": round(now - self.current.since), "err": errors.one_line(error)}
            log.log(level, "Informer makes no progress, its controllers see an old state", extra={"fields": about})

    def _level_and_text(self, error: RequestError, *, watching: bool) -> tuple[int, str]:
        if isinstance(error, errors.Expired | errors.Gone):
            return V4, "Watch closed"
        untrusted = isinstance(error, Untrusted)
        if watching and isinstance(error, Unreachable | errors.TooManyRequests) and not untrusted:
            return V4, "Watch failed - backing off"
        if watching and isinstance(error, ConnectionLost):
            return V1, "Watch closed with unexpected EOF"
        if self._metadata_only and isinstance(error, errors.NotFound):
            return V4, "Watch closed"  # the kind was deleted; who asked for it has not noticed yet
        return logging.ERROR, "Failed to watch"

    def recovered(self) -> None:
        """A list is complete, or a watch has delivered something, or has been open for long."""
        self.current = None
        if self._is_reported:
            self.stopped()
            log.info("Informer makes progress again", extra={"fields": self.fields})

    def stopped(self) -> None:
        """The informer does not run any more: it is not counted as one that makes no progress."""
        if self._is_reported:
            self._is_reported = False
            self._object_errors.stalled(self._resource, -1)
