"""Error responses that many parts share, worded as in upstream's ``apimachinery/pkg/api/errors``.

``group`` and ``plural`` name a resource as Status.details does; an empty plural means that there is no resource.
"""

from collections.abc import Sequence

from kcm_cli.api.resource import group_resource
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.errors import aggregated
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.types import ApiError, FieldError, ResourceInfo


def bad_request(message: str) -> ApiError:
    """400: the request is malformed."""
    return ApiError(400, "BadRequest", message)


def unauthorized() -> ApiError:
    """401: the credentials are not recognized."""
    return ApiError(401, "Unauthorized", "Unauthorized")


def forbidden(group: str, plural: str, name: str, why: str, causes: Sequence[Doc] = ()) -> ApiError:
    """403 by the authorizer or by admission."""
    if not plural:
        message = f"forbidden: {why}"
    elif not name:
        message = f"{group_resource(group, plural)} is forbidden: {why}"
    else:
        message = f"{group_resource(group, plural)} {quote(name)} is forbidden: {why}"
    return ApiError(403, "Forbidden", message, details=details(group, plural, name, causes))


def not_found(group: str, plural: str, name: str) -> ApiError:
    """404: the object does not exist."""
    message = f"{group_resource(group, plural)} {quote(name)} not found"
    return ApiError(404, "NotFound", message, details=details(group, plural, name))


def conflict(group: str, plural: str, name: str, why: str) -> ApiError:
    """409: an update or a precondition does not match the stored object."""
    message = f"Operation cannot be fulfilled on {group_resource(group, plural)} {quote(name)}: {why}"
    return ApiError(409, "Conflict", message, details=details(group, plural, name))


def method_not_allowed() -> ApiError:
    """405 by the router."""
    return ApiError(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
        details={},
    )


def internal(message: str) -> ApiError:
    """500 with upstream's prefix."""
    text = f"Internal error occurred: {message}"
    return ApiError(500, "InternalError", text, details={"causes": [{"message": message}]})


def plain(message: str) -> ApiError:
    """500: an error that upstream does not classify: no reason, no details."""
    return ApiError(500, "", message)


class UnknownVersion(ApiError):
    """500: a custom object is stored in a version that its definition no longer has."""

    def __init__(self, version: str) -> None:
        super().__init__(500, "", f"request to convert CR from an invalid group/version: {version}")


def details(group: str, plural: str, name: str, causes: Sequence[Doc] = ()) -> Doc:
    """Status.details without empty fields."""
    found: Doc = {}
    if name:
        found["name"] = name
    if group:
        found["group"] = group
    if plural:
        found["kind"] = plural
    if causes:
        found["causes"] = list(causes)
    return found


def invalid(resource: ResourceInfo, name: str, errors: Sequence[FieldError]) -> ApiError:
    """422 for an object of a resource."""
    return invalid_kind(resource.gvr.group, resource.kind, name, errors)


def invalid_kind(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> ApiError:
    """422 Invalid: the causes are all errors, the message has equal ones once. The kind is empty for reviews.

    upstream: NewInvalid
    """
    joined = aggregated(f"{error.field}: {error.message}" for error in errors)
    causes: list[Doc] = [{"reason": error.type, "message": error.message, "field": error.field} for error in errors]
    message = f"{group_resource(group, kind)} {quote(name)} is invalid: {joined}"
    return ApiError(422, "Invalid", message, details=details(group, kind, name, causes))


def already_exists(info: ResourceInfo, name: str, *, deleting: bool = False, generated: bool = False) -> ApiError:
    """409: the name is taken. ``generated``: the object has a generateName, whether or not it has been used."""
    text, found = f"{info.gvr.group_resource} {quote(name)} already exists", details(*info.named, name)
    if generated:
        text += ", the server was not able to generate a unique name for the object"
        found["retryAfterSeconds"] = 1
    return ApiError(409, "AlreadyExists", f"object is being deleted: {text}" if deleting else text, details=found)


def precondition(field: str, wanted: object, known: object) -> str:
    """The text of a failed precondition on ``UID`` or ``ResourceVersion``."""
    return f"Precondition failed: {field} in precondition: {wanted}, {field} in object meta: {known}"


def storage_conflict(info: ResourceInfo, name: str, key: str, field: str, wanted: object, known: object) -> ApiError:
    """409: a precondition failed in upstream's storage layer. ``key``: see ``Core.storage_key``."""
    why = precondition(field, wanted, known)
    text = f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {why}"
    return conflict(*info.named, name, text)


def verb_not_supported(info: ResourceInfo, verb: str) -> ApiError:
    """405: the custom resource does not have the verb."""
    message = f'{verb} is not supported on resources of kind "{info.gvr.group_resource}"'
    return ApiError(405, "MethodNotAllowed", message, details=details(*info.named, ""))


def outdated(info: ResourceInfo, name: str) -> ApiError:
    """409: the update is based on an older resourceVersion."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(*info.named, name, why)


def initializing(info: ResourceInfo, why: str) -> ApiError:
    """429: stored objects of a listed or watched resource cannot be read."""
    kind = f"{info.gvr.group}/{info.gvr.version}, Kind={info.kind}"
    message = f"storage is (re)initializing: failed to list {kind}: {why}"
    return ApiError(429, "TooManyRequests", message, details={"retryAfterSeconds": 1})


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
    return ApiError(504, "Timeout", message, details={"causes": causes, "retryAfterSeconds": 1})


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
