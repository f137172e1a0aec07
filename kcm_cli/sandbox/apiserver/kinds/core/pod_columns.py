"""The table of pods.

upstream: pkg/printers/internalversion/printers.go#printPod
"""

from datetime import datetime

import msgspec

from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.tables.column import age, created
from kcm_cli.sandbox.apiserver.types import Tree

_NONE = "<none>"
_FINISHED = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


class _Tally(msgspec.Struct):
    """What the columns show of containers: a status, the number of ready ones, and of restarts with their last time."""

    reason: str
    ready: int = 0
    restarts: int = 0
    last: str = ""

    def restarted(self, status: Tree) -> None:
        self.restarts += status.get("restartCount", 0)
        ended = ((status.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or ""
        self.last = max(self.last, ended)


def row(doc: Tree, now: datetime) -> list[object]:
    meta, spec, status = doc["metadata"], doc.get("spec") or {}, doc.get("status") or {}
    sidecars = {one["name"] for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"}
    total = len(spec.get("containers") or ()) + len(sidecars)
    tally = _tally(spec, status, sidecars)
    shown = str(tally.restarts)
    if tally.restarts and tally.last:
        shown = f"{tally.restarts} ({age(tally.last, now)} ago)"
    ips = status.get("podIPs") or ()
    return [
        meta["name"],
        f"{tally.ready}/{total}",
        _state(meta, status, tally.reason),
        shown,
        created(doc, now),
        (ips[0].get("ip") if ips else "") or _NONE,
        spec.get("nodeName") or _NONE,
        status.get("nominatedNodeName") or _NONE,
        _gates(spec, status),
    ]


def _tally(spec: Tree, status: Tree, sidecars: set[str]) -> _Tally:
    reason = status.get("reason") or status.get("phase") or ""
    conditions = status.get("conditions") or ()
    if any(c["type"] == "PodScheduled" and c.get("reason") == "SchedulingGated" for c in conditions):
        reason = "SchedulingGated"
    tally, of_sidecars = _Tally(reason), _Tally(reason)
    initializing = _initial(spec, status, sidecars, tally, of_sidecars)
    if initializing and not _true(conditions, "Initialized"):
        return tally
    tally.restarts, tally.last = of_sidecars.restarts, of_sidecars.last
    _main(status, tally)
    return tally


def _initial(spec: Tree, status: Tree, sidecars: set[str], tally: _Tally, of_sidecars: _Tally) -> bool:
    """Count the init containers; returns whether one of them has not ended."""
    for index, one in enumerate(status.get("initContainerStatuses") or ()):
        tally.restarted(one)
        sidecar = one["name"] in sidecars
        if sidecar:
            of_sidecars.restarted(one)
        state = one.get("state") or {}
        ended = state.get("terminated")
        if ended is not None and not ended.get("exitCode"):
            continue
        if sidecar and one.get("started"):
            tally.ready += bool(one.get("ready"))
            continue
        waiting = (state.get("waiting") or {}).get("reason") or ""
        if ended is not None:
            tally.reason = f"Init:{_ended(ended)}"
        elif waiting and waiting != "PodInitializing":
            tally.reason = f"Init:{waiting}"
        else:
            tally.reason = f"Init:{index}/{len(spec.get('initContainers') or ())}"
        return True
    return False


def _main(status: Tree, tally: _Tally) -> None:
    running, failure = False, ""
    for one in reversed(status.get("containerStatuses") or ()):
        tally.restarted(one)
        state = one.get("state") or {}
        waiting = (state.get("waiting") or {}).get("reason")
        ended = state.get("terminated")
        if waiting:
            tally.reason = waiting
        elif ended is not None:
            tally.reason = _ended(ended)
            if ended.get("exitCode"):
                failure = tally.reason
        elif one.get("ready") and state.get("running") is not None:
            running = True
            tally.ready += 1
    if tally.reason != "Completed":
        return
    if running and _true(status.get("conditions") or (), "Ready"):
        tally.reason = "Running"
    elif failure:
        tally.reason = failure
    elif running:
        tally.reason = "NotReady"


def _ended(ended: Tree) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"


def _state(meta: Tree, status: Tree, reason: str) -> str:
    if not meta.get("deletionTimestamp"):
        return reason
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return reason if status.get("phase") in _FINISHED else "Terminating"


def _gates(spec: Tree, status: Tree) -> str:
    gates = spec.get("readinessGates") or ()
    if not gates:
        return _NONE
    conditions = status.get("conditions") or ()
    met = sum(_true(conditions, gate["conditionType"]) for gate in gates)
    return f"{met}/{len(gates)}"


def _true(conditions: "list[Tree] | tuple[()]", type_: str) -> bool:
    for condition in conditions:
        if condition["type"] == type_:
            return bool(condition.get("status") == "True")
    return False


def completed(doc: Tree) -> list[Doc]:
    phase = (doc.get("status") or {}).get("phase")
    if phase not in _FINISHED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _FINISHED[phase]}]
