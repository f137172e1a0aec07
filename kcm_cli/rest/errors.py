"""The errors of an API server, as exceptions.

ApiError                  status, reason, message, causes, retry_after_s, details of the object
├── BadRequest            400
├── Unauthorized          401
├── Forbidden             403
├── NotFound              404
├── MethodNotSupported    405 MethodNotAllowed
├── NotAcceptable         406
├── AlreadyExists         409
├── Conflict              409
├── Gone                  410
├── Expired               410, a resourceVersion or continue token that is no longer served
├── TooLarge              413 RequestEntityTooLarge
├── UnsupportedMediaType  415
├── Invalid               422
├── TooManyRequests       429
├── InternalError         500
├── ServerTimeout         500, the server says when to try again
├── ServiceUnavailable    503
└── Timeout               504, the request may still take effect

The Status's reason decides the class, or the HTTP code where the reason is unknown. The text of the error is the
Status's message, up to MESSAGE_LIMIT, because it is copied into Events and conditions. An answer that is not a Status
is cut to FOREIGN_LIMIT.

AccessError               the API server cannot be accessed; the text is one line, fit for stderr
├── KubeconfigError       the file is unreadable, malformed, or lacks the context
├── NotInCluster          no kubeconfig was named, and the process does not run in a pod
├── TLSFilesError         a CA, certificate or key file is missing or invalid
└── CredentialsError      a plugin failed, a token file is missing or empty, the server gave no token

A missing or unreadable answer is a ``transport.TransportError``. ``transport.RequestError`` is the base of that and of
ApiError.

upstream: staging/src/k8s.io/apimachinery/pkg/api/errors/errors.go
"""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from kcm_cli.api.protobuf.views import reader_of
from kcm_cli.machinery import codec
from kcm_cli.machinery.envelope import MAGIC, opened
from kcm_cli.machinery.errors import FormatError, MachineryError
from kcm_cli.machinery.meta import View
from kcm_cli.machinery.quoting import bounded, quote
from kcm_cli.rest.transport import Request, RequestError, Response

MESSAGE_LIMIT = 16 * 1024
FOREIGN_LIMIT = 256
MOST_RETRY_AFTER_S = 60.0
"""A server that asks for more is asked again after this: a controller that slept for a year would not be noticed."""
NAMESPACE_TERMINATING = "NamespaceTerminating"
UNEXPECTED_RESPONSE = "UnexpectedServerResponse"


class Cause(View, frozen=True, gc=False):
    """metav1.StatusCause: one of several things that are wrong, and where."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(View, frozen=True, gc=False):
    """metav1.StatusDetails. ``kind`` may be a kind or a plural, as the server pleases."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: int = 0


class Status(View, frozen=True, gc=False):
    """metav1.Status."""

    kind: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: Details | None = None


class ApiError(RequestError):
    """The server refused a request. ``status`` is the HTTP code."""

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        *,
        details: Details | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details or _NO_DETAILS
        self.retry_after_s = retry_after_s

    @property
    def causes(self) -> tuple[Cause, ...]:
        """What the server named as the reasons, by field where it knows it."""
        return self.details.causes

    def has_cause(self, reason: str) -> bool:
        """Whether the server named this cause, for example NAMESPACE_TERMINATING."""
        return any(cause.reason == reason for cause in self.details.causes)

    @property
    def namespace_terminating(self) -> bool:
        """Whether a creation was refused because its namespace is being deleted."""
        return self.has_cause(NAMESPACE_TERMINATING)


class AccessError(Exception):
    """The address or the credentials of the API server cannot be determined."""


class KubeconfigError(AccessError):
    """The kubeconfig cannot be read or used. The text names the file, and the field or line."""


class NotInCluster(AccessError):
    """There is neither a kubeconfig nor a pod's service account."""


class TLSFilesError(AccessError):
    """A CA, certificate or key is missing, unreadable or invalid. The text names the file.

    ``ca``: the reason in the metric of CA reloads; empty where another file is concerned.
    """

    def __init__(self, text: str, *, ca: str = "") -> None:
        super().__init__(text)
        self.ca = ca


class CredentialsError(AccessError):
    """The credentials could not be obtained."""


class BadRequest(ApiError):
    """The request makes no sense to the server."""


class Unauthorized(ApiError):
    """Credentials are missing, wrong or expired."""


class Forbidden(ApiError):
    """The user may not do this, or admission refused it (quota, terminating namespace)."""


class NotFound(ApiError):
    """No such object, or no such resource."""


class MethodNotSupported(ApiError):
    """The resource does not have this verb."""


class NotAcceptable(ApiError):
    """The server cannot answer in the requested media type."""


class AlreadyExists(ApiError):
    """The name is taken."""


class Conflict(ApiError):
    """The object has changed since it was read, or a precondition failed."""


class Gone(ApiError):
    """The object or version is not available any more."""


class Expired(ApiError):
    """The resourceVersion or continue token is too old: list again."""


class TooLarge(ApiError):
    """The request's body is over the server's limit."""


class UnsupportedMediaType(ApiError):
    """The server does not read this content type."""


class Invalid(ApiError):
    """The object breaks its kind's rules; ``causes`` names the fields."""


class TooManyRequests(ApiError):
    """Try again later. An eviction that a PodDisruptionBudget forbids is refused with this, too."""


class InternalError(ApiError):
    """The server failed."""


class ServerTimeout(ApiError):
    """The server did not answer in time and asks for a retry."""


class ServiceUnavailable(ApiError):
    """The server, or the one behind it, is unavailable."""


