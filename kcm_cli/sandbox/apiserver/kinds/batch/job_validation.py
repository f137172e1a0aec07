"""Jobs.

upstream: pkg/apis/batch/validation/validation.go#ValidateJob, #ValidateJobUpdate
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.kinds.batch import job_policies
from kcm_cli.sandbox.apiserver.trees import keep
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, labels, pod_template, rules


def check(doc: Tree, old: Tree | None) -> Errors:
    """Check a new or changed Job."""
    meta, spec = doc["metadata"], doc["spec"]
    yield from _generated_selector(doc, old)
    yield from _spec(spec, None if old is None else old["spec"])
    completions = spec.get("completions")
    if spec.get("completionMode") == "Indexed" and completions and completions > 0:
        hostname = f"{meta.get('name', '')}-{completions - 1}"
        if names.dns1123_label(hostname):
            detail = f"will not able to create pod with invalid DNS label: {hostname}"
            yield errors.invalid("metadata.name", meta.get("name", ""), detail)


_INDEXES_MAX = 100_000
_PARALLELISM_MAX, _FAILED_MAX = 10_000, 10_000


def validate_spec_of_template(spec: Tree, path: str, known: Tree | None = None) -> Errors:
    """Check the spec of a Job or of a CronJob's template."""
    yield from _SPEC(spec, path)
    if spec.get("podFailurePolicy") is not None:
        yield from job_policies.validate_failure_policy(spec, f"{path}.podFailurePolicy")
    if spec.get("successPolicy") is not None:
        yield from job_policies.validate_success_policy(spec, f"{path}.successPolicy")
    yield from job_policies.validate_replacement(spec, path)
    template = spec.get("template") or {}
    before = None if known is None else known.get("template")
    yield from pod_template.validate_template(template, f"{path}.template", before)
    yield from _restart_policy(spec, template, f"{path}.template.spec.restartPolicy")


