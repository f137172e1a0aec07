"""Validation of a definition's names, columns, subresources, selectable fields and conversion.

upstream: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go
"""

from collections.abc import Iterator

from kcm_cli.machinery import names
from kcm_cli.machinery.errors import FormatError
from kcm_cli.sandbox.apiserver.crd.field_paths import resolve
from kcm_cli.sandbox.apiserver.crd.findings import invalid
from kcm_cli.sandbox.apiserver.crd.structural import structural
from kcm_cli.sandbox.apiserver.types import Errors, FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, rules, webhook_clients

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_TYPES = f"must be one of {','.join(_COLUMN_TYPES)}"
_FORMATS = f"must be one of {','.join(_COLUMN_FORMATS)}"
_SELECTABLE = ("string", "boolean", "integer")
_NOT_SELECTABLE = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
)
MOST_SELECTABLE = 8


LABEL = rules.form(names.dns1035_label, separator=",")


def _two_kinds(given: Tree, path: str) -> Errors:
    if given.get("kind") and given["kind"] == given.get("listKind"):
        yield errors.invalid(f"{path}.listKind", given["listKind"], "kind and listKind may not be the same")


check_names = rules.fields(
    rules.nonempty("plural", LABEL),
    rules.nonempty("singular", LABEL),
    rules.nonempty("kind", rules.KIND),
    rules.nonempty("listKind", rules.KIND),
    rules.each("shortNames", LABEL),
    _two_kinds,
    rules.each("categories", LABEL),
)
"""Validates names that are set."""

check_all_names = rules.fields(
    *(rules.required(name) for name in ("plural", "singular", "kind", "listKind")), check_names
)
"""Validates ``spec.names``."""

check_group_and_scope = rules.fields(
    rules.required(
        "group",
        rules.unless(
            rules.form(names.dns1123_subdomain, separator=","),
            rules.must(lambda group: "." in group, "should be a domain with at least one dot"),
        ),
    ),
    rules.one_of("scope", "Cluster", "Namespaced"),
)
"""Validates group and scope."""


_simple_path = rules.must(lambda text: text.startswith("."), "must be a simple json path starting with .")


def _below(detail: str, *roots: str) -> rules.Rule:
    return rules.unless(_simple_path, rules.must(lambda text: text.startswith(roots), detail))


check_column = rules.fields(
    rules.required("name"),
    rules.required("type", rules.must(lambda value: value in _COLUMN_TYPES, _TYPES), detail=_TYPES),
    rules.nonempty("format", rules.must(lambda value: value in _COLUMN_FORMATS, _FORMATS)),
    rules.required("jsonPath", _simple_path, at="JSONPath"),
)
"""Validates a printer column."""

check_subresources = rules.fields(
    rules.optional(
        "scale",
        rules.fields(
            rules.required("specReplicasPath", _below("should be a json path under .spec", ".spec.")),
            rules.required("statusReplicasPath", _below("should be a json path under .status", ".status.")),
            rules.nonempty(
                "labelSelectorPath",
                _below("should be a json path under either .spec or .status", ".spec.", ".status."),
            ),
        ),
    ),
)
"""Validates subresources: the paths of scale."""


def check_selectable(fields: list[Tree], schema: Tree, path: str, *, any_number: bool) -> Iterator[FieldError]:
    """The errors of selectable fields. ``any_number``: their number is not limited."""
    seen: set[str] = set()
    for index, field in enumerate(fields):
        where, text = f"{path}[{index}].jsonPath", field.get("jsonPath") or ""
        if not text:
            yield errors.required(where)
            continue
        try:
            normal, first, found = resolve(text, structural(schema), brackets=False)
        except FormatError as error:
            yield invalid(where, text, f"is an invalid path: {error}")
            continue
        if first == "metadata":
            yield invalid(where, text, "must not point to fields in metadata")
        if found.type not in _SELECTABLE:
            yield invalid(where, text, _NOT_SELECTABLE)
        if normal in seen:
            yield errors.duplicate(where, text)
        seen.add(normal)
    if len(seen) > MOST_SELECTABLE and not any_number:
        yield errors.too_many(path, len(seen), MOST_SELECTABLE)


def check_conversion(conversion: Tree, path: str, *, known_review: bool, any_ca: bool) -> Errors:
    """The errors of ``spec.conversion``. known_review: require a known version of reviews. any_ca: do not check the
    caBundle.
    """
    yield from _STRATEGY(conversion, path)
    webhook = _WEBHOOKS[known_review, any_ca] if conversion.get("strategy") == "Webhook" else _NO_WEBHOOK
    yield from webhook(conversion.get("webhook") or {}, path)


_STRATEGY = rules.fields(rules.one_of("strategy", "None", "Webhook"))
_UNUSED = "should not be set when strategy is not set to Webhook"
_NO_WEBHOOK = rules.fields(
    rules.forbidden("clientConfig", _UNUSED, zero=False, at="webhookClientConfig"),
    rules.forbidden("conversionReviewVersions", _UNUSED),
)
_WEBHOOKS = {
    (known, any_ca): rules.fields(
        rules.present(
            "clientConfig",
            webhook_clients.client,
            *trusted,
            detail="required when strategy is set to Webhook",
            at="webhookClientConfig",
        ),
        rules.required("conversionReviewVersions", webhook_clients.reviews, *more),
    )
    for known, more in ((False, ()), (True, (webhook_clients.known_review,)))
    for any_ca, trusted in ((False, (webhook_clients.ca_bundle,)), (True, ()))
}
