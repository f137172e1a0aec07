"""Options of requests, read from query parameters or a body, and validated.

upstream: apimachinery pkg/apis/meta/v1/validation, pkg/apis/meta/internalversion/validation (v1.36)
"""

import re
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from kcm_cli.machinery import codec, fields, labels
from kcm_cli.machinery.durations import parse_duration
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.fields import FieldSelector
from kcm_cli.machinery.labels import Selector
from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.apiserver.errors import bad_request, invalid_kind, plain
from kcm_cli.sandbox.apiserver.registry.selection import parse_selectors
from kcm_cli.sandbox.apiserver.schema import Schemas, Target
from kcm_cli.sandbox.apiserver.schema.bodies import kind_in, parse, unrecognized
from kcm_cli.sandbox.apiserver.schema.scheme import not_registered
from kcm_cli.sandbox.apiserver.types import ApiError, FieldError, Tree
from kcm_cli.sandbox.apiserver.validation.errors import forbidden, invalid, not_supported, required
from kcm_cli.sandbox.apiserver.validation.metadata import MANAGER_LENGTH, manager_errors

_GROUP = "meta.k8s.io"
_INTEGER, _DIGITS = re.compile(r"[-+]?[0-9]+"), re.compile(r"[0-9]+")
_LONG = 1000
"""Numbers with more digits are not parsed, which would take long."""
_VALIDATION = ("", "Ignore", "Strict", "Warn")
MOST_TIMEOUT_S = 60.0
"""The limit for a request that is neither a watch nor a connection."""
APPLY_TYPES = ("application/apply-patch+yaml",)


class WriteOptions(msgspec.Struct, frozen=True):
    """Options of create, update and patch. validation: Strict, Warn or Ignore. stated: fieldManager and
    fieldValidation, if the client set them.
    """

    dry_run: bool = False
    manager: str = ""
    validation: str = "Warn"
    force: bool = False
    stated: tuple[tuple[str, str], ...] = ()

    def document(self, kind: str) -> Tree:
        """The options for admission."""
        document: Tree = {"kind": kind, "apiVersion": "meta.k8s.io/v1", **dict(self.stated)}
        if self.dry_run:
            document["dryRun"] = ["All"]
        return document


def write_options(kind: str, request: Request, query: Mapping[str, str], *, apply: bool = False) -> WriteOptions:
    """The options of a request. kind: CreateOptions, UpdateOptions or PatchOptions. Raises ApiError 422."""
    if not query and not apply:
        return WriteOptions(manager=agent_name(request))
    manager = query.get("fieldManager", "")
    errors: list[FieldError] = []
    if kind == "PatchOptions":
        if apply and not manager:
            errors.append(required("fieldManager", "is required for apply patch"))
        elif not apply and "force" in query:
            errors.append(forbidden("force", "may not be specified for non-apply patch"))
    errors += manager_errors(manager, "fieldManager")
    dry_run = [value for key, value in request.query if key == "dryRun"]
    errors += _dry_run_errors(dry_run)
    validation = query.get("fieldValidation", "")
    if validation not in _VALIDATION:
        errors.append(not_supported("fieldValidation", validation, _VALIDATION))
    _refuse(kind, errors)
    stated = tuple((key, query[key]) for key in ("fieldManager", "fieldValidation") if query.get(key))
    force = truthy(query.get("force", "0"))
    return WriteOptions(bool(dry_run), manager or agent_name(request), validation or "Warn", force, stated)


def agent_name(request: Request) -> str:
    """The default field manager: the user agent up to the first slash."""
    agent = request.headers.get("user-agent", "").split("/", 1)[0]
    if not agent.isprintable():
        agent = "".join(letter for letter in agent if letter.isprintable())
    return agent[:MANAGER_LENGTH]


class Preconditions(msgspec.Struct):
    """metav1.Preconditions."""

    uid: str | None = None
    resourceVersion: str | None = None


class DeleteOptions(msgspec.Struct, rename="camel"):
    """metav1.DeleteOptions."""

    kind: str = ""
    api_version: str = ""
    grace_period_seconds: int | None = None
    preconditions: Preconditions | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    dry_run: list[str] | None = None

    @property
    def dry(self) -> bool:
        return bool(self.dry_run)


