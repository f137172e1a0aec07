"""StatefulSet.

upstream: pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation,
pkg/registry/apps/statefulset/strategy.go, pkg/printers/internalversion/printers.go
"""

from kcm_cli.sandbox.apiserver.defaulting import fill, pod, volumes
from kcm_cli.sandbox.apiserver.defaulting.workloads import spec_of
from kcm_cli.sandbox.apiserver.kinds.apps import common
from kcm_cli.sandbox.apiserver.kinds.apps.common import READY
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.strategy.warnings import pods
from kcm_cli.sandbox.apiserver.strategy.warnings import storage as warnings_storage
from kcm_cli.sandbox.apiserver.strategy.warnings.workloads import changed
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, layout
from kcm_cli.sandbox.apiserver.tables.templates import containers
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import (
    errors,
    go_print,
    labels,
    metadata,
    numbers,
    pod_annotations,
    pod_template,
    rules,
)
from kcm_cli.sandbox.apiserver.validation.persistent_claim import validate_claim_spec

_BOUNDED = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
_MUTABLE = (
    *("replicas", "template", "updateStrategy", "minReadySeconds", "ordinals", "revisionHistoryLimit"),
    "persistentVolumeClaimRetentionPolicy",
)


def _check(doc: Tree, old: Tree | None) -> Errors:
    if old is None:
        return _of_spec(doc["spec"], new=True)
    known_bad = doc["spec"] != old["spec"] and any(_of_spec(old["spec"], new=False))
    return _of_spec(doc["spec"], new=False, check_template=not known_bad)


def _check_change(new: Tree, old: Tree) -> Errors:
    after, before = ({key: value for key, value in doc["spec"].items() if key not in _MUTABLE} for doc in (new, old))
    if after != before:
        yield errors.forbidden("spec", _IMMUTABLE_SPEC)


def _check_status(new: Tree, old: Tree) -> Errors:
    yield from _STATUS(new.get("status") or {}, "status")
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    yield from common.collisions_not_decremented(new, old)


def _of_spec(spec: Tree, *, new: bool, check_template: bool = True) -> Errors:
    yield from _SPEC[new](spec, "spec")
    yield from common.validate_selector(spec.get("selector"), "statefulset")
    yield from _template(spec, check_template)
    yield from pod_template.validate_long_running(spec.get("template") or {}, "StatefulSet")


def _strategy(strategy: Tree, path: str) -> Errors:
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type"):
        case "" | None:
            yield errors.required(path)
        case "OnDelete":
            if rolling is not None:
                shown = go_print.internal("apps.RollingUpdateStatefulSetStrategy", rolling)
                detail = "only allowed for updateStrategy 'RollingUpdate'"
                yield errors.invalid(f"{path}.rollingUpdate", shown, detail)
        case "RollingUpdate":
            yield from _ROLLING(strategy, path)
        case _:
            shown = go_print.internal("apps.StatefulSetUpdateStrategy", strategy)
            yield errors.invalid(path, shown, "must be 'RollingUpdate' or 'OnDelete'")


_management = rules.must(lambda policy: policy in ("OrderedReady", "Parallel"), "must be 'OrderedReady' or 'Parallel'")
_some = rules.must(common.amount, "cannot be 0")


def _spec(new: bool) -> rules.Rule:
    claims = rules.each("volumeClaimTemplates", rules.fields(rules.always("spec", validate_claim_spec, default={})))
    return rules.fields(
        rules.required("podManagementPolicy", _management),
        rules.always("updateStrategy", _strategy, default={}),
        rules.optional(
            "persistentVolumeClaimRetentionPolicy",
            rules.fields(
                rules.maybe_one_of("whenDeleted", "Retain", "Delete"),
                rules.maybe_one_of("whenScaled", "Retain", "Delete"),
            ),
        ),
        *([claims] if new else ()),
        *rules.counters("replicas", "minReadySeconds"),
        rules.optional("ordinals", rules.fields(*rules.counters("start"))),
        *([rules.nonempty("serviceName", rules.LABEL)] if new else ()),
    )


