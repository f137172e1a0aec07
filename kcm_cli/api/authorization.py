"""Views of the authorization.k8s.io group: the results of access reviews."""

from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.meta import Object, View


class SubjectAccessReviewStatus(View, frozen=True, gc=False):
    allowed: bool = False


class SubjectAccessReview(Object, frozen=True, gc=False, kw_only=True):
    status: SubjectAccessReviewStatus = SubjectAccessReviewStatus()


SUBJECT_ACCESS_REVIEWS = Resource(
    GVR("authorization.k8s.io", "v1", "subjectaccessreviews"),
    "SubjectAccessReview",
    SubjectAccessReview,
    namespaced=False,
)
