"""Tables of pods and what makes pods.

upstream: pkg/printers/internalversion/printers.go (v1.36)
"""

from datetime import datetime

from kcm_cli.machinery import codec, labels
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, age, created, flag, number, wide
from kcm_cli.sandbox.apiserver.types import Tree

CONTAINERS = wide("Containers", "Names of each container in the template.")
IMAGES = wide("Images", "Images referenced by each container in the template.")
NONE = "<none>"


def containers(template: Tree | None) -> list[object]:
    """Names and images of a template's containers."""
    found = ((template or {}).get("spec") or {}).get("containers") or ()
    return [",".join(one["name"] for one in found), ",".join(one.get("image", "") for one in found)]


def label_set(found: dict[str, str] | None) -> str:
    """``a=b,c=d``, or a word for nothing."""
    return labels.format_set(found) if found else NONE


def selector_text(selector: Tree | None) -> str:
    """A label selector as text."""
    parsed = None if selector is None else codec.decode(codec.encode(selector), labels.LabelSelector)
    return labels.format_label_selector(parsed)


def _pod_template(doc: Tree, now: datetime) -> list[object]:
    template = doc.get("template") or {}
    return [doc["metadata"]["name"], *containers(template), label_set((template.get("metadata") or {}).get("labels"))]


def _replicas(doc: Tree, now: datetime) -> list[object]:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    counts = [spec.get("replicas") or 0, status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [doc["metadata"]["name"], *counts, created(doc, now), *containers(spec.get("template"))]


def _controller(doc: Tree, now: datetime) -> list[object]:
    return [*_replicas(doc, now), label_set((doc.get("spec") or {}).get("selector"))]


def _replica_set(doc: Tree, now: datetime) -> list[object]:
    return [*_replicas(doc, now), selector_text((doc.get("spec") or {}).get("selector"))]


_DAEMON_COUNTS = (
    "desiredNumberScheduled",
    "currentNumberScheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberAvailable",
)


def _daemon_set(doc: Tree, now: datetime) -> list[object]:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    template = spec.get("template") or {}
    nodes = label_set((template.get("spec") or {}).get("nodeSelector"))
    return [
        doc["metadata"]["name"],
        *(status.get(field, 0) for field in _DAEMON_COUNTS),
        nodes,
        created(doc, now),
        *containers(template),
        selector_text(spec.get("selector")),
    ]


def _deployment(doc: Tree, now: datetime) -> list[object]:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    selector = selector_text(spec.get("selector"))
    return [
        doc["metadata"]["name"],
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas') or 0}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        created(doc, now),
        *containers(spec.get("template")),
        "" if selector == NONE else selector,
    ]


def _stateful_set(doc: Tree, now: datetime) -> list[object]:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas') or 0}"
    return [doc["metadata"]["name"], ready, created(doc, now), *containers(spec.get("template"))]


_JOB_STATES = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def _job(doc: Tree, now: datetime) -> list[object]:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    succeeded, completions = status.get("succeeded", 0), spec.get("completions")
    if completions is None:
        parallelism = spec.get("parallelism") or 0
        done = f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"
    else:
        done = f"{succeeded}/{completions}"
    return [
        doc["metadata"]["name"],
        _job_state(doc),
        done,
        _job_duration(status, now),
        created(doc, now),
        *containers(spec.get("template")),
        selector_text(spec.get("selector")),
    ]


def _job_state(doc: Tree) -> str:
    conditions = (doc.get("status") or {}).get("conditions") or ()
    true = {one["type"] for one in conditions if one.get("status") == "True"}
    for condition, word in _JOB_STATES:
        if condition in true or (not condition and doc["metadata"].get("deletionTimestamp")):
            return word
    return "Running"


def _job_duration(status: Tree, now: datetime) -> str:
    start, end = status.get("startTime"), status.get("completionTime")
    if not start:
        return ""
    from_end = now if not end else datetime.fromisoformat(end)
    return age(start, from_end)


def _cron_job(doc: Tree, now: datetime) -> list[object]:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    last = status.get("lastScheduleTime")
    suspend = str(spec["suspend"]) if isinstance(spec.get("suspend"), bool) else "<unset>"
    return [
        doc["metadata"]["name"],
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        suspend,
        len(status.get("active") or ()),
        age(last, now) if last else NONE,
        created(doc, now),
        *containers(job.get("template")),
        selector_text(job.get("selector")),
    ]


def _revision(doc: Tree, now: datetime) -> list[object]:
    owner = next((one for one in doc["metadata"].get("ownerReferences") or () if one.get("controller")), None)
    name = NONE
    if owner is not None:
        group, slash, _ = owner["apiVersion"].rpartition("/")
        kind = f"{owner['kind']}.{group}" if slash else owner["kind"]
        name = f"{kind.lower()}/{owner['name']}"
    return [doc["metadata"]["name"], name, doc.get("revision", 0), created(doc, now)]


def _autoscaler(doc: Tree, now: datetime) -> list[object]:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    target = spec.get("scaleTargetRef") or {}
    least = spec.get("minReplicas")
    return [
        doc["metadata"]["name"],
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics(spec.get("metrics") or (), status.get("currentMetrics") or ()),
        "<unset>" if least is None else str(least),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        created(doc, now),
    ]


_SOURCES = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _metrics(specs: "list[Tree] | tuple[()]", states: "list[Tree] | tuple[()]") -> str:
    if not specs:
        return NONE
    texts = []
    for index, spec in enumerate(specs):
        source = _SOURCES.get(spec["type"])
        state = states[index] if index < len(states) else {}
        texts.append("<unknown type>" if source is None else _metric(spec["type"], spec[source], state.get(source)))
    shown = ", ".join(texts[:2])
    return f"{shown} + {len(texts) - 2} more..." if len(texts) > 2 else shown


def _metric(type_: str, spec: Tree, state: Tree | None) -> str:
    target, current = spec.get("target") or {}, (state or {}).get("current") or {}
    unknown = "<unknown>"
    if type_ == "Pods":
        return f"{current.get('averageValue') or unknown}/{target.get('averageValue', '')}"
    named = f"{spec['name']}: " if type_ in ("Resource", "ContainerResource") else ""
    if target.get("averageValue") is not None:
        suffix = "" if named else " (avg)"
        return f"{named}{current.get('averageValue') or unknown}/{target['averageValue']}{suffix}"
    if not named:
        return f"{current.get('value') or unknown}/{target.get('value', '')}"
    now, wanted = current.get("averageUtilization"), target.get("averageUtilization")
    shown = unknown if now is None else f"{now}%"
    return f"{named}{shown}/{'<auto>' if wanted is None else f'{wanted}%'}"


def _budget(doc: Tree, now: datetime) -> list[object]:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    return [
        doc["metadata"]["name"],
        "N/A" if least is None else str(least),
        "N/A" if most is None else str(most),
        status.get("disruptionsAllowed", 0),
        created(doc, now),
    ]


def _counts(kind: str) -> tuple[Column, ...]:
    spec, status = f"{kind}Spec", f"{kind}Status"
    return (
        NAME,
        number("Desired", f"{spec}.replicas"),
        number("Current", f"{status}.replicas"),
        number("Ready", f"{status}.readyReplicas"),
        AGE,
        CONTAINERS,
        IMAGES,
        wide("Selector", f"{spec}.selector"),
    )


def _narrow(column: Column) -> Column:
    return Column(column.name, column.about)


_READY = Column("Ready", "Number of the pod with ready state")
_JOB_SELECTOR = wide("Selector", "JobSpec.selector")

LAYOUTS: dict[str, Layout] = {
    "podtemplates": Layout(
        (NAME, _narrow(CONTAINERS), _narrow(IMAGES), Column("Pod Labels", "The labels for the pod template.")),
        _pod_template,
    ),
    "replicationcontrollers": Layout(_counts("ReplicationController"), _controller),
    "replicasets.apps": Layout(_counts("ReplicaSet"), _replica_set),
    "daemonsets.apps": Layout(
        (
            NAME,
            number("Desired", "DaemonSetStatus.desiredNumberScheduled"),
            number("Current", "DaemonSetStatus.currentNumberScheduled"),
            number("Ready", "DaemonSetStatus.numberReady"),
            number("Up-to-date", "DaemonSetStatus.updatedNumberScheduled"),
            number("Available", "DaemonSetStatus.numberAvailable"),
            Column("Node Selector", "PodSpec.nodeSelector"),
            AGE,
            CONTAINERS,
            IMAGES,
            wide("Selector", "DaemonSetSpec.selector"),
        ),
        _daemon_set,
    ),
    "deployments.apps": Layout(
        (
            NAME,
            _READY,
            Column("Up-to-date", "DeploymentStatus.updatedReplicas"),
            Column("Available", "DeploymentStatus.availableReplicas"),
            AGE,
            CONTAINERS,
            IMAGES,
            wide("Selector", "DeploymentSpec.selector"),
        ),
        _deployment,
    ),
    "statefulsets.apps": Layout((NAME, _READY, AGE, CONTAINERS, IMAGES), _stateful_set),
    "controllerrevisions.apps": Layout(
        (
            NAME,
            Column("Controller", "Controller of the object"),
            Column("Revision", "ControllerRevision.revision"),
            AGE,
        ),
        _revision,
    ),
    "jobs.batch": Layout(
        (
            NAME,
            Column("Status", "Status of the job."),
            Column("Completions", "JobStatus.succeeded"),
            Column("Duration", "Time required to complete the job."),
            AGE,
            CONTAINERS,
            IMAGES,
            _JOB_SELECTOR,
        ),
        _job,
    ),
    "cronjobs.batch": Layout(
        (
            NAME,
            Column("Schedule", "CronJobSpec.schedule"),
            Column("Timezone", "CronJobSpec.timeZone"),
            flag("Suspend", "CronJobSpec.suspend"),
            number("Active", "CronJobStatus.active"),
            Column("Last Schedule", "CronJobStatus.lastScheduleTime"),
            AGE,
            CONTAINERS,
            IMAGES,
            _JOB_SELECTOR,
        ),
        _cron_job,
    ),
    "horizontalpodautoscalers.autoscaling": Layout(
        (
            NAME,
            Column("Reference", "HorizontalPodAutoscalerSpec.scaleTargetRef"),
            Column("Targets", "HorizontalPodAutoscalerSpec.metrics"),
            Column("MinPods", "HorizontalPodAutoscalerSpec.minReplicas"),
            Column("MaxPods", "HorizontalPodAutoscalerSpec.maxReplicas"),
            Column("Replicas", "HorizontalPodAutoscalerStatus.currentReplicas"),
            AGE,
        ),
        _autoscaler,
    ),
    "poddisruptionbudgets.policy": Layout(
        (
            NAME,
            Column("Min Available", "The minimum number of pods that must be available."),
            Column("Max Unavailable", "The maximum number of pods that may be unavailable."),
            number("Allowed Disruptions", "Calculated number of pods that may be disrupted at this time."),
            AGE,
        ),
        _budget,
    ),
}


def scale_cells(doc: Tree, now: datetime) -> list[object]:
    """The cells of a Scale."""
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    return [doc["metadata"]["name"], spec.get("replicas", 0), status.get("replicas", 0), created(doc, now)]


SCALE = Layout(
    (
        Column("Name", "ObjectMeta.name"),
        number("Desired", "ScaleSpec.replicas"),
        number("Available", "ScaleStatus.replicas"),
        AGE,
    ),
    scale_cells,
)

CUSTOM_SCALE = Layout(
    (
        NAME,
        number("Desired", "Number of desired replicas"),
        number("Available", "Number of actual replicas"),
        Column("Age", "ObjectMeta.creationTimestamp", "date"),
    ),
    scale_cells,
)
