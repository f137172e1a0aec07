"""PodSecurity: checks pods against the levels in their namespace's labels.

The enforced level applies to pods; the warn level applies to pods and pod templates. If the enforced level of a
namespace gets stricter, warnings name the violations of its pods.

upstream: staging/src/k8s.io/pod-security-admission/admission, plugin/pkg/admission/security/podsecurity
"""

from collections.abc import Iterable

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.admission.pod_security.evaluator import evaluate
from kcm_cli.sandbox.apiserver.admission.pod_security.findings import Finding
from kcm_cli.sandbox.apiserver.admission.pod_security.levels import (
    OPEN,
    PRIVILEGED,
    LevelVersion,
    policy_of,
)
from kcm_cli.sandbox.apiserver.errors import forbidden, invalid
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import Attributes, Tree

_NAMESPACES, _PODS = GVR("", "v1", "namespaces"), GVR("", "v1", "pods")
_MAX_PODS = 3000
TEMPLATED = frozenset(
    {
        ("", "replicationcontrollers"),
        ("", "podtemplates"),
        ("apps", "replicasets"),
        ("apps", "deployments"),
        ("apps", "statefulsets"),
        ("apps", "daemonsets"),
        ("batch", "jobs"),
        ("batch", "cronjobs"),
    }
)
POD_SUBRESOURCES = frozenset({"", "ephemeralcontainers", "resize"})


class PodSecurity:
    """See the module."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def validate_pod(self, attrs: Attributes) -> None:
        """Check a pod. Raises ApiError 403."""
        policy, _ = policy_of(self._labels(attrs.namespace))
        if policy == OPEN:
            return
        pod: Tree = attrs.obj or {}
        if attrs.operation == "UPDATE" and not _significant(pod, attrs.old or {}):
            return
        enforced = evaluate(policy.enforce, pod["metadata"], pod["spec"])
        if enforced:
            why = f"violates PodSecurity {quote(str(policy.enforce))}: {_joined(enforced)}"
            raise forbidden("", "pods", attrs.name, why)
        if policy.warn != policy.enforce:
            self._warn(attrs, policy.warn, pod["metadata"], pod["spec"])

    def validate_template(self, attrs: Attributes) -> None:
        """Warn about a pod template."""
        policy, _ = policy_of(self._labels(attrs.namespace))
        if policy.warn.level == PRIVILEGED:
            return
        template = _template(attrs.obj or {})
        if template is not None:
            self._warn(attrs, policy.warn, template.get("metadata") or {}, template.get("spec") or {})

    def validate_namespace(self, attrs: Attributes) -> None:
        """Check a namespace's labels, and warn about its pods. Raises ApiError 422."""
        namespace: Tree = attrs.obj or {}
        policy, errors = policy_of(namespace["metadata"].get("labels") or {})
        if attrs.operation == "CREATE":
            if errors:
                raise invalid(attrs.resource, attrs.name, errors)
            return
        old: Tree = attrs.old or {}
        before, before_errors = policy_of(old["metadata"].get("labels") or {})
        if errors and errors != before_errors:
            raise invalid(attrs.resource, attrs.name, errors)
        new, known = policy.enforce, before.enforce
        relaxed = new.minor == known.minor and new.strictness <= known.strictness
        if new != known and new.level != PRIVILEGED and not relaxed:
            attrs.warnings.extend(self._violations(attrs.name, new))

    def _warn(self, attrs: Attributes, wanted: LevelVersion, metadata: Tree, spec: Tree) -> None:
        found = evaluate(wanted, metadata, spec)
        if found:
            attrs.warnings.append(f"would violate PodSecurity {quote(str(wanted))}: {_joined(found)}")

    def _labels(self, namespace: str) -> dict[str, str]:
        stored = self._store.get(_NAMESPACES, "", namespace)
        if stored is None:
            return {}
        doc: Tree = stored.doc
        return doc["metadata"].get("labels") or {}

    def _violations(self, namespace: str, wanted: LevelVersion) -> list[str]:
        """The warnings about violations of existing pods."""
        pods = _prioritized([stored.doc for stored in self._store.list(_PODS, namespace)])
        culprits: dict[str, list[str]] = {}
        for pod in pods[:_MAX_PODS]:
            found = evaluate(wanted, pod["metadata"], pod["spec"])
            if found:
                reasons = ", ".join(finding.reason for finding in found)
                culprits.setdefault(reasons, []).append(pod["metadata"]["name"])
        warnings: list[str] = []
        if len(pods) > _MAX_PODS:
            warnings.append(
                f"new PodSecurity enforce level only checked against the first {_MAX_PODS} of {len(pods)} existing pods"
            )
        if culprits:
            warnings.append(
                f"existing pods in namespace {quote(namespace)} violate the new PodSecurity enforce level "
                f"{quote(str(wanted))}"
            )
        return warnings + sorted(f"{_pods(names)}: {reasons}" for reasons, names in culprits.items())


def _joined(findings: Iterable[Finding]) -> str:
    return ", ".join(map(str, findings))


def _pods(names: list[str]) -> str:
    others = len(names) - 1
    if not others:
        return names[0]
    return f"{min(names)} (and {others} other {'pod' if others == 1 else 'pods'})"


def _prioritized(pods: list[Tree]) -> list[Tree]:
    """The pods, starting with one pod of each controller."""
    first: list[Tree] = []
    more: list[Tree] = []
    seen: set[str] = set()
    for pod in pods:
        references: list[Tree] = pod["metadata"].get("ownerReferences") or []
        uid = next((each["uid"] for each in references if each.get("controller")), None)
        (more if uid is not None and uid in seen else first).append(pod)
        if uid is not None:
            seen.add(uid)
    return first + more


def _template(doc: Tree) -> Tree | None:
    if "template" in doc:
        found: Tree | None = doc["template"]
        return found
    spec: Tree = doc.get("spec") or {}
    if "jobTemplate" in spec:
        spec = spec["jobTemplate"].get("spec") or {}
    return spec.get("template")


def _significant(new: Tree, old: Tree) -> bool:
    """Whether an update adds a container or changes an image. Others do not affect a pod's security."""
    for key in ("containers", "initContainers"):
        if _images(new, key) != _images(old, key):
            return True
    known = {each["name"]: each.get("image") for each in old["spec"].get("ephemeralContainers") or ()}
    return any(
        each["name"] not in known or known[each["name"]] != each.get("image")
        for each in new["spec"].get("ephemeralContainers") or ()
    )


def _images(pod: Tree, key: str) -> list[str]:
    return [each.get("image", "") for each in pod["spec"].get(key) or ()]
