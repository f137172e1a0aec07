"""Object metadata, on creation and on update.

upstream: apimachinery pkg/api/validation/objectmeta.go; apiserver pkg/registry/rest/{create,update}.go
"""

from collections.abc import Callable

from kcm_cli.machinery import names
from kcm_cli.machinery.remembered import remembered_all
from kcm_cli.sandbox.apiserver.types import Errors, FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, rules
from kcm_cli.sandbox.apiserver.validation.labels import validate_annotations, validate_key, validate_labels

NameRule = Callable[[str, bool], list[str]]
"""Returns the errors of a name. The second argument: whether it is a prefix (``generateName``)."""

MANAGER_LENGTH, _SUBRESOURCE_LENGTH = 128, 256
STANDARD_FINALIZERS = frozenset({"kubernetes", "foregroundDeletion", "orphan"})
_NOT_STANDARD = "name is neither a standard finalizer name nor is it fully qualified"
_IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_REFERENCE_FIELDS = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")


def _masked(name: str, prefix: bool) -> str:
    # upstream: pkg/api/validation/generic.go#maskTrailingDash (it drops the character before the dash, too)
    return f"{name[:-2]}a" if prefix and len(name) > 1 and name.endswith("-") else name


def subdomain(name: str, prefix: bool = False) -> list[str]:
    """The rule for names of most kinds."""
    return names.dns1123_subdomain(_masked(name, prefix))


def label(name: str, prefix: bool = False) -> list[str]:
    """The rule for names of Namespaces and Services."""
    return names.dns1123_label(_masked(name, prefix))


def path_segment(name: str, prefix: bool = False) -> list[str]:
    """The rule for names of RBAC objects, and the minimum for all names."""
    return names.path_segment_prefix(name) if prefix else names.path_segment(name)


def validate_meta(meta: Tree, namespaced: bool, rule: NameRule) -> Errors:
    """Check metadata of a kind in kube-apiserver's own packages, whose finalizers may be standard ones."""
    return [*validate_plain_meta(meta, namespaced, rule), *core_finalizers(meta)]


def validate_finalizer(name: str, path: str) -> Errors:
    """Check a finalizer in a Namespace's spec: fully qualified, or a standard one."""
    yield from validate_key(name, path)
    if "/" not in name and name not in STANDARD_FINALIZERS:
        yield errors.invalid(path, name, _NOT_STANDARD)


def core_finalizers(meta: Tree) -> Errors:
    """Check that finalizers without a domain are standard ones."""
    return [
        errors.invalid(f"metadata.finalizers[{index}]", name, _NOT_STANDARD)
        for index, name in enumerate(meta.get("finalizers") or ())
        if "/" not in name and name not in STANDARD_FINALIZERS
    ]


def validate_plain_meta(meta: Tree, namespaced: bool, rule: NameRule, path: str = "metadata") -> Errors:
    """Check metadata of any kind."""
    found: list[FieldError] = []
    if generate := meta.get("generateName"):
        found += errors.invalid_each(f"{path}.generateName", generate, rule(generate, True))
    if name := meta.get("name"):
        if messages := rule(name, False):
            found += errors.invalid_each(f"{path}.name", name, messages)
    else:
        found.append(errors.required(f"{path}.name", "name or generateName is required"))
    return found + validate_rest(meta, namespaced, path)


def validate_rest(meta: Tree, namespaced: bool, path: str = "metadata") -> list[FieldError]:
    """Check metadata except names."""
    return [*_namespace(meta, namespaced, path), *_REST(meta, path)]


def manager_errors(manager: str, path: str) -> Errors:
    """Check the name of a field manager."""
    found: list[FieldError] = []
    if len(manager.encode()) > MANAGER_LENGTH:
        found.append(errors.too_long(path, MANAGER_LENGTH))
    if manager.isprintable():
        return found
    position = 0
    for letter in manager:
        if not letter.isprintable():
            text = f"invalid character U+{ord(letter):04X} (at position {position})"
            found.append(errors.invalid(path, manager, text))
        position += len(letter.encode())
    return found


def _namespace(meta: Tree, namespaced: bool, path: str) -> Errors:
    namespace = meta.get("namespace", "")
    if not namespaced:
        return [errors.forbidden(f"{path}.namespace", "not allowed on this type")] if namespace else []
    if not namespace:
        return [errors.required(f"{path}.namespace")]
    return errors.invalid_each(f"{path}.namespace", namespace, _namespace_messages(namespace))


def _namespace_messages(namespace: str) -> tuple[str, ...]:
    if namespace.isalnum() and namespace.islower() and namespace.isascii() and len(namespace) <= names.LABEL_MAX:
        return ()
    return tuple(names.dns1123_label(namespace))


