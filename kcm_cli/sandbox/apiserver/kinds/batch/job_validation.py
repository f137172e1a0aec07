"""Jobs.

Source: pkg/apis/batch/validation/validation.go#ValidateJob, #ValidateJobUpdate.
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.kinds.batch import job_policies
from kcm_cli.sandbox.apiserver.trees import keep
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, labels, metadata, numbers, pod_template

_COUNTERS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_INDEXES_MAX = 100_000
_PARALLELISM_MAX, _FAILED_MAX = 10_000, 10_000
_MANAGED_BY_MAX = 63
_INDEXED = "requires indexed completion mode"
_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_STRUCTS = {"podFailurePolicy": "batch.PodFailurePolicy", "successPolicy": "batch.SuccessPolicy"}


def validate_job(doc: Tree) -> list[FieldError]:
    """A new job."""
    return _job(doc, prefixed=True)


def _job(doc: Tree, *, prefixed: bool, known: Tree | None = None) -> list[FieldError]:
    meta, spec = doc["metadata"], doc["spec"]
    found = metadata.validate_meta(meta, True, metadata.subdomain)
    found += _generated_selector(doc, prefixed)
    found += _spec(spec, known)
    completions = spec.get("completions")
    if spec.get("completionMode") == "Indexed" and completions and completions > 0:
        hostname = f"{meta.get('name', '')}-{completions - 1}"
        if names.dns1123_label(hostname):
            detail = f"will not able to create pod with invalid DNS label: {hostname}"
            found.append(errors.invalid("metadata.name", meta.get("name", ""), detail))
    return found


def _generated_selector(doc: Tree, prefixed: bool) -> list[FieldError]:
    meta, spec = doc["metadata"], doc["spec"]
    selector = spec.get("selector")
    if spec.get("manualSelector") or selector is None:
        return []
    uid, name = meta.get("uid", ""), meta.get("name", "")
    template = (spec.get("template") or {}).get("metadata") or {}
    kept = slice(None) if prefixed else slice(1)
    expected = dict.fromkeys(_UID_LABELS[kept], uid) | dict.fromkeys(_NAME_LABELS[kept], name)
    found = [] if uid else [errors.required("metadata.uid")]
    for key in (_UID_LABELS[0], _NAME_LABELS[0], _UID_LABELS[1], _NAME_LABELS[1]):
        if key in expected:
            found += _has_label(template, key, expected[key])
    compiled = labels.compile_selector(selector)
    if compiled is not None and not compiled.matches(expected):
        found.append(errors.invalid("spec.selector", labels.shown(selector), "`selector` not auto-generated"))
    return found


def _has_label(meta: Tree, key: str, expected: str) -> list[FieldError]:
    found = meta.get("labels") or {}
    path = "spec.template.metadata.labels"
    if key not in found:
        return [errors.required(f"{path}[{key}]", f"must be '{expected}'")]
    if found[key] != expected:
        shown = errors.sorted_map(found)
        return [errors.invalid(f"{path}[{key}]", shown, f"must be '{expected}'")]
    return []


def _spec(spec: Tree, known: Tree | None) -> list[FieldError]:
    found = validate_spec_of_template(spec, "spec", known)
    selector = spec.get("selector")
    if selector is None:
        found.append(errors.required("spec.selector"))
    else:
        lenient = labels.has_invalid_value((known or {}).get("selector"))
        found += labels.validate_selector(selector, "spec.selector", lenient_values=lenient)
    compiled = labels.compile_selector(selector)
    if compiled is not None:
        found += pod_template.validate_match(spec.get("template") or {}, compiled, "spec.template")
    return found


def validate_spec_of_template(spec: Tree, path: str, known: Tree | None = None) -> list[FieldError]:
    """What holds for jobs and for the templates of CronJobs alike."""
    found = numbers.non_negative(spec, _COUNTERS, path)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        found.append(errors.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    managed_by = spec.get("managedBy")
    if managed_by is not None:
        found += labels.domain_prefixed_path(managed_by, f"{path}.managedBy")
        if len(managed_by.encode()) > _MANAGED_BY_MAX:
            found.append(errors.too_long(f"{path}.managedBy", _MANAGED_BY_MAX))
    found += _mode(spec, path)
    if spec.get("podFailurePolicy") is not None:
        found += job_policies.validate_failure_policy(spec, f"{path}.podFailurePolicy")
    if spec.get("successPolicy") is not None:
        found += job_policies.validate_success_policy(spec, f"{path}.successPolicy")
    found += job_policies.validate_replacement(spec, f"{path}.podReplacementPolicy")
    template = spec.get("template") or {}
    before = None if known is None else known.get("template")
    found += pod_template.validate_template(template, f"{path}.template", before)
    return found + _restart_policy(spec, template, f"{path}.template.spec.restartPolicy")


def _restart_policy(spec: Tree, template: Tree, path: str) -> list[FieldError]:
    policy = (template.get("spec") or {}).get("restartPolicy", "")
    if policy in ("Always", ""):
        return [errors.required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [errors.not_supported(path, policy, ["OnFailure", "Never"])]
    if spec.get("podFailurePolicy") is not None and policy != "Never":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        return [errors.invalid(path, policy, detail)]
    return []


def _mode(spec: Tree, path: str) -> list[FieldError]:
    mode = spec.get("completionMode")
    found: list[FieldError] = []
    if mode is not None and mode not in ("NonIndexed", "Indexed"):
        found.append(errors.not_supported(f"{path}.completionMode", mode, ["NonIndexed", "Indexed"]))
    if mode == "Indexed":
        found += _indexed(spec, path)
    elif mode in (None, "NonIndexed"):
        for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(field) is not None:
                found.append(errors.invalid(f"{path}.{field}", spec[field], _INDEXED))
    return found


def _indexed(spec: Tree, path: str) -> list[FieldError]:
    completions, parallelism = spec.get("completions"), spec.get("parallelism", 0)
    failed = spec.get("maxFailedIndexes")
    found: list[FieldError] = []
    if completions is None:
        found.append(errors.required(f"{path}.completions", "when completion mode is Indexed"))
    if parallelism > _INDEXES_MAX:
        detail = f"must be less than or equal to {_INDEXES_MAX} when completion mode is Indexed"
        found.append(errors.invalid(f"{path}.parallelism", parallelism, detail))
    if failed is not None:
        if completions is not None and failed > completions:
            detail = "must be less than or equal to completions"
            found.append(errors.invalid(f"{path}.maxFailedIndexes", failed, detail))
        if failed > _INDEXES_MAX:
            detail = f"must be less than or equal to {_INDEXES_MAX}"
            found.append(errors.invalid(f"{path}.maxFailedIndexes", failed, detail))
    if completions is not None and completions > _INDEXES_MAX and spec.get("backoffLimitPerIndex") is not None:
        found += _many(parallelism, failed, path)
    return found


def _many(parallelism: int, failed: int | None, path: str) -> list[FieldError]:
    """More indexes than can be tracked one by one."""
    rest = f"when completions are above {_INDEXES_MAX} and used with backoff limit per index"
    found: list[FieldError] = []
    if failed is None:
        detail = f"must be specified when completions is above {_INDEXES_MAX}"
        found.append(errors.required(f"{path}.maxFailedIndexes", detail))
    if parallelism > _PARALLELISM_MAX:
        detail = f"must be less than or equal to {_PARALLELISM_MAX} {rest}"
        found.append(errors.invalid(f"{path}.parallelism", parallelism, detail))
    if failed is not None and failed > _FAILED_MAX:
        detail = f"must be less than or equal to {_FAILED_MAX} {rest}"
        found.append(errors.invalid(f"{path}.maxFailedIndexes", failed, detail))
    return found


def validate_job_update(new: Tree, old: Tree) -> list[FieldError]:
    """A changed job."""
    spec, known = new["spec"], old["spec"]
    before = ((known.get("template") or {}).get("metadata") or {}).get("labels") or {}
    prefixed = _NAME_LABELS[1] in before and _UID_LABELS[1] in before
    found = _job(new, prefixed=prefixed, known=known)
    found += metadata.validate_meta_update(new["metadata"], old["metadata"])
    found += _spec(spec, known)
    found += _completions(spec, known)
    found += _fixed(spec, known, "selector")
    found += _template(spec, known, old)
    for field in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        found += _fixed(spec, known, field)
    return found


def _fixed(spec: Tree, known: Tree, field: str) -> list[FieldError]:
    value = spec.get(field)
    if value == known.get(field):
        return []
    shown: object = value
    if field == "selector":
        shown = labels.shown(value)
    elif field in _STRUCTS and value is not None:
        shown = go_print.internal(_STRUCTS[field], value)
    return [errors.invalid(f"spec.{field}", shown, errors.IMMUTABLE)]


def _completions(spec: Tree, known: Tree) -> list[FieldError]:
    completions = spec.get("completions")
    if completions == known.get("completions"):
        return []
    if spec.get("completionMode") != "Indexed":
        return [errors.invalid("spec.completions", completions, errors.IMMUTABLE)]
    if completions is None or completions == spec.get("parallelism"):
        return []
    detail = "can only be modified in tandem with spec.parallelism"
    return [errors.invalid("spec.completions", completions, detail)]


def _template(spec: Tree, known: Tree, old: Tree) -> list[FieldError]:
    """The pods of a job change only while it is suspended, and only in where they run and what they get."""
    template, before = spec.get("template") or {}, known.get("template") or {}
    if template == before:
        return []
    if not known.get("suspend") or not _idle(old.get("status") or {}):
        return _template_fixed(template, before)
    after, allowed = template.get("spec") or {}, _with_directives(template, before)["spec"]
    for field in ("containers", "initContainers"):
        mine, theirs = after.get(field) or [], allowed.get(field) or []
        if theirs and len(mine) == len(theirs):
            pairs = zip(theirs, mine, strict=True)
            allowed[field] = [_with_resources(container, new) for container, new in pairs]
    if after == allowed:
        return []
    return [errors.invalid("spec.template.spec", go_print.internal("core.PodSpec", after), errors.IMMUTABLE)]


def _idle(status: Tree) -> bool:
    conditions = status.get("conditions") or ()
    suspended = any(item.get("type") == "Suspended" and item.get("status") == "True" for item in conditions)
    return (status.get("startTime") is None or suspended) and not status.get("active")


def _template_fixed(template: Tree, before: Tree) -> list[FieldError]:
    if template == before:
        return []
    shown = go_print.internal("core.PodTemplateSpec", template)
    return [errors.invalid("spec.template", shown, errors.IMMUTABLE)]


def _with_resources(container: Tree, new: Tree) -> Tree:
    if container.get("name") != new.get("name"):
        return container
    return {**container, "resources": new.get("resources") or {}}


def _with_directives(template: Tree, before: Tree) -> Tree:
    """The old template with the new one's labels, annotations and rules of where to run."""
    after, spec = template.get("spec") or {}, dict(before.get("spec") or {})
    for field in ("nodeSelector", "tolerations", "schedulingGates"):
        keep(spec, after, field)
    affinity = dict(spec.get("affinity") or {})
    keep(affinity, after.get("affinity") or {}, "nodeAffinity")
    if affinity or after.get("affinity") is not None:
        spec["affinity"] = affinity
    else:
        spec.pop("affinity", None)
    meta = dict(before.get("metadata") or {})
    for field in ("labels", "annotations"):
        keep(meta, template.get("metadata") or {}, field)
    return {**before, "metadata": meta, "spec": spec}