_OPTIONS_SCHEME = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"
_PROPAGATION = ("Foreground", "Background", "Orphan")


def delete_options(schemas: Schemas, request: Request, query: Mapping[str, str]) -> DeleteOptions:
    """The options in the body, or without a body in the query. Raises ApiError 400, 415, 422."""
    options = _delete_body(schemas, request) if request.body else _delete_query(request, query)
    check_delete_options(options)
    return options


def check_delete_options(options: DeleteOptions) -> None:
    """Raises ApiError 422."""
    errors = []
    policy = options.propagation_policy
    if options.orphan_dependents is not None and policy is not None:
        errors.append(
            invalid("propagationPolicy", policy, "orphanDependents and deletionPropagation cannot be both set")
        )
    if policy is not None and policy not in _PROPAGATION:
        errors.append(not_supported("propagationPolicy", policy, (*_PROPAGATION, "nil")))
    errors += _dry_run_errors(options.dry_run or ())
    _refuse("DeleteOptions", errors)


def _delete_body(schemas: Schemas, request: Request) -> DeleteOptions:
    content_type = request.headers.get("content-type", "")
    target = Target("", "v1", "DeleteOptions")
    try:
        body = parse(target, request.body, content_type)
        found = kind_in(target, body.doc, lambda text: unrecognized(target, text, request.body))
        if found.kind != target.kind:
            group = found.group if body.doc.get("apiVersion") else "meta.k8s.io"
            raise ApiError(400, "BadRequest", not_registered(group, found.version, found.kind, _OPTIONS_SCHEME))
        data = request.body
        if found != target:  # DeleteOptions are the same in all groups
            data, content_type = codec.encode({**body.doc, "apiVersion": "v1"}), "application/json"
        doc, _ = schemas.decode(target, data, content_type, "Ignore")
    except ApiError as error:
        raise _decoding(error) from error
    return msgspec.convert(doc, DeleteOptions)


def _decoding(error: ApiError) -> ApiError:
    """The decoder's error without the text that is added for objects."""
    text = str(error)
    for before in ("cannot be handled as a DeleteOptions: ", "(must be of type DeleteOptions): "):
        _, found, rest = text.partition(before)
        if found:
            text = rest.rpartition(" (")[0] if rest.endswith(")") and "json parse error" in rest else rest
    return ApiError(error.code, str(error.status.get("reason", "")), text)


def _delete_query(request: Request, query: Mapping[str, str]) -> DeleteOptions:
    if not query:
        return DeleteOptions()
    orphan = query.get("orphanDependents")
    uid, version = query.get("uid"), query.get("resourceVersion")
    return DeleteOptions(
        preconditions=Preconditions(uid or None, version or None) if uid or version else None,
        grace_period_seconds=integer(query, "gracePeriodSeconds"),
        orphan_dependents=None if orphan is None else truthy(orphan),
        propagation_policy=query.get("propagationPolicy"),
        dry_run=[value for key, value in request.query if key == "dryRun"] or None,
    )


class ListOptions(msgspec.Struct, frozen=True):
    """Options of list, watch and deletecollection. more: continue; initial: sendInitialEvents."""

    labels: Selector = labels.EVERYTHING
    fields: FieldSelector = fields.EVERYTHING
    version: str = ""
    match: str = ""
    limit: int = 0
    more: str = ""
    timeout_s: int | None = None
    bookmarks: bool = False
    initial: bool | None = None


_NO_OPTIONS = ListOptions()
_NO_CONTINUE = "resourceVersionMatch is forbidden when continue is provided"


