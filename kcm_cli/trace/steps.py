"""What other sources than a manager's ring say that happened: steps, and where each is known from.

upstream: none
"""

import msgspec

AUDIT, OBJECT, MANAGED, EVENT, CONDITION, GUESS = (
    "audit log",
    "the object",
    "managedFields",
    "Event",
    "condition",
    "what is left",
)
"""Where a step is known from. OBJECT: a field that the API server sets itself. GUESS: nothing says it."""
SURE = frozenset((AUDIT, OBJECT))
"""The sources whose steps are known; those of the others are inferred."""
CREATED, CHANGED, SCALED, TAINTED, BOUND = "was created", "was changed", "was scaled", "was tainted", "was bound"
MARKED, DELETED, EVICTED = "was marked for deletion", "was deleted", "was evicted"
REFUSED, ENDED, IS, SAYS, WRITTEN = "refused", "ended", "is", "says", "its status was written"
ENDINGS = frozenset((MARKED, DELETED, EVICTED))
DEEDS = frozenset((CREATED, CHANGED, SCALED, TAINTED, BOUND, ENDED, *ENDINGS))
"""What others react to. The other verbs tell of a state."""


class Ref(msgspec.Struct, frozen=True):
    """An object. key: namespace/name. uid: "" if it is not known."""

    kind: str
    key: str
    uid: str = ""

    @property
    def place(self) -> tuple[str, str]:
        return self.kind, self.key


class Step(msgspec.Struct, frozen=True):
    """Something that happened to an object.

    at: Unix time; rough: it is a full second; vague: it is later than that, but when is not recorded. actor: who did
    it; "" if that is not known. trouble: it keeps something from being done. settles: it ends an earlier trouble of
    the object. count: how often it happened. behind: an object that the source itself names as the reason. makes: of
    what was refused, whether it is the creation of an object.
    """

    at: float
    verb: str
    about: Ref
    actor: str = ""
    source: str = OBJECT
    detail: str = ""
    rough: bool = False
    vague: bool = False
    trouble: bool = False
    settles: bool = False
    count: int = 1
    behind: Ref | None = None
    makes: bool = False

    @property
    def kind(self) -> str:
        return self.about.kind

    @property
    def key(self) -> str:
        return self.about.key

    @property
    def is_known(self) -> bool:
        return self.source in SURE


_ALIASES = {
    "daemon-set-controller": "daemonset-controller",
    "default-scheduler": "kube-scheduler",
    "generic-garbage-collector": "garbage-collector-controller",
    "horizontal-pod-autoscaler": "horizontal-pod-autoscaler-controller",
    "pod-garbage-collector": "pod-garbage-collector-controller",
    "controllermanager": "kube-controller-manager",
}
KUBELET = "kubelet of "
_ACCOUNTS = "system:serviceaccount:kube-system:"


def canonical(actor: str) -> str:
    """A program's name as kcm's own ring has it: controllers are called differently as users and in Events."""
    return _ALIASES.get(actor, actor)


def actor_of(user: str, agent: str = "") -> str:
    """Who a user of the audit log is. agent: the user agent, which tells the controllers of a manager that has one
    user for all of them apart."""
    if user.startswith(_ACCOUNTS):
        return canonical(user.removeprefix(_ACCOUNTS))
    if user.startswith("system:node:"):
        return f"{KUBELET}{user.removeprefix('system:node:')}"
    if user == "system:kcm-sandbox":
        return agent.partition("/")[0] or user
    if user == "system:kube-controller-manager":
        last = agent.rpartition("/")[2]
        return canonical(last) if last.islower() and " " not in last and "-" in last else "kube-controller-manager"
    return user.removeprefix("system:") if user == "system:kube-scheduler" else user


CONTROLLER_OF = {
    "ReplicaSet": "replicaset-controller",
    "ReplicationController": "replicationcontroller-controller",
    "StatefulSet": "statefulset-controller",
    "DaemonSet": "daemonset-controller",
    "Job": "job-controller",
    "CronJob": "cronjob-controller",
    "Deployment": "deployment-controller",
}
"""Who acts for an owner of a kind."""
MANAGERS = frozenset(("kube-controller-manager", "kcm"))
"""Who writes for all controllers, where nothing says which one it was."""
KIND_OF = {actor: kind for kind, actor in CONTROLLER_OF.items()} | {"replication-controller": "ReplicationController"}
KINDS_ABOVE = {
    "Pod": ("ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController"),
    "ReplicaSet": ("Deployment",),
    "Job": ("CronJob",),
}
"""The kinds of owners for which controllers make objects of a kind."""
