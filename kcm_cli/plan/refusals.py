"""What was rejected or went wrong in a run of a twin."""

import re

import msgspec

from kcm_cli.plan.answer import Object
from kcm_cli.rest.errors import ApiError, Conflict

_QUOTA = re.compile(
    r"(?:exceeded|failed) quota: |insufficient quota to (?:consume|match these scopes): |status unknown for quota: "
)


class Refusal(msgspec.Struct):
    """kind: that of a Problem. measure: how bad it is, by facts of which more is worse, in the order of the kind; empty
    if there is nothing to compare. A problem of both runs was there before if no fact is worse."""

    kind: str
    about: Object
    text: str
    measure: tuple[float, ...] = ()


def by_quota(message: str) -> bool:
    """Whether a message is the ResourceQuota plugin's, in any of its forms.

    upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go
    """
    return _QUOTA.search(message) is not None


def refused(about: Object, error: ApiError, text: str) -> Refusal:
    """The refusal of a request about an object."""
    return Refusal("quota" if by_quota(str(error)) else "refused", about, text)


def as_kubectl(error: ApiError, when: str = "") -> str:
    """An error in kubectl's format. when: such as ``creating "app.yaml"``."""
    doing = f"error when {when}: " if when else ""
    if isinstance(error, Conflict):
        return f"error: {error}"
    return f"Error from server{f' ({error.reason})' if error.reason else ''}: {doing}{error}"
