"""The variable ``authorizer`` of CEL expressions.

upstream: staging/src/k8s.io/apiserver/pkg/cel/library/authz.go
"""

from collections.abc import Callable, Mapping
from typing import ClassVar

import msgspec
from msgspec.structs import replace

from kcm_cli.api.well_known import AUTHENTICATED
from kcm_cli.machinery import cel, names
from kcm_cli.machinery.cel.overloads import Function, overloaded
from kcm_cli.sandbox.apiserver.security.authorizer import Authorizer, Decision
from kcm_cli.sandbox.apiserver.security.service_accounts import groups_of, user_name
from kcm_cli.sandbox.apiserver.types import Attributes, RequestInfo, User

_Methods = Mapping[str, Function]


class DecisionValue(msgspec.Struct, frozen=True):
    """The decision of a check."""

    decision: Decision
    cel_type: ClassVar[str] = "kubernetes.authorization.Decision"
    cel_methods: ClassVar[_Methods]


DecisionValue.cel_methods = {
    "allowed": overloaded("allowed", ((DecisionValue,), lambda value: value.decision.allowed)),
    "reason": overloaded("reason", ((DecisionValue,), lambda value: value.decision.reason)),
    "errored": overloaded("errored", ((DecisionValue,), lambda value: False)),
    "error": overloaded("error", ((DecisionValue,), lambda value: "")),
}


class CheckValue(msgspec.Struct, frozen=True):
    """A check of a resource or path, without the verb."""

    authorizer: Authorizer
    user: User
    info: RequestInfo
    cel_type: ClassVar[str] = "kubernetes.authorization.ResourceCheck"
    cel_methods: ClassVar[_Methods]

    def check(self, verb: str) -> DecisionValue:
        return DecisionValue(self.authorizer.authorize(self.user, replace(self.info, verb=verb)))

    def narrowed(self, **parts: str) -> "CheckValue":
        return replace(self, info=replace(self.info, **parts))


_C = CheckValue
CheckValue.cel_methods = {
    "check": overloaded("check", ((_C, str), _C.check)),
    "subresource": overloaded("subresource", ((_C, str), lambda value, text: value.narrowed(subresource=text))),
    "namespace": overloaded("namespace", ((_C, str), lambda value, text: value.narrowed(namespace=text))),
    "name": overloaded("name", ((_C, str), lambda value, text: value.narrowed(name=text))),
    "fieldSelector": overloaded("fieldSelector", ((_C, str), lambda value, text: value)),
    "labelSelector": overloaded("labelSelector", ((_C, str), lambda value, text: value)),
}


class GroupValue(msgspec.Struct, frozen=True):
    """A check of an API group, without the resource."""

    authorizer: Authorizer
    user: User
    group: str
    cel_type: ClassVar[str] = "kubernetes.authorization.GroupCheck"
    cel_methods: ClassVar[_Methods]

    def resource(self, plural: str) -> CheckValue:
        if not plural.strip():
            raise cel.CelError("resource must not be empty")
        return CheckValue(self.authorizer, self.user, RequestInfo("", "", True, self.group, "*", plural))


GroupValue.cel_methods = {"resource": overloaded("resource", ((GroupValue, str), GroupValue.resource))}


class AuthorizerValue(msgspec.Struct, frozen=True):
    """Checks of a user. ``attrs``: the write, for ``requestResource``."""

    authorizer: Authorizer
    user: User
    attrs: Attributes | None = None
    cel_type: ClassVar[str] = "kubernetes.authorization.Authorizer"
    cel_methods: ClassVar[_Methods]
    cel_fields: ClassVar[Mapping[str, Callable[["AuthorizerValue"], cel.Value]]]

    def path(self, path: str) -> CheckValue:
        if not path.strip():
            raise cel.CelError("path must not be empty")
        return CheckValue(self.authorizer, self.user, RequestInfo("", path, False))

    def of_group(self, group: str) -> GroupValue:
        return GroupValue(self.authorizer, self.user, group)

    def service_account(self, namespace: str, name: str) -> "AuthorizerValue":
        if names.dns1123_subdomain(name):
            raise cel.CelError("Invalid service account name")
        if names.dns1123_label(namespace):
            raise cel.CelError("Invalid service account namespace")
        user = User(user_name(namespace, name), groups=(*groups_of(namespace), AUTHENTICATED))
        return AuthorizerValue(self.authorizer, user)

    def request_resource(self) -> CheckValue:
        """A check of the write's object."""
        attrs = self.attrs
        if attrs is None:
            raise cel.CelError("no such attribute(s): authorizer.requestResource")
        gvr = attrs.resource.gvr
        info = RequestInfo(
            "", "", True, gvr.group, gvr.version, gvr.plural, attrs.subresource, attrs.namespace, attrs.name
        )
        return CheckValue(self.authorizer, self.user, info)


_A = AuthorizerValue
AuthorizerValue.cel_methods = {
    "path": overloaded("path", ((_A, str), _A.path)),
    "group": overloaded("group", ((_A, str), _A.of_group)),
    "serviceAccount": overloaded("serviceAccount", ((_A, str, str), _A.service_account)),
}
AuthorizerValue.cel_fields = {"requestResource": _A.request_resource}