def _restart_policy(spec: Tree, template: Tree, path: str) -> Errors:
    policy = (template.get("spec") or {}).get("restartPolicy", "")
    if policy in ("Always", ""):
        yield errors.required(path, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield errors.not_supported(path, policy, ["OnFailure", "Never"])
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        yield errors.invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')


def _limit_per_index(spec: Tree, path: str) -> Errors:
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield errors.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")


def _mode(spec: Tree, path: str) -> Errors:
    mode = spec.get("completionMode")
    if mode == "Indexed":
        yield from _indexed(spec, path)
    elif mode in (None, "NonIndexed"):
        for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(field) is not None:
                yield errors.invalid(f"{path}.{field}", spec[field], _INDEXED)


_SPEC = rules.fields(
    *rules.counters("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"),
    *rules.counters("backoffLimitPerIndex", "maxFailedIndexes"),
    _limit_per_index,
    rules.optional("managedBy", labels.domain_prefixed_path, rules.max_bytes(63)),
    rules.maybe_one_of("completionMode", "NonIndexed", "Indexed"),
    _mode,
)


def _indexed(spec: Tree, path: str) -> Errors:
    completions, parallelism = spec.get("completions"), spec.get("parallelism", 0)
    failed = spec.get("maxFailedIndexes")
    if completions is None:
        yield errors.required(f"{path}.completions", "when completion mode is Indexed")
    if parallelism > _INDEXES_MAX:
        detail = f"must be less than or equal to {_INDEXES_MAX} when completion mode is Indexed"
        yield errors.invalid(f"{path}.parallelism", parallelism, detail)
    if failed is not None and completions is not None and failed > completions:
        yield errors.invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions")
    if failed is not None and failed > _INDEXES_MAX:
        yield errors.invalid(f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {_INDEXES_MAX}")
    if completions is not None and completions > _INDEXES_MAX and spec.get("backoffLimitPerIndex") is not None:
        yield from _many(parallelism, failed, path)


def check_change(new: Tree, old: Tree) -> Errors:
    """What an update of a Job must not change."""
    spec, known = new["spec"], old["spec"]
    yield from _spec(spec, known)
    yield from _completions(spec, known)
    selector = spec.get("selector")
    yield from errors.fixed("spec.selector", selector, known.get("selector"), labels.shown(selector))
    yield from _template(spec, known, old)
    for field in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        shown = value = spec.get(field)
        if field in _STRUCTS and value is not None:
            shown = go_print.internal(_STRUCTS[field], value)
        yield from errors.fixed(f"spec.{field}", value, known.get(field), shown)


_INDEXED = "requires indexed completion mode"
UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_STRUCTS = {"podFailurePolicy": "batch.PodFailurePolicy", "successPolicy": "batch.SuccessPolicy"}


def _generated_selector(doc: Tree, old: Tree | None) -> Errors:
    meta, spec = doc["metadata"], doc["spec"]
    selector = spec.get("selector")
    if spec.get("manualSelector") or selector is None:
        return
    uid, name = meta.get("uid", ""), meta.get("name", "")
    template = (spec.get("template") or {}).get("metadata") or {}
    before = {} if old is None else ((old["spec"].get("template") or {}).get("metadata") or {}).get("labels") or {}
    prefixed = old is None or (NAME_LABELS[1] in before and UID_LABELS[1] in before)
    kept = slice(None) if prefixed else slice(1)
    expected = dict.fromkeys(UID_LABELS[kept], uid) | dict.fromkeys(NAME_LABELS[kept], name)
    if not uid:
        yield errors.required("metadata.uid")
    for key in (UID_LABELS[0], NAME_LABELS[0], UID_LABELS[1], NAME_LABELS[1]):
        if key in expected:
            yield from _has_label(template, key, expected[key])
    compiled = labels.compile_selector(selector)
    if compiled is not None and not compiled.matches(expected):
        yield errors.invalid("spec.selector", labels.shown(selector), "`selector` not auto-generated")


def _has_label(meta: Tree, key: str, expected: str) -> Errors:
    found = meta.get("labels") or {}
    path = "spec.template.metadata.labels"
    if key not in found:
        return [errors.required(f"{path}[{key}]", f"must be '{expected}'")]
    if found[key] != expected:
        shown = errors.sorted_map(found)
        return [errors.invalid(f"{path}[{key}]", shown, f"must be '{expected}'")]
    return []


def _spec(spec: Tree, known: Tree | None) -> Errors:
    yield from validate_spec_of_template(spec, "spec", known)
    selector = spec.get("selector")
    if selector is None:
        yield errors.required("spec.selector")
    else:
        lenient = labels.has_invalid_value((known or {}).get("selector"))
        yield from labels.validate_selector(selector, "spec.selector", lenient_values=lenient)
    compiled = labels.compile_selector(selector)
    if compiled is not None:
        yield from pod_template.validate_match(spec.get("template") or {}, compiled)


def _many(parallelism: int, failed: int | None, path: str) -> Errors:
    """Check a Job with more than 100,000 completions."""
    rest = f"when completions are above {_INDEXES_MAX} and used with backoff limit per index"
    if failed is None:
        yield errors.required(f"{path}.maxFailedIndexes", f"must be specified when completions is above {_INDEXES_MAX}")
    if parallelism > _PARALLELISM_MAX:
        detail = f"must be less than or equal to {_PARALLELISM_MAX} {rest}"
        yield errors.invalid(f"{path}.parallelism", parallelism, detail)
    if failed is not None and failed > _FAILED_MAX:
        yield errors.invalid(f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {_FAILED_MAX} {rest}")


def _completions(spec: Tree, known: Tree) -> Errors:
    completions = spec.get("completions")
    if completions == known.get("completions"):
        return []
    if spec.get("completionMode") != "Indexed":
        return [errors.invalid("spec.completions", completions, errors.IMMUTABLE)]
    if completions is None or completions == spec.get("parallelism"):
        return []
    return [errors.invalid("spec.completions", completions, "can only be modified in tandem with spec.parallelism")]


def _template(spec: Tree, known: Tree, old: Tree) -> Errors:
    """Check that the template changes only while the Job is suspended, and only in scheduling directives and
    resources."""
    template, before = spec.get("template") or {}, known.get("template") or {}
    if template == before:
        return []
    if not known.get("suspend") or not _idle(old.get("status") or {}):
        return [errors.invalid("spec.template", go_print.internal("core.PodTemplateSpec", template), errors.IMMUTABLE)]
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


def _with_resources(container: Tree, new: Tree) -> Tree:
    if container.get("name") != new.get("name"):
        return container
    return {**container, "resources": new.get("resources") or {}}


def _with_directives(template: Tree, before: Tree) -> Tree:
    """The old template with the new labels, annotations and scheduling directives."""
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
