"""Defaults of webhooks, admission policies, flow control, autoscalers and device claims.

Source: pkg/apis/{admissionregistration,flowcontrol,resource}/v1/defaults.go,
pkg/apis/autoscaling/{v1,v2}/defaults.go.
"""

from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.types import Tree

_WEBHOOK = (("failurePolicy", "Fail"), ("matchPolicy", "Equivalent"), ("timeoutSeconds", 10))
_LIMITED = (("nominalConcurrencyShares", 30), ("lendablePercent", 0))
_EXEMPT = (("nominalConcurrencyShares", 0), ("lendablePercent", 0))
_QUEUING = (("handSize", 8), ("queues", 64), ("queueLengthLimit", 50))


def webhooks(doc: Tree) -> None:
    """A MutatingWebhookConfiguration or ValidatingWebhookConfiguration."""
    mutating = doc.get("kind") == "MutatingWebhookConfiguration"
    for hook in doc.get("webhooks") or ():
        fill.absent(hook, _WEBHOOK)
        _selectors(hook)
        if mutating:
            fill.absent(hook, (("reinvocationPolicy", "Never"),))
        service = (hook.get("clientConfig") or {}).get("service")
        if service is not None:
            fill.absent(service, (("port", 443),))
        _rules(hook.get("rules"))


def admission_policy(doc: Tree) -> None:
    """A ValidatingAdmissionPolicy or MutatingAdmissionPolicy."""
    spec = doc.setdefault("spec", {})
    fill.absent(spec, (("failurePolicy", "Fail"),))
    _match(spec.get("matchConstraints"))


def admission_policy_binding(doc: Tree) -> None:
    """A binding of either."""
    _match(doc.setdefault("spec", {}).get("matchResources"))


def _match(match: Tree | None) -> None:
    if match is not None:
        fill.absent(match, (("matchPolicy", "Equivalent"),))
        _selectors(match)
        _rules(match.get("resourceRules"))
        _rules(match.get("excludeResourceRules"))


def _selectors(holder: Tree) -> None:
    fill.made(holder, "namespaceSelector")
    fill.made(holder, "objectSelector")


def _rules(rules: list[Tree] | None) -> None:
    for rule in rules or ():
        fill.absent(rule, (("scope", "*"),))


def flow_schema(doc: Tree) -> None:
    fill.empty(doc.setdefault("spec", {}), (("matchingPrecedence", 1000),))


def priority_level(doc: Tree) -> None:
    spec = doc.setdefault("spec", {})
    if (limited := spec.get("limited")) is not None:
        fill.absent(limited, _LIMITED)
        if (queuing := fill.made(limited, "limitResponse").get("queuing")) is not None:
            fill.empty(queuing, _QUEUING)
    if (exempt := spec.get("exempt")) is not None:
        fill.absent(exempt, _EXEMPT)


def autoscaler(doc: Tree) -> None:
    """Version v2; what v1 has of it, in its own version."""
    spec = doc.setdefault("spec", {})
    fill.absent(spec, (("minReplicas", 1),))
    if doc.get("apiVersion") == "autoscaling/v1":
        return
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    if (behavior := spec.get("behavior")) is not None:
        _scaling_rules(fill.made(behavior, "scaleUp"), 0, [("Pods", 4), ("Percent", 100)])
        _scaling_rules(fill.made(behavior, "scaleDown"), None, [("Percent", 100)])


def _scaling_rules(rules: Tree, window_s: int | None, policies: list[tuple[str, int]]) -> None:
    if window_s is not None:
        fill.absent(rules, (("stabilizationWindowSeconds", window_s),))
    fill.absent(rules, (("selectPolicy", "Max"),))
    if rules.get("policies") is None:
        rules["policies"] = [{"type": kind, "value": value, "periodSeconds": 15} for kind, value in policies]


def resource_claim(doc: Tree) -> None:
    _claim_spec(doc.setdefault("spec", {}))
    allocation = (doc.setdefault("status", {}).get("allocation") or {}).get("devices") or {}
    for result in allocation.get("results") or ():
        _tolerations(result)


def resource_claim_template(doc: Tree) -> None:
    spec = doc.setdefault("spec", {})
    spec.setdefault("metadata", {})
    _claim_spec(spec.setdefault("spec", {}))


def _claim_spec(spec: Tree) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        if (exactly := request.get("exactly")) is not None:
            _device_request(exactly)
        for alternative in request.get("firstAvailable") or ():
            _device_request(alternative)


def _device_request(request: Tree) -> None:
    fill.empty(request, (("allocationMode", "ExactCount"),))
    if request["allocationMode"] == "ExactCount":
        fill.empty(request, (("count", 1),))
    _tolerations(request)


def _tolerations(holder: Tree) -> None:
    for toleration in holder.get("tolerations") or ():
        fill.empty(toleration, (("operator", "Equal"),))
