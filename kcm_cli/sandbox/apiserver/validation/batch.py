"""Jobs and CronJobs.

Source: pkg/apis/batch/validation/validation.go.
"""

from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, metadata, pod_template


def validate_job(doc: Tree) -> list[FieldError]:
    found = metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    return found + _job_spec(doc["spec"], "spec")


def validate_job_update(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    return found + _job_spec(new["spec"], "spec")


def validate_job_status(new: Tree, old: Tree) -> list[FieldError]:
    return metadata.validate_meta_update(new["metadata"], old["metadata"])


def _job_spec(spec: Tree, path: str) -> list[FieldError]:
    selector = spec.get("selector")
    found: list[FieldError] = []
    if selector is None:
        found.append(errors.required(f"{path}.selector"))
    template = spec.get("template") or {}
    compiled = labels.compile_selector(selector)
    if compiled is not None:
        found += pod_template.validate_match(template, compiled, f"{path}.template")
    return found + _job_template(template, path)


def _job_template(template: Tree, path: str) -> list[FieldError]:
    found = pod_template.validate_template(template, f"{path}.template")
    if (template.get("spec") or {}).get("restartPolicy") not in ("OnFailure", "Never"):
        detail = 'valid values: "OnFailure", "Never"'
        found.append(errors.required(f"{path}.template.spec.restartPolicy", detail))
    return found


def validate_cron_job(doc: Tree) -> list[FieldError]:
    found = metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    return found + _cron_job_spec(doc["spec"])


def validate_cron_job_update(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    return found + _cron_job_spec(new["spec"])


def _cron_job_spec(spec: Tree) -> list[FieldError]:
    found: list[FieldError] = []
    if not spec.get("schedule"):
        found.append(errors.required("spec.schedule"))
    path = "spec.jobTemplate.spec"
    return found + _job_template(((spec.get("jobTemplate") or {}).get("spec") or {}).get("template") or {}, path)
