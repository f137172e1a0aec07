"""Error responses about a served resource (``apiserver.errors`` has those with a group and a plural)."""

from kcm_cli.sandbox.apiserver import errors as api_errors
from kcm_cli.sandbox.apiserver.types import ApiError, ResourceInfo


def not_found(info: ResourceInfo, name: str) -> ApiError:
    """404: the object does not exist."""
    return api_errors.not_found(info.gvr.group, info.gvr.plural, name)


def already_exists(info: ResourceInfo, name: str, *, deleting: bool = False, generated: bool = False) -> ApiError:
    """409: the name is taken. ``generated``: several generated names were taken."""
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
    """409: a precondition failed."""
    return api_errors.conflict(info.gvr.group, info.gvr.plural, name, why)


def precondition(field: str, wanted: object, known: object) -> str:
    """The text of a failed precondition on ``UID`` or ``ResourceVersion``."""
    return f"Precondition failed: {field} in precondition: {wanted}, {field} in object meta: {known}"


def storage_conflict(info: ResourceInfo, name: str, key: str, field: str, wanted: object, known: object) -> ApiError:
    """409: a precondition failed in upstream's storage layer. ``key``: see ``objects.storage_key``."""
    why = precondition(field, wanted, known)
    text = f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {why}"
    return conflict(info, name, text)


def verb_not_supported(info: ResourceInfo, verb: str) -> ApiError:
    """405: the custom resource does not have the verb."""
    message = f'{verb} is not supported on resources of kind "{info.gvr.group_resource}"'
    details = api_errors.details(info.gvr.group, info.gvr.plural, "")
    return ApiError(405, "MethodNotAllowed", message, details=details)


def outdated(info: ResourceInfo, name: str) -> ApiError:
    """409: the update is based on an older resourceVersion."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(info, name, why)


def initializing(info: ResourceInfo, why: str) -> ApiError:
    """429: stored objects of a listed or watched resource cannot be read."""
    kind = f"{info.gvr.group}/{info.gvr.version}, Kind={info.kind}"
    message = f"storage is (re)initializing: failed to list {kind}: {why}"
    error = ApiError(429, "TooManyRequests", message, details={"retryAfterSeconds": 1})
    error.headers["retry-after"] = "1"
    return error


def no_such_path() -> ApiError:
    """404: the group is served, but not the path."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", details={})


def expired(message: str) -> ApiError:
    """410: the history of a resourceVersion has been compacted."""
    return ApiError(410, "Expired", message)


def too_large_version(asked: int, current: int) -> ApiError:
    """504: a resourceVersion has not been reached."""
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    error = ApiError(504, "Timeout", message, details={"causes": causes, "retryAfterSeconds": 1})
    error.headers["retry-after"] = "1"
    return error


class NotAcceptable(ApiError):
    """406: no accepted media type can be produced. Its Status is never protobuf."""

    def __init__(self, media_types: str) -> None:
        super().__init__(406, "NotAcceptable", f"only the following media types are accepted: {media_types}")


def no_representation(media_types: str) -> ApiError:
    """406 by the router, which checks media types without their parameters."""
    message = f"406: Not Acceptable\n\nAvailable representations: {media_types}"
    return ApiError(406, "NotAcceptable", message, details={})


def wrong_shape(what: str, really: str) -> ApiError:
    """406: PartialObjectMetadata was requested for a list, or PartialObjectMetadataList for an object."""
    return ApiError(406, "NotAcceptable", f"you requested {what}, but the requested object is {really}")


def unsupported_media_type(media_types: str, why: str = "") -> ApiError:
    """415: the body's media type is not supported."""
    message = f"the body of the request was in an unknown format - accepted media types include: {media_types}"
    if why:
        message = f"{message} ({why})"
    return ApiError(415, "UnsupportedMediaType", message)


def unsupported_patch() -> ApiError:
    """415: the built-in resource does not support the patch type."""
    return ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})


def not_implemented(message: str) -> ApiError:
    """501: a sandbox without kubelets cannot do this."""
    return ApiError(501, "NotImplemented", message)


def _reworded(error: ApiError, message: str) -> ApiError:
    error.args = (message,)
    error.status["message"] = message
    return error
