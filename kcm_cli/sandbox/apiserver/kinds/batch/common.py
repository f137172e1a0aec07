"""What the kinds of batch share."""

from kcm_cli.sandbox.apiserver.defaulting import fill, pod
from kcm_cli.sandbox.apiserver.strategy.warnings import pods
from kcm_cli.sandbox.apiserver.trees import places
from kcm_cli.sandbox.apiserver.types import FieldError, Tree


def unshown(path: str, detail: str) -> FieldError:
    """The error for an invalid value that is not printed."""
    return FieldError("FieldValueInvalid", path, f"Invalid value: {detail}")


def job_spec(spec: Tree) -> None:
    pod.template(spec)
    for pattern, _ in places(spec, "podFailurePolicy.rules[].onPodConditions[]"):
        fill.empty(pattern, status="True")


_SOFT_COMPLETIONS, _SOFT_PARALLELISM = 100_000, 10_000
_MANY_INDEXES = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, "
    "Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
)


def warnings_of_job_spec(spec: Tree, path: str) -> list[str]:
    found: list[str] = []
    completions, parallelism = spec.get("completions") or 0, spec.get("parallelism") or 0
    if spec.get("completionMode") == "Indexed" and completions > _SOFT_COMPLETIONS and parallelism > _SOFT_PARALLELISM:
        found.append(f"{path}: {_MANY_INDEXES}")
    return found + pods.of_template(spec.get("template"), f"{path}.template")
