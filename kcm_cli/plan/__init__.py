"""Predicts what the controllers, the scheduler and the kubelets of a cluster would do, on a twin of it in this process.

    snapshot = await take("~/.kube/config")     # reads only, never Secrets; or load("cluster.kcm")
    answer = plan(snapshot, [Drain("node-1"), Scale(Target("deploy", "web"), 50)], Options(horizon_s=600))
    for problem in answer.problems: ...

``plan`` without changes is the takeover audit: the writes of kcm if it took over the lease now. It runs its own event
loop, so call it from synchronous code or from a thread. ``Twin`` is the cluster itself, to inspect while it runs.
docs/plan.md describes what is modelled and what is not.
"""

from kcm_cli.plan.answer import (
    Answer,
    Availability,
    Difference,
    Field,
    Fill,
    Happening,
    Object,
    OwnWrite,
    Problem,
    Risk,
    Source,
    Totals,
    Varies,
    Written,
)
from kcm_cli.plan.changes import (
    AddNode,
    Apply,
    Change,
    Delete,
    Drain,
    FailNode,
    Metric,
    Options,
    RemoveNode,
    Scale,
    SetImage,
    Target,
)
from kcm_cli.plan.files import load, save
from kcm_cli.plan.live import take
from kcm_cli.plan.planning import plan
from kcm_cli.plan.snapshot import Collection, Gap, Item, PlanError, Snapshot
from kcm_cli.plan.testing import TwinOf
from kcm_cli.plan.twin.twin import Twin

__all__ = [
    "AddNode",
    "Answer",
    "Apply",
    "Availability",
    "Change",
    "Collection",
    "Delete",
    "Difference",
    "Drain",
    "FailNode",
    "Field",
    "Fill",
    "Gap",
    "Happening",
    "Item",
    "Metric",
    "Object",
    "Options",
    "OwnWrite",
    "PlanError",
    "Problem",
    "Risk",
    "RemoveNode",
    "Scale",
    "SetImage",
    "Snapshot",
    "Source",
    "Target",
    "Totals",
    "Twin",
    "TwinOf",
    "Varies",
    "Written",
    "load",
    "plan",
    "save",
    "take",
]
