"""Error responses that many parts share, worded as in upstream's ``apimachinery/pkg/api/errors``.

``group`` and ``plural`` name a resource as Status.details does; an empty plural means that there is no resource.
"""

from collections.abc import Sequence

from kcm_cli.api.resource import group_resource
from kcm_cli.machinery.codec import Doc
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


def already_exists(group: str, plural: str, name: str) -> ApiError:
    """409: a create with the name of an existing object."""
    message = f"{group_resource(group, plural)} {quote(name)} already exists"
    return ApiError(409, "AlreadyExists", message, details=details(group, plural, name))


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
    texts = list(dict.fromkeys(f"{error.field}: {error.message}" for error in errors))
    joined = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    causes: list[Doc] = [{"reason": error.type, "message": error.message, "field": error.field} for error in errors]
    message = f"{group_resource(group, kind)} {quote(name)} is invalid: {joined}"
    return ApiError(422, "Invalid", message, details=details(group, kind, name, causes))