class Timeout(ApiError):
    """The server gave up waiting; the request may still take effect."""


_NO_DETAILS = Details()
_BY_REASON: Mapping[str, type[ApiError]] = {
    "BadRequest": BadRequest,
    "Unauthorized": Unauthorized,
    "Forbidden": Forbidden,
    "NotFound": NotFound,
    "MethodNotAllowed": MethodNotSupported,
    "NotAcceptable": NotAcceptable,
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Gone": Gone,
    "Expired": Expired,
    "RequestEntityTooLarge": TooLarge,
    "UnsupportedMediaType": UnsupportedMediaType,
    "Invalid": Invalid,
    "TooManyRequests": TooManyRequests,
    "InternalError": InternalError,
    "ServerTimeout": ServerTimeout,
    "ServiceUnavailable": ServiceUnavailable,
    "Timeout": Timeout,
}
_BY_CODE: Mapping[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotSupported,
    406: NotAcceptable,
    409: Conflict,
    410: Gone,
    413: TooLarge,
    415: UnsupportedMediaType,
    422: Invalid,
    429: TooManyRequests,
    500: InternalError,
    503: ServiceUnavailable,
    504: Timeout,
}
_GENERIC: Mapping[int, tuple[str, str]] = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "the server has asked for the client to provide credentials"),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    409: ("Conflict", "the server reported a conflict"),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: (
        "Timeout",
        "the server was unable to return a response in the time allotted, but may still be processing the request",
    ),
}
_KEEPS_TEXT: Mapping[int, str] = {403: "Forbidden", 406: "NotAcceptable", 415: "UnsupportedMediaType"}


def from_status(data: bytes | msgspec.Raw) -> ApiError:
    """The error of a Status document, as an ERROR event of a watch carries it; one without sense is a 500."""
    try:
        status = _read(bytes(data))
    except MachineryError as error:
        return InternalError(500, "InternalError", f"an error that cannot be read: {error}")
    return _from_status(status, 500, None)


def body_of(response: Response, request: Request) -> bytes:
    """The body of an answer. Raises ApiError where it is no success."""
    if 200 <= response.status < 300:
        return response.body
    raise from_response(response, request)


def from_response(response: Response, request: Request | None = None) -> ApiError:
    """The error of an answer that is no success. ``request`` is named where the body is no Status."""
    retry_after_s = retry_after(response.headers)
    try:
        status = _read(response.body)
    except MachineryError:
        return _from_text(response, request, retry_after_s)
    if status.kind != "Status" or status.status == "Success":
        return _from_text(response, request, retry_after_s)
    return _from_status(status, response.status, retry_after_s)


def _read(body: bytes) -> Status:
    """A Status in JSON, or in protobuf with its envelope. Raises MachineryError."""
    if not body.startswith(MAGIC):
        return codec.decode(body, Status)
    envelope, reader = opened(body), reader_of(Status, "meta.v1.Status")
    if reader is None or envelope.kind != "Status":
        raise FormatError(f"protobuf of the kind {quote(envelope.kind)}")
    return replace(reader.read(envelope.data), kind=envelope.kind)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds of a Retry-After header, MOST_RETRY_AFTER_S at most; None where there is none or it is a date, as
    client-go reads it."""
    text = headers.get("retry-after", "")
    return min(float(text), MOST_RETRY_AFTER_S) if text.isascii() and text.isdigit() else None


def _from_status(status: Status, code: int, retry_after_s: float | None) -> ApiError:
    details = status.details
    if details is not None and details.retry_after_seconds > 0:
        retry_after_s = float(min(details.retry_after_seconds, MOST_RETRY_AFTER_S))
    code = status.code or code
    kind = _BY_REASON.get(status.reason) or _class_of(code)
    message = bounded(status.message, MESSAGE_LIMIT)
    return kind(code, status.reason, message, details=details, retry_after_s=retry_after_s)


def _from_text(response: Response, request: Request | None, retry_after_s: float | None) -> ApiError:
    code = response.status
    text = "unknown"
    if response.headers.get("content-type", "").startswith("text/"):
        text = bounded(response.body.decode(errors="replace").strip(), FOREIGN_LIMIT)
    reason, message = _generic(code, text)
    kind = _BY_REASON.get(reason) or _class_of(code)
    if code == 409 and request is not None and request.method == "POST":
        reason, kind = "AlreadyExists", AlreadyExists
    if request is not None:
        message = f"{message} ({request.method.lower()} {request.path})"
    details = Details(causes=(Cause(UNEXPECTED_RESPONSE, text),))
    return kind(code, reason, message, details=details, retry_after_s=retry_after_s)


def _generic(code: int, text: str) -> tuple[str, str]:
    if code in _KEEPS_TEXT:
        return _KEEPS_TEXT[code], text
    if code in _GENERIC:
        return _GENERIC[code]
    if code >= 500:
        return "InternalError", f"an error on the server ({quote(text)}) has prevented the request from succeeding"
    return "", f"the server responded with the status code {code} but did not return more information"


def _class_of(code: int) -> type[ApiError]:
    return _BY_CODE.get(code) or (InternalError if code >= 500 else ApiError)


def namespace_terminating(error: BaseException) -> bool:
    """Whether a creation was refused because its namespace is being deleted."""
    return isinstance(error, ApiError) and error.namespace_terminating


def one_line(error: BaseException) -> str:
    """The text of a foreign error on one bounded line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return bounded(text, FOREIGN_LIMIT)
