"""Reads a snapshot of a live cluster, by a kubeconfig or from a pod in the cluster."""

from collections.abc import Sequence

from msgspec.structs import replace

from kcm_cli.component.clock import LoopClock
from kcm_cli.machinery.codec import DecodeError
from kcm_cli.plan.changes import Change, custom_kinds
from kcm_cli.plan.collect import Progress, collect
from kcm_cli.plan.snapshot import PlanError, Snapshot
from kcm_cli.rest import access
from kcm_cli.rest.command_client import client_of
from kcm_cli.rest.errors import AccessError, ApiError
from kcm_cli.rest.transport import TransportError
from kcm_cli.runtime.tasks import innermost


async def take(
    kubeconfig: str = "",
    *,
    include: Sequence[str] = (),
    namespace: str = "",
    changes: Sequence[Change] = (),
    progress: Progress = lambda kind, count: None,
) -> Snapshot:
    """Read the cluster of a kubeconfig (a path; if empty, this pod's cluster). Secrets are never read.

    include: what is read besides, of ``configmaps``, ``events`` and ``custom`` (custom resources). namespace: where
    kinds are listed that may not be listed in all. changes: those that will be planned; the custom resources that they
    name are read, too. progress: called with each kind that was read and the number of its objects. Raises PlanError.
    """
    clock = LoopClock()
    try:
        found = await access.load(path=kubeconfig, master="", clock=clock)
        async with client_of(found, clock, "plan") as client:
            snapshot = await collect(
                client, clock, include=include, namespace=namespace, custom=custom_kinds(changes), progress=progress
            )
    except (AccessError, TransportError, ApiError, DecodeError, PlanError, BaseExceptionGroup) as group:
        error = innermost(group)
        if isinstance(error, AccessError | TransportError | ApiError | DecodeError | PlanError):
            raise PlanError(_with_name(str(error), kubeconfig)) from None
        raise
    return replace(snapshot, context=found.server, namespace=found.namespace)


def _with_name(text: str, kubeconfig: str) -> str:
    return text if kubeconfig in text else f"kubeconfig {kubeconfig}: {text}"
