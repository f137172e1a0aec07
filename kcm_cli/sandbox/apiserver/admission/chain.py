"""Admission: first ``mutate``, then ``validate``.

The plugins and their order are those of a default kube-apiserver v1.36. Policies and webhooks come after the other
plugins; if they change the object, mutation is repeated. Quotas are last. After mutation, RBAC objects are checked for
privilege escalation. The plugins for a kind of write are looked up once.

upstream: pkg/kubeapiserver/options/plugins.go
"""

import random
from collections.abc import Awaitable, Callable, Collection, Iterable
from functools import lru_cache

import msgspec

from kcm_cli.component.clock import Clock
from kcm_cli.sandbox.apiserver.admission import nodes, pods, storage
from kcm_cli.sandbox.apiserver.admission.certificates import CertificateRequests
from kcm_cli.sandbox.apiserver.admission.dynamic.rounds import Rounds
from kcm_cli.sandbox.apiserver.admission.dynamic.users import UserDefined
from kcm_cli.sandbox.apiserver.admission.limit_ranger import LimitRanger
from kcm_cli.sandbox.apiserver.admission.namespaces import NamespaceLifecycle
from kcm_cli.sandbox.apiserver.admission.pod_security.admission import (
    POD_SUBRESOURCES,
    TEMPLATED,
    PodSecurity,
)
from kcm_cli.sandbox.apiserver.admission.quota.admission import ResourceQuotas
from kcm_cli.sandbox.apiserver.admission.service_account import ServiceAccounts
from kcm_cli.sandbox.apiserver.registry.own_writes import OwnWrites
from kcm_cli.sandbox.apiserver.security.bindings import GROUP as RBAC
from kcm_cli.sandbox.apiserver.security.escalation import EscalationGuard
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import Attributes

Step = Callable[[Attributes], Awaitable[None] | None]
Kind = tuple[str, str]
"""Group and plural."""

_PODS: frozenset[Kind] = frozenset({("", "pods")})
_CLAIMS: frozenset[Kind] = frozenset({("", "persistentvolumeclaims")})
_CERTIFICATES: frozenset[Kind] = frozenset({("certificates.k8s.io", "certificatesigningrequests")})
_MAIN = frozenset({""})


class Hook(msgspec.Struct, frozen=True):
    """A step of a plugin (by upstream's name), and the writes that it handles.

    operations: the initials of CREATE, UPDATE and DELETE, and X for CONNECT. kinds, subresources: None for all.
    """

    plugin: str
    step: Step
    operations: str
    kinds: frozenset[Kind] | None = None
    subresources: frozenset[str] | None = _MAIN

    def wants(self, operation: str, kind: Kind, subresource: str) -> bool:
        initial = "X" if operation == "CONNECT" else operation[:1]
        return (
            initial in self.operations
            and (self.kinds is None or kind in self.kinds)
            and (self.subresources is None or subresource in self.subresources)
        )


class Chain:
    """Steps in order, cached by the kind of write."""

    def __init__(self, hooks: Iterable[Hook]) -> None:
        self._hooks = tuple(hooks)
        self._chosen = lru_cache(1024)(self._choose)

    async def run(self, attrs: Attributes) -> None:
        """Run the steps for a write. Raises ApiError."""
        gvr = attrs.resource.gvr
        for step in self._chosen(attrs.operation, gvr.group, gvr.plural, attrs.subresource):
            waiting = step(attrs)
            if waiting is not None:
                await waiting

    def _choose(self, operation: str, group: str, plural: str, subresource: str) -> tuple[Step, ...]:
        kind = (group, plural)
        return tuple(hook.step for hook in self._hooks if hook.wants(operation, kind, subresource))


