"""Errors about a served resource (see ``apiserver.errors`` for those that name a group and a plural)."""

from kcm_cli.sandbox.apiserver import errors as api_errors
from kcm_cli.sandbox.apiserver.types import ApiError, ResourceInfo


def not_found(info: ResourceInfo, name: str) -> ApiError:
    """404 for an object that is not there."""
    return api_errors.not_found(info.gvr.group, info.gvr.plural, name)


def already_exists(info: ResourceInfo, name: str, *, deleting: bool = False, generated: bool = False) -> ApiError:
    """409 for a name that is taken."""
    error = api_errors.already_exists(info.gvr.group, info.gvr.plural, name)
    if generated:
        text = ", the server was not able to generate a unique name for the object"
        error = _reworded(error, str(error) + text)
        details = error.status["details"]
        assert isinstance(details, dict)
        details["retryAfterSeconds"] = 1
        error.headers["retry-after"] = "1"
    return _reworded(error, f"object is being deleted: {error}") if deleting else error


def conflict(info: ResourceInfo, name: str, why: str) -> ApiError:
    """409 for a write whose precondition failed."""
    return api_errors.conflict(info.gvr.group, info.gvr.plural, name, why)


def verb_not_supported(info: ResourceInfo, verb: str) -> ApiError:
    """405 for a verb that a custom resource does not have."""
    message = f'{verb} is not supported on resources of kind "{info.group_resource}"'
    details = api_errors.details(info.gvr.group, info.gvr.plural, "")
    return ApiError(405, "MethodNotAllowed", message, details=details)


def outdated(info: ResourceInfo, name: str) -> ApiError:
    """409 for an update based on an older version."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(info, name, why)


def initializing(info: ResourceInfo, why: str) -> ApiError:
    """429 for a list or watch of objects that cannot be read."""
    kind = f"{info.gvr.group}/{info.gvr.version}, Kind={info.kind}"
    message = f"storage is (re)initializing: failed to list {kind}: {why}"
    error = ApiError(429, "TooManyRequests", message, details={"retryAfterSeconds": 1})
    error.headers["retry-after"] = "1"
    return error


def no_such_path() -> ApiError:
    """404 for a path of a known group that leads nowhere."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", details={})


def expired(message: str) -> ApiError:
    """410 for a version that is no longer kept."""
    return ApiError(410, "Expired", message)


def too_large_version(asked: int, current: int) -> ApiError:
    """504 for a version that has not been reached."""
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    error = ApiError(504, "Timeout", message, details={"causes": causes, "retryAfterSeconds": 1})
    error.headers["retry-after"] = "1"
    return error


class NotAcceptable(ApiError):
    """406: no answer in a form that was asked for, and so not in protobuf."""

    def __init__(self, media_types: str) -> None:
        super().__init__(406, "NotAcceptable", f"only the following media types are accepted: {media_types}")


def no_representation(media_types: str) -> ApiError:
    """406 of the router, which looks at media types before their parameters."""
    message = f"406: Not Acceptable\n\nAvailable representations: {media_types}"
    return ApiError(406, "NotAcceptable", message, details={})


def wrong_shape(what: str, really: str) -> ApiError:
    """406: the metadata of a list was asked for as that of an object, or the other way round."""
    return ApiError(406, "NotAcceptable", f"you requested {what}, but the requested object is {really}")


def unsupported_media_type(media_types: str, why: str = "") -> ApiError:
    """415: a body in a form that is not understood."""
    message = f"the body of the request was in an unknown format - accepted media types include: {media_types}"
    if why:
        message = f"{message} ({why})"
    return ApiError(415, "UnsupportedMediaType", message)


def unsupported_patch() -> ApiError:
    """415 for a patch of a type that the resource does not take."""
    return ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})


def not_implemented(message: str) -> ApiError:
    """501 for what a sandbox without kubelets does not have."""
    return ApiError(501, "NotImplemented", message)


def _reworded(error: ApiError, message: str) -> ApiError:
    error.args = (message,)
    error.status["message"] = message
    return error
