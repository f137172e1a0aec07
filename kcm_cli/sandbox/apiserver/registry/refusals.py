"""Refusals that any resource can answer with, worded as clients know them.

upstream: staging/src/k8s.io/apimachinery/pkg/api/errors/errors.go (v1.36)
"""

from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.types import ApiError, ResourceInfo


def _details(info: ResourceInfo, name: str) -> Doc:
    details: Doc = {"name": name} if name else {}
    if info.gvr.group:
        details["group"] = info.gvr.group
    details["kind"] = info.gvr.plural
    return details


def not_found(info: ResourceInfo, name: str) -> ApiError:
    """404 for an object that is not there."""
    return ApiError(404, "NotFound", f'{info.group_resource} "{name}" not found', details=_details(info, name))


def no_such_path() -> ApiError:
    """404 for a path of a known group that leads nowhere."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", details={})


def method_not_allowed() -> ApiError:
    """405 for a method that a path does not have."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, details={})


def verb_not_supported(info: ResourceInfo, verb: str) -> ApiError:
    """405 for a verb that a kind does not support."""
    message = f'{verb} is not supported on resources of kind "{info.group_resource}"'
    return ApiError(405, "MethodNotAllowed", message, details=_details(info, ""))


def already_exists(info: ResourceInfo, name: str) -> ApiError:
    """409 for a name that is taken."""
    message = f'{info.group_resource} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, details=_details(info, name))


def conflict(info: ResourceInfo, name: str, why: str) -> ApiError:
    """409 for a write that lost against another one or whose precondition failed."""
    message = f'Operation cannot be fulfilled on {info.group_resource} "{name}": {why}'
    return ApiError(409, "Conflict", message, details=_details(info, name))


def outdated(info: ResourceInfo, name: str) -> ApiError:
    """409 for an update based on an older version."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(info, name, why)


def bad_request(message: str) -> ApiError:
    """400."""
    return ApiError(400, "BadRequest", message)


def forbidden(info: ResourceInfo, name: str, why: str) -> ApiError:
    """403 with a reason that is not about access rights."""
    message = (
        f'{info.group_resource} "{name}" is forbidden: {why}'
        if name
        else (f"{info.group_resource} is forbidden: {why}")
    )
    return ApiError(403, "Forbidden", message, details=_details(info, name))


def internal(message: str) -> ApiError:
    """500 with the cause that clients see."""
    details: Doc = {"causes": [{"message": message}]}
    return ApiError(500, "InternalError", f"Internal error occurred: {message}", details=details)


def plain_error(message: str, code: int = 500) -> ApiError:
    """An error that upstream does not classify: no reason, no details."""
    return ApiError(code, "", message)


def expired(message: str) -> ApiError:
    """410 for a version that is no longer kept."""
    return ApiError(410, "Expired", message)


def not_acceptable(media_types: str) -> ApiError:
    """406: no answer in a form that was asked for."""
    return ApiError(406, "NotAcceptable", f"only the following media types are accepted: {media_types}")


def unsupported_media_type(media_types: str) -> ApiError:
    """415: a body in a form that is not understood."""
    message = f"the body of the request was in an unknown format - accepted media types include: {media_types}"
    return ApiError(415, "UnsupportedMediaType", message)


def not_implemented(message: str) -> ApiError:
    """501 for what a sandbox without kubelets does not have."""
    return ApiError(501, "NotImplemented", message)
