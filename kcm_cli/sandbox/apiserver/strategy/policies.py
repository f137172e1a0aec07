"""Strategies of budgets, autoscalers, webhooks, admission policies, flow control, access control and the like.

Source: pkg/registry/{policy,autoscaling,admissionregistration,flowcontrol,rbac,scheduling,node,coordination}/*/,
strategy.go of each.
"""

from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.strategy.warnings import nodes, others
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.validation import (
    admission_policies,
    autoscaler,
    classes,
    coordination,
    flow_control,
    rbac,
    webhooks,
)

_BUDGET_COUNTERS = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
_LEASE_GATED = ("strategy", "preferredHolder")


def _new_lease(doc: Tree) -> None:
    for field in _LEASE_GATED:  # gate CoordinatedLeaderElection
        doc.get("spec", {}).pop(field, None)


def _lease_update(new: Tree, old: Tree) -> None:
    for field in _LEASE_GATED:
        if (old.get("spec") or {}).get(field) is None:
            new.get("spec", {}).pop(field, None)


POD_DISRUPTION_BUDGET = Strategy(
    on_create=parts.new_with_status(_BUDGET_COUNTERS, generation=True),
    on_update=parts.spec_update,
    on_status=parts.status_update,
    needs_version_on_update=True,
    check_create=coordination.validate_budget,
    check_update=coordination.validate_budget_update,
    check_status=coordination.validate_budget_status,
)
HORIZONTAL_POD_AUTOSCALER = Strategy(
    on_create=parts.new_with_status({"desiredReplicas": 0, "currentMetrics": None}, generation=False),
    on_update=parts.keep_status,
    on_status=parts.status_update,
    check_create=autoscaler.validate_autoscaler,
    check_update=autoscaler.validate_autoscaler_update,
    check_status=autoscaler.validate_autoscaler_status,
)
WEBHOOKS = Strategy(
    namespaced=False,
    on_create=parts.first_generation,
    on_update=parts.bump_if_changed("webhooks"),
    needs_version_on_update=True,
    check_create=webhooks.validate_webhooks,
    check_update=webhooks.validate_webhooks_update,
    warn=others.of_admission,
)
VALIDATING_ADMISSION_POLICY = Strategy(
    namespaced=False,
    on_create=parts.new_with_status({}, generation=True),
    on_update=parts.spec_update,
    on_status=parts.strict_status_update,
    needs_version_on_update=True,
    check_create=admission_policies.validate_validating,
    check_update=admission_policies.validate_validating_update,
    check_status=admission_policies.validate_status,
    warn=others.of_admission,
)
MUTATING_ADMISSION_POLICY = Strategy(
    namespaced=False,
    on_create=parts.first_generation,
    on_update=parts.bump_if_spec_changed,
    needs_version_on_update=True,
    check_create=admission_policies.validate_mutating,
    check_update=admission_policies.validate_mutating_update,
    warn=others.of_admission,
)
VALIDATING_ADMISSION_POLICY_BINDING = Strategy(
    namespaced=False,
    on_create=parts.first_generation,
    on_update=parts.bump_if_spec_changed,
    needs_version_on_update=True,
    check_create=admission_policies.validate_validating_binding,
    check_update=admission_policies.validate_validating_binding_update,
    warn=others.of_admission,
)
MUTATING_ADMISSION_POLICY_BINDING = Strategy(
    namespaced=False,
    on_create=parts.first_generation,
    on_update=parts.bump_if_spec_changed,
    needs_version_on_update=True,
    check_create=admission_policies.validate_mutating_binding,
    check_update=admission_policies.validate_mutating_binding_update,
    warn=others.of_admission,
)
FLOW_SCHEMA = Strategy(
    namespaced=False,
    on_create=parts.new_with_status({}, generation=True),
    on_update=parts.spec_update,
    on_status=parts.whole_metadata_status,
    check_create=flow_control.validate_flow,
    check_update=flow_control.validate_flow_update,
    check_status=flow_control.validate_status,
)
PRIORITY_LEVEL = Strategy(
    namespaced=False,
    on_create=parts.new_with_status({}, generation=True),
    on_update=parts.spec_update,
    on_status=parts.whole_metadata_status,
    check_create=flow_control.validate_level,
    check_update=flow_control.validate_level_update,
    check_status=flow_control.validate_status,
)
ROLE = Strategy(
    creates_on_update=True,
    check_create=rbac.validate_role,
    check_update=rbac.validate_role_update,
)
CLUSTER_ROLE = Strategy(
    namespaced=False,
    creates_on_update=True,
    check_create=rbac.validate_cluster_role,
    check_update=rbac.validate_cluster_role_update,
)
ROLE_BINDING = Strategy(
    creates_on_update=True,
    check_create=rbac.validate_role_binding,
    check_update=rbac.validate_role_binding_update,
)
CLUSTER_ROLE_BINDING = Strategy(
    namespaced=False,
    creates_on_update=True,
    check_create=rbac.validate_cluster_role_binding,
    check_update=rbac.validate_cluster_role_binding_update,
)
PRIORITY_CLASS = Strategy(
    namespaced=False,
    on_create=parts.first_generation,
    check_create=classes.validate_priority_class,
    check_update=classes.validate_priority_class_update,
)
RUNTIME_CLASS = Strategy(
    namespaced=False,
    creates_on_update=True,
    needs_version_on_update=True,
    check_create=classes.validate_runtime_class,
    check_update=classes.validate_runtime_class_update,
    warn=nodes.of_runtime_class,
)
LEASE = Strategy(
    on_create=_new_lease,
    on_update=_lease_update,
    creates_on_update=True,
    needs_version_on_update=True,
    check_create=coordination.validate_lease,
    check_update=coordination.validate_lease_update,
)
CONTROLLER_REVISION = Strategy(
    check_create=coordination.validate_revision,
    check_update=coordination.validate_revision_update,
)
