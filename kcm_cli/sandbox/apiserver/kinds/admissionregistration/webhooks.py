"""Configurations of validating and mutating webhooks.

upstream: pkg/apis/admissionregistration/validation/validation.go
"""

from functools import cache

import msgspec
from msgspec.structs import replace

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.kinds.admissionregistration import admission_rules
from kcm_cli.sandbox.apiserver.kinds.admissionregistration.common import POLICY_STRATEGY, fill_scopes, fill_selectors
from kcm_cli.sandbox.apiserver.strategy.parts import bump_generation
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, count, layout, number
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, rules, webhook_clients

_NO_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_SIDE_EFFECTS = rules.choices("admissionregistration.v1.ValidatingWebhook", "sideEffects")


def check(doc: Tree, old: Tree | None) -> Errors:
    """Check a new or changed configuration of either kind."""
    hooks, known = doc.get("webhooks") or [], (old or {}).get("webhooks") or []
    same = len(hooks) == len(known) and all(
        hook.get("matchConditions") == before.get("matchConditions") for hook, before in zip(hooks, known, strict=True)
    )
    leniency = _Leniency(
        conditions=old is not None and same,
        side_effects=any(hook.get("sideEffects") not in _NO_SIDE_EFFECTS for hook in known),
        reviews=any(not _recognized(hook) for hook in known),
        names=len({hook.get("name", "") for hook in known}) < len(known),
        selectors=any(any(labels.validate_selector(hook.get(field), "")) for hook in known for field in _SELECTORS),
    )
    unique = rules.Unique()
    for index, hook in enumerate(hooks):
        path, name = f"webhooks[{index}]", hook.get("name", "")
        yield from _webhook(leniency)(hook, path)
        if name and not leniency.names:
            yield from unique(name, f"{path}.name")


_NO_REVIEWS = f"must specify one of {', '.join(webhook_clients.REVIEWS)}"
_SELECTORS = ("namespaceSelector", "objectSelector")


class _Leniency(msgspec.Struct, frozen=True):
    """The invalid values that the old object has, and the new one may keep."""

    conditions: bool = False
    side_effects: bool = False
    reviews: bool = False
    names: bool = False
    selectors: bool = False


def _qualified(name: str, path: str) -> Errors:
    if messages := names.dns1123_subdomain(name):
        yield errors.invalid(path, name, ",".join(messages))
    elif name.count(".") < 2:
        yield errors.invalid(path, name, "should be a domain with at least three segments separated by dots")


@cache
def _webhook(leniency: _Leniency) -> rules.Rule:
    selector = labels.selector_rule(leniency.selectors)
    side_effects = _SIDE_EFFECTS if leniency.side_effects else _NO_SIDE_EFFECTS
    known = () if leniency.reviews else (webhook_clients.known_review,)
    return rules.fields_of(
        "admissionregistration.v1.MutatingWebhook",
        rules.required("name", _qualified),
        rules.each("rules", admission_rules.validate_rule),
        rules.maybe_one_of("failurePolicy"),
        rules.maybe_one_of("matchPolicy"),
        rules.present(
            "sideEffects", rules.enum(*side_effects), detail=f"must specify one of {', '.join(side_effects)}"
        ),
        rules.optional("timeoutSeconds", rules.between(1, 30, "the timeout value must be between 1 and 30 seconds")),
        rules.optional("namespaceSelector", selector),
        rules.optional("objectSelector", selector),
        rules.maybe_one_of("reinvocationPolicy"),
        rules.always("clientConfig", webhook_clients.client, default={}),
        *(() if leniency.conditions else (rules.optional("matchConditions", admission_rules.validate_conditions),)),
        rules.required("admissionReviewVersions", webhook_clients.reviews, *known, detail=_NO_REVIEWS),
    )


def _recognized(hook: Tree) -> bool:
    versions = hook.get("admissionReviewVersions")
    return not versions or not any(webhook_clients.known_review(versions, ""))


def defaults(doc: Tree) -> None:
    """Default a MutatingWebhookConfiguration or ValidatingWebhookConfiguration."""
    mutating = doc.get("kind") == "MutatingWebhookConfiguration"
    for hook in doc.get("webhooks") or ():
        fill.absent(hook, failurePolicy="Fail", matchPolicy="Equivalent", timeoutSeconds=10)
        fill_selectors(hook)
        if mutating:
            fill.absent(hook, reinvocationPolicy="Never")
        fill.absent((hook.get("clientConfig") or {}).get("service"), port=443)
        fill_scopes(hook.get("rules"))


def _webhooks_update(new: Tree, old: Tree) -> None:
    if new.get("webhooks") != old.get("webhooks"):
        bump_generation(new, old)


STRATEGY = replace(
    POLICY_STRATEGY,
    on_update=_webhooks_update,
    check=check,
    empty_counts=True,
)
TABLE = layout(
    NAME,
    number(
        "Webhooks",
        "Webhooks indicates the number of webhooks registered in this configuration",
        count("webhooks"),
    ),
    AGE,
)