class Admission:
    """See the module. ``users``: policies and webhooks. ``disabled``: plugins by upstream's names."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        rng: random.Random,
        own: OwnWrites,
        users: UserDefined,
        disabled: Collection[str] = (),
    ) -> None:
        authorizer = users.authorizer
        self._lifecycle = NamespaceLifecycle(store)
        self._limits = LimitRanger(store)
        self._accounts = ServiceAccounts(store, clock, rng)
        self._priority = pods.Priority(store)
        self._runtime_class = pods.RuntimeClass(store)
        self._topology = pods.PodTopologyLabels(store)
        self._resize = pods.PodResize(store)
        self._classes = storage.DefaultClasses(store)
        self._security = PodSecurity(store)
        self._certificates = CertificateRequests(authorizer)
        self._quotas = ResourceQuotas(store, clock, own)
        self._escalation = EscalationGuard(authorizer)
        self._users = users
        self._mutating = Chain(hook for hook in self._mutating_hooks() if hook.plugin not in disabled)
        self._validating = Chain(hook for hook in self._validating_hooks() if hook.plugin not in disabled)
        charging = [Hook("ResourceQuota", self._quotas.validate, "CU", subresources=None)]
        self._charging = Chain(hook for hook in charging if hook.plugin not in disabled)

    async def mutate(self, attrs: Attributes) -> None:
        """Change ``attrs.obj`` in place. Raises ApiError."""
        await self._mutating.run(attrs)
        if self._users.mutates(attrs):
            await self._mutate_by_users(attrs)
        if attrs.resource.gvr.group == RBAC:
            self._escalation.check(attrs)

    async def _mutate_by_users(self, attrs: Attributes) -> None:
        rounds = Rounds()
        await self._users.mutate(attrs, rounds)
        if rounds.needed:
            rounds.second = True
            await self._mutating.run(attrs)
            await self._users.mutate(attrs, rounds)

    async def validate(self, attrs: Attributes) -> None:
        """Validate, then charge quotas. Adds to ``attrs.warnings``. Raises ApiError."""
        await self._validating.run(attrs)
        await self._users.validate(attrs)
        await self._charging.run(attrs)

    def _mutating_hooks(self) -> Iterable[Hook]:
        accounts, priority, classes = self._accounts, self._priority, self._classes
        yield Hook("NamespaceLifecycle", self._lifecycle.admit, "CUD", subresources=None)
        yield Hook("LimitRanger", self._limits.admit, "C", _PODS)
        yield Hook("LimitRanger", self._limits.admit, "U", _PODS, frozenset({"resize"}))
        yield Hook("ServiceAccount", accounts.admit, "C", _PODS)
        yield Hook("TaintNodesByCondition", nodes.taint, "C", frozenset({("", "nodes")}))
        yield Hook("Priority", priority.admit, "C", _PODS)
        yield Hook("Priority", priority.keep, "U", _PODS)
        yield Hook("DefaultTolerationSeconds", pods.default_tolerations, "CU", _PODS)
        yield Hook("DefaultStorageClass", classes.admit_claim, "C", _CLAIMS)
        yield Hook("StorageObjectInUseProtection", storage.protect, "C", frozenset(storage.PROTECTION))
        yield Hook("RuntimeClass", self._runtime_class.admit, "C", _PODS)
        yield Hook("DefaultIngressClass", classes.admit_ingress, "C", frozenset({("networking.k8s.io", "ingresses")}))
        yield Hook("PodTopologyLabels", self._topology.admit_pod, "C", _PODS)
        yield Hook("PodTopologyLabels", self._topology.admit_binding, "C", _PODS, frozenset({"binding"}))

    def _validating_hooks(self) -> Iterable[Hook]:
        limits, security, certificates = self._limits, self._security, self._certificates
        yield Hook("LimitRanger", limits.validate, "C", _PODS)
        yield Hook("LimitRanger", limits.validate, "U", _PODS, frozenset({"resize"}))
        yield Hook("LimitRanger", limits.validate, "CU", _CLAIMS)
        yield Hook("ServiceAccount", self._accounts.validate, "C", _PODS)
        yield Hook("ServiceAccount", self._accounts.validate_ephemeral, "U", _PODS, frozenset({"ephemeralcontainers"}))
        yield Hook("PodSecurity", security.validate_pod, "CU", _PODS, POD_SUBRESOURCES)
        yield Hook("PodSecurity", security.validate_template, "CU", TEMPLATED)
        yield Hook("PodSecurity", security.validate_namespace, "CU", frozenset({("", "namespaces")}))
        yield Hook(
            "Priority", self._priority.validate_class, "CU", frozenset({("scheduling.k8s.io", "priorityclasses")})
        )
        yield Hook("PersistentVolumeClaimResize", self._classes.validate_resize, "U", _CLAIMS)
        yield Hook("RuntimeClass", self._runtime_class.validate, "C", _PODS)
        yield Hook("CertificateApproval", certificates.validate_approval, "U", _CERTIFICATES, frozenset({"approval"}))
        yield Hook("CertificateSigning", certificates.validate_signing, "U", _CERTIFICATES, frozenset({"status"}))
        yield Hook("CertificateSubjectRestriction", certificates.validate_subject, "C", _CERTIFICATES)
        yield Hook("PodResizeValidator", self._resize.validate, "U", _PODS, frozenset({"resize"}))