_SPEC = {new: _spec(new) for new in (False, True)}
_UNAVAILABLE = rules.optional("maxUnavailable", numbers.count_or_percent, _some, numbers.at_most_100_percent)
_ROLLING = rules.fields(rules.optional("rollingUpdate", rules.fields(*rules.counters("partition"), _UNAVAILABLE)))
_STATUS = rules.fields(
    *rules.counters("replicas", *_BOUNDED, "observedGeneration", "collisionCount"),
    numbers.not_above("replicas", *_BOUNDED),
    numbers.not_above("readyReplicas", "availableReplicas"),
)


def _template(spec: Tree, check_template: bool) -> Errors:
    compiled = labels.compile_selector(spec.get("selector"))
    if compiled is None:
        yield errors.invalid("spec.selector", labels.shown(spec.get("selector")), "")
        return
    template = _as_run(spec)
    yield from pod_template.validate_match(template, compiled)
    if check_template:
        yield from pod_template.validate_template(template, "spec.template")
    yield from _template_meta(template.get("metadata") or {}, template.get("spec") or {})


_IMMUTABLE_SPEC = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def _template_meta(meta: Tree, pod: Tree) -> Errors:
    """Check labels and annotations again, since upstream lists their errors twice."""
    yield from labels.validate_labels(meta.get("labels"), "spec.template.labels")
    if annotations := meta.get("annotations"):
        yield from labels.validate_annotations(annotations, "spec.template.annotations")
        yield from pod_annotations.validate_annotations(annotations, pod, "spec.template.annotations")


def _as_run(spec: Tree) -> Tree:
    """The template with the changes of the controller: a volume for each claim template, without ``hostname``."""
    template = spec.get("template") or {}
    claims = spec.get("volumeClaimTemplates") or ()
    pod = template.get("spec") or {}
    if not (claims or pod.get("subdomain") or pod.get("hostname")):
        return template
    own = {claim["metadata"].get("name", "") for claim in claims}
    volumes: list[Tree] = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in sorted(own)]
    volumes += [volume for volume in pod.get("volumes") or () if volume.get("name") not in own]
    changed = {key: value for key, value in pod.items() if key not in ("subdomain", "hostname", "volumes")}
    return {**template, "spec": {**changed, "volumes": volumes}}


def _defaults(doc: Tree) -> None:
    spec = spec_of(doc)
    fill.empty(spec, podManagementPolicy="OrderedReady")
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        fill.made(strategy, "rollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill.absent(strategy.get("rollingUpdate"), partition=0)
    fill.empty(fill.made(spec, "persistentVolumeClaimRetentionPolicy"), whenDeleted="Retain", whenScaled="Retain")
    fill.absent(spec, replicas=1, revisionHistoryLimit=10)
    spec.setdefault("serviceName", "")
    pod.template(spec)
    for claim in spec.get("volumeClaimTemplates") or ():
        claim.setdefault("metadata", {})
        claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
        volumes.claim(claim)
    fill.absent(doc["status"], replicas=0, availableReplicas=0)


_HISTORY = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"


def of_stateful_set(new: Tree, old: Tree | None) -> list[str]:
    """Warnings about a StatefulSet."""
    spec, found = new["spec"], list[str]()
    if changed(new, old):
        found += pods.of_template(spec.get("template"), "spec.template")
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        path = f"spec.volumeClaimTemplates[{index}]"
        found += warnings_storage.of_claim_spec(claim.get("spec") or {}, path if old is None else f"{path}.Spec")
    return [*found, _HISTORY] if (spec.get("revisionHistoryLimit") or 0) < 0 else found


KIND = Kind(
    "apps",
    "statefulsets",
    defaults=_defaults,
    strategy=Strategy(
        gated=("spec.updateStrategy.rollingUpdate.maxUnavailable",),  # MaxUnavailableStatefulSet
        template="spec.template",
        new_status={"replicas": 0, "availableReplicas": 0},
        generation=True,
        names=metadata.label,
        check=_check,
        check_change=_check_change,
        check_status=_check_status,
        warn=of_stateful_set,
    ),
    table=layout(NAME, READY, AGE, *containers("spec.template")),
)