def validate_owners(references: list[Tree], path: str) -> Errors:
    """Check owner references: complete, no Event, at most one controller."""
    first = ""
    for ref in references:
        yield from _owner(ref, path)
        if ref.get("controller"):
            current = f"{ref.get('kind', '')}/{ref.get('name', '')}"
            if first:
                detail = (
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {first} and {current}'
                )
                yield errors.invalid(path, [shown_owner(item) for item in references], detail)
            else:
                first = current


def _owner(ref: Tree, path: str) -> Errors:
    version, kind = ref.get("apiVersion", ""), ref.get("kind", "")
    if not version.rpartition("/")[2] or version.count("/") > 1:
        yield errors.invalid(f"{path}.apiVersion", version, "version must not be empty")
    for field in ("kind", "name", "uid"):
        if not ref.get(field):
            yield errors.invalid(f"{path}.{field}", "", "must not be empty")
    if version == "v1" and kind == "Event":
        yield errors.invalid(path, shown_owner(ref), "/v1, Kind=Event is disallowed from being an owner")


def shown_owner(ref: Tree) -> Tree:
    """An owner reference as errors print it."""
    result = {field: ref[field] for field in _REFERENCE_FIELDS if field in ref}
    for field in ("apiVersion", "kind", "name", "uid"):
        result.setdefault(field, "")
    return {field: result[field] for field in _REFERENCE_FIELDS if field in result}


def _finalizers(finalizers: list[str], path: str) -> Errors:
    for name in finalizers:
        yield from validate_key(name, path)
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        yield errors.invalid(path, finalizers, "finalizer orphan and foregroundDeletion cannot be both set")


_MANAGER = rules.fields(
    rules.nonempty("manager", manager_errors), rules.optional("subresource", rules.max_bytes(_SUBRESOURCE_LENGTH))
)


def _managers(entries: list[Tree], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for index, entry in enumerate(entries):
        if not _is_plain(entry.get("manager") or "", entry.get("subresource") or ""):
            found += _MANAGER(entry, f"{path}[{index}]")
    return found


@remembered_all(1024)
def _is_plain(manager: str, subresource: str) -> bool:
    """Whether an entry has no errors."""
    return not _MANAGER({"manager": manager, "subresource": subresource}, "")


_REST = rules.fields(
    rules.nonempty("generation", rules.COUNT),
    rules.nonempty("labels", validate_labels),
    rules.nonempty("annotations", validate_annotations),
    rules.nonempty("ownerReferences", validate_owners),
    rules.nonempty("finalizers", _finalizers),
    rules.nonempty("managedFields", _managers),
)


def validate_meta_update(new: Tree, old: Tree) -> Errors:
    """Check changes of metadata of a kind in kube-apiserver's own packages."""
    return [*validate_plain_meta_update(new, old), *core_finalizers(new)]


def validate_plain_meta_update(new: Tree, old: Tree) -> Errors:
    """Check changes of metadata of any kind."""
    found: list[FieldError] = []
    get, known = new.get, old.get
    if known("deletionTimestamp"):
        found += _new_finalizers(new, old)
    if not get("resourceVersion"):
        found.append(errors.invalid("metadata.resourceVersion", "", "must be specified for an update"))
    if get("generation", 0) < known("generation", 0):
        found.append(errors.invalid("metadata.generation", get("generation", 0), "must not be decremented"))
    for field in _IMMUTABLE:
        value = get(field)
        if value != known(field):
            absent = None if field.startswith("deletion") or field == "creationTimestamp" else ""
            found.append(errors.invalid(f"metadata.{field}", absent if value is None else value, errors.IMMUTABLE))
    for field, check in _CHANGED:
        if get(field) != known(field):
            found += check(get(field), f"metadata.{field}")
    return found + _managers(get("managedFields") or [], "metadata.managedFields")


_CHANGED: tuple[tuple[str, rules.Rule], ...] = (
    ("labels", validate_labels),
    ("annotations", validate_annotations),
    ("ownerReferences", lambda references, path: validate_owners(references or [], path)),
)


def _new_finalizers(new: Tree, old: Tree) -> Errors:
    added = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
    if not added:
        return
    shown = "[]string{" + ", ".join(errors.show(name) for name in added) + "}"
    detail = f"no new finalizers can be added if the object is being deleted, found new finalizers {shown}"
    yield errors.forbidden("metadata.finalizers", detail)


def validate_common_update(new: Tree, old: Tree, namespaced: bool) -> Errors:
    """The checks of updates of all kinds, before those of the kind."""
    meta = new["metadata"]
    return [*validate_plain_meta(meta, namespaced, path_segment), *validate_plain_meta_update(meta, old["metadata"])]
