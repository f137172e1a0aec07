"""Reviews: TokenReview, SelfSubjectReview, the access reviews and SelfSubjectRulesReview. They are not stored.

upstream: pkg/registry/{authentication,authorization}, pkg/apis/authorization/validation
"""

from kcm_cli.component.clock import Clock
from kcm_cli.machinery.errors import aggregated
from kcm_cli.machinery.times import format_time
from kcm_cli.sandbox.apiserver.errors import bad_request, invalid_kind
from kcm_cli.sandbox.apiserver.security import review_specs
from kcm_cli.sandbox.apiserver.security.authenticator import Authenticator
from kcm_cli.sandbox.apiserver.security.authorizer import Authorizer
from kcm_cli.sandbox.apiserver.types import FieldError, RequestInfo, Tree, User

_AUTHORIZATION = "authorization.k8s.io"


class Reviews:
    """Completes reviews: each method returns the review with its status, and may change it.

    It has managedFields and the namespace of the request, but neither uid nor creationTimestamp. Raises ApiError.
    """

    def __init__(self, authorizer: Authorizer, authenticator: Authenticator, clock: Clock) -> None:
        self._authorizer = authorizer
        self._authenticator = authenticator
        self._clock = clock

    def token(self, review: Tree, user: User, warnings: list[str]) -> Tree:
        """Whom a token authenticates."""
        spec: Tree = review.get("spec") or {}
        if not spec.get("token"):
            raise bad_request("token is required for TokenReview in authentication")
        verdict = self._authenticator.review(spec["token"], spec.get("audiences") or (), warnings)
        if verdict.found is None:
            review["status"] = {"user": {}, "error": verdict.error}
        else:
            found = verdict.found
            review["status"] = {"authenticated": True, "user": found.user.info()}
            if found.audiences:
                review["status"]["audiences"] = list(found.audiences)
        return review

    def own_user(self, review: Tree, user: User, warnings: list[str]) -> Tree:
        """Who the user is."""
        return {
            "kind": "SelfSubjectReview",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"creationTimestamp": format_time(self._clock.now())},
            "status": {"userInfo": user.info()},
        }

    def access(self, review: Tree, user: User, warnings: list[str]) -> Tree:
        """Whether a user may do something."""
        spec: Tree = review.get("spec") or {}
        _check(review_specs.subject(spec) + review_specs.metadata(review, local=False))
        return self._answered(review, spec, review_specs.user_of(spec))

    def local_access(self, review: Tree, user: User, warnings: list[str]) -> Tree:
        """The same in the namespace of the request."""
        spec: Tree = review.get("spec") or {}
        _check(
            review_specs.subject(spec)
            + review_specs.metadata(review, local=True)
            + review_specs.local(spec, review["metadata"].get("namespace", ""))
        )
        return self._answered(review, spec, review_specs.user_of(spec))

    def own_access(self, review: Tree, user: User, warnings: list[str]) -> Tree:
        """Whether the user may do something."""
        spec: Tree = review.get("spec") or {}
        _check(review_specs.attributes(spec) + review_specs.metadata(review, local=False))
        return self._answered(review, spec, user)

    def _answered(self, review: Tree, spec: Tree, user: User) -> Tree:
        decision = self._authorizer.authorize(user, _request(spec))
        status: Tree = {"allowed": decision.allowed}
        review["status"] = status
        if decision.reason:
            status["reason"] = decision.reason
        if error := review_specs.evaluation_error(spec):
            status["evaluationError"] = error
        return review

    def own_rules(self, review: Tree, user: User, warnings: list[str]) -> Tree:
        """What the user may do in a namespace."""
        spec: Tree = review.get("spec") or {}
        if not spec.get("namespace"):
            raise bad_request("no namespace on request")
        rules, errors = self._authorizer.rules(user, spec["namespace"])
        status: Tree = {
            "resourceRules": [rule.resource_doc() for rule in rules if rule.resources],
            "nonResourceRules": [rule.url_doc() for rule in rules if rule.urls],
            "incomplete": False,
        }
        if errors:
            status["evaluationError"] = aggregated(errors)
        return {
            "kind": "SelfSubjectRulesReview",
            "apiVersion": f"{_AUTHORIZATION}/v1",
            "metadata": {},
            "spec": {},
            "status": status,
        }


def _check(errors: list[FieldError]) -> None:
    if errors:
        raise invalid_kind(_AUTHORIZATION, "", "", errors)


def _request(spec: Tree) -> RequestInfo:
    resource: Tree | None = spec.get("resourceAttributes")
    if resource is None:
        path: Tree = spec.get("nonResourceAttributes") or {}
        return RequestInfo(path.get("verb", ""), path.get("path", ""), False)
    return RequestInfo(
        resource.get("verb", ""),
        "",
        True,
        group=resource.get("group", ""),
        version=resource.get("version", ""),
        plural=resource.get("resource", ""),
        subresource=resource.get("subresource", ""),
        namespace=resource.get("namespace", ""),
        name=resource.get("name", ""),
    )
