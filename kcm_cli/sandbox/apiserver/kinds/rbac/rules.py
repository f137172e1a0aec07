"""Roles and bindings.

Source: pkg/apis/rbac/validation/validation.go.
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, metadata

_GROUP = "rbac.authorization.k8s.io"
_SUBJECTS = ("ServiceAccount", "User", "Group")


def validate_rules(doc: Tree, *, namespaced: bool) -> list[FieldError]:
    found: list[FieldError] = []
    for index, rule in enumerate(doc.get("rules") or ()):
        found += _rule(rule, namespaced, f"rules[{index}]")
    return found


def _rule(rule: Tree, namespaced: bool, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    if not rule.get("verbs"):
        found.append(errors.required(f"{path}.verbs", "verbs must contain at least one value"))
    urls = rule.get("nonResourceURLs")
    if urls:
        if namespaced:
            detail = "namespaced rules cannot apply to non-resource URLs"
            found.append(errors.invalid(f"{path}.nonResourceURLs", urls, detail))
        if any(rule.get(field) for field in ("apiGroups", "resources", "resourceNames")):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            found.append(errors.invalid(f"{path}.nonResourceURLs", urls, detail))
        return found
    if not rule.get("apiGroups"):
        detail = "resource rules must supply at least one api group"
        found.append(errors.required(f"{path}.apiGroups", detail))
    if not rule.get("resources"):
        detail = "resource rules must supply at least one resource"
        found.append(errors.required(f"{path}.resources", detail))
    return found


def validate_binding_update(new: Tree, old: Tree, *, namespaced: bool) -> list[FieldError]:
    found = validate_binding(new, namespaced=namespaced)
    found += metadata.validate_meta_update(new["metadata"], old["metadata"])
    ref = new.get("roleRef") or {}
    if ref != (old.get("roleRef") or {}):
        fields = (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))
        shown = {field: ref.get(source, "") for field, source in fields}
        found.append(errors.invalid("roleRef", shown, "cannot change roleRef"))
    return found


def validate_binding(doc: Tree, *, namespaced: bool) -> list[FieldError]:
    found = metadata.validate_meta(doc["metadata"], namespaced, metadata.path_segment)
    ref = doc.get("roleRef") or {}
    group, kind, name = ref.get("apiGroup", ""), ref.get("kind", ""), ref.get("name", "")
    if group != _GROUP:
        found.append(errors.not_supported("roleRef.apiGroup", group, [_GROUP]))
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    if kind not in kinds:
        found.append(errors.not_supported("roleRef.kind", kind, kinds))
    if name:
        found += errors.invalid_each("roleRef.name", name, names.path_segment(name))
    else:
        found.append(errors.required("roleRef.name"))
    for index, subject in enumerate(doc.get("subjects") or ()):
        found += _subject(subject, namespaced, f"subjects[{index}]")
    return found


def _subject(subject: Tree, namespaced: bool, path: str) -> list[FieldError]:
    name, kind, group = subject.get("name", ""), subject.get("kind", ""), subject.get("apiGroup", "")
    found = [] if name else [errors.required(f"{path}.name")]
    if kind == "ServiceAccount":
        if name:
            found += errors.invalid_each(f"{path}.name", name, names.dns1123_subdomain(name))
        if group:
            found.append(errors.not_supported(f"{path}.apiGroup", group, [""]))
        if not namespaced and not subject.get("namespace"):
            found.append(errors.required(f"{path}.namespace"))
    elif kind not in _SUBJECTS:
        found.append(errors.not_supported(f"{path}.kind", kind, _SUBJECTS))
    elif group != _GROUP:
        found.append(errors.not_supported(f"{path}.apiGroup", group, [_GROUP]))
    return found