def list_options(query: Mapping[str, str], *, watch: bool = False) -> ListOptions:
    """The options of a list, or of a ``watch``. Raises ApiError 400, 422."""
    if not query:
        return _NO_OPTIONS
    initial = query.get("sendInitialEvents")
    options = ListOptions(
        version=query.get("resourceVersion", ""),
        match=query.get("resourceVersionMatch", ""),
        limit=integer(query, "limit") or 0,
        more=query.get("continue", ""),
        timeout_s=integer(query, "timeoutSeconds"),
        bookmarks=truthy(query.get("allowWatchBookmarks", "0")),
        initial=None if initial is None else truthy(initial),
    )
    label_text, field_text = query.get("labelSelector", ""), query.get("fieldSelector", "")
    if label_text or field_text:
        chosen, with_fields = parse_selectors(label_text, field_text)
        options = replace(options, labels=chosen, fields=with_fields)
    if watch and options.more and not options.match and options.initial is None and options.version in ("", "0"):
        _refuse("ListOptions", [forbidden("resourceVersionMatch", _NO_CONTINUE)])
    if options.match or options.initial is not None:
        _refuse("ListOptions", _watch_errors(options) if watch else _list_errors(options))
    return options


def _list_errors(options: ListOptions) -> list[FieldError]:
    errors, match, path = [], options.match, "resourceVersionMatch"
    if match:
        if not options.version:
            errors.append(forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if options.more:
            errors.append(forbidden(path, _NO_CONTINUE))
        if match not in ("Exact", "NotOlderThan"):
            errors.append(not_supported(path, match, ("Exact", "NotOlderThan", "")))
        if match == "Exact" and options.version == "0":
            text = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            errors.append(forbidden(path, text))
    if options.initial is not None:
        errors.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _watch_errors(options: ListOptions) -> list[FieldError]:
    errors, match, path = [], options.match, "resourceVersionMatch"
    if options.initial is not None and match != "NotOlderThan":
        text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        errors.append(forbidden(path, text))
    if match:
        if options.initial is None:
            text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            errors.append(forbidden(path, text))
        if match != "NotOlderThan":
            errors.append(not_supported(path, match, ("NotOlderThan",)))
        if options.more:
            errors.append(forbidden(path, _NO_CONTINUE))
    return errors


def timeout_s(text: str) -> float | None:
    """The seconds that a request may take by its query parameter ``timeout``, at most those of the server; None if it
    asks for no limit. Raises ApiError 400.

    upstream: apiserver pkg/endpoints/filters/request_deadline.go
    """
    try:
        found = parse_duration(text) if text else 0.0
    except FormatError as error:
        raise bad_request(f"invalid timeout specified in the request URL - {error}") from None
    return min(found, MOST_TIMEOUT_S) if found > 0 else None


def integer(query: Mapping[str, str], name: str) -> int | None:
    """An integer parameter, as Go parses it. Raises ApiError 400."""
    text = query.get(name)
    if text is None:
        return None
    try:
        return _whole(text, _INTEGER, range(-(2**63), 2**63))
    except FormatError as error:
        raise bad_request(f"strconv.ParseInt: {error}") from None


def unsigned(text: str) -> int:
    """A resourceVersion, as Go parses it. Raises FormatError."""
    try:
        return _whole(text, _DIGITS, range(2**64))
    except FormatError as error:
        raise FormatError(f"strconv.ParseUint: {error}") from None


def stated_version(meta: Mapping[str, object]) -> int:
    """The resourceVersion in an update's metadata, or 0. Raises ApiError 500."""
    stated = meta.get("resourceVersion")
    if not stated:
        return 0
    try:
        return unsigned(str(stated))
    except FormatError as error:
        raise plain(str(error)) from None


def _whole(text: str, form: re.Pattern[str], fits: range) -> int:
    if not form.fullmatch(text):
        raise FormatError(f'parsing "{text}": invalid syntax')
    number = int(text) if len(text) <= _LONG else fits.stop
    if number not in fits:
        raise FormatError(f'parsing "{text}": value out of range')
    return number


def _dry_run_errors(values: Sequence[str]) -> list[FieldError]:
    if all(value == "All" for value in values):
        return []
    return [not_supported("dryRun", list(values), ("All",))]


def _refuse(kind: str, errors: list[FieldError]) -> None:
    if errors:
        raise invalid_kind(_GROUP, kind, "", errors)


def truthy(text: str) -> bool:
    """A boolean query parameter that is present: anything except 0 and false is true."""
    return text != "0" and text.lower() != "false"
