"""The discovery documents, made from the catalog.

upstream: apiserver pkg/endpoints/discovery (v1.36)
"""

from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.discovery import health
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog, Group, Served, Subresource
from kcm_cli.sandbox.apiserver.types import ResourceInfo

AGGREGATED = "apidiscovery.k8s.io/v2"
_WRITES = frozenset(["create", "patch", "update"])
_CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


def group_list(catalog: Catalog) -> Doc:
    """APIGroupList, without the core group."""
    groups = [_group(group) for group in _by_first_version(catalog) if group.group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def _by_first_version(catalog: Catalog) -> list[Group]:
    """The groups; custom ones in the order of their first APIServices (``v1.b.test``, ``v1beta1.a.test``). In
    aggregated discovery they are sorted by name.
    """
    custom = [one for one in catalog.listed if catalog.is_custom(one.group)]
    ordered = iter(sorted(custom, key=lambda one: f"{one.versions[0]}.{one.group}"))
    return [next(ordered) if catalog.is_custom(one.group) else one for one in catalog.listed]


def group(catalog: Catalog, name: str) -> Doc | None:
    """APIGroup, or None if the group is not served."""
    for one in catalog.listed:
        if one.group == name and name:
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(one)}
    return None


def resource_list(catalog: Catalog, name: str, version: str) -> Doc | None:
    """APIResourceList, or None if the version is not served."""
    if not catalog.has_version(name, version):
        return None
    entries = [entry for served in catalog.resources(name, version) for entry in _entries(served)]
    head: Doc = {"kind": "APIResourceList"}
    if name:
        head["apiVersion"] = "v1"
    return {**head, "groupVersion": f"{name}/{version}" if name else version, "resources": entries}


def aggregated(catalog: Catalog, *, core: bool) -> Doc:
    """APIGroupDiscoveryList of the core group, or of all other groups."""
    items = [_discovered(catalog, one) for one in catalog.listed if bool(one.group) != core]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": AGGREGATED, "metadata": {}, "items": items}


def root_paths(catalog: Catalog) -> list[str]:
    """The paths in the response to ``/``."""
    found = {
        "/.well-known/openid-configuration",
        "/api",
        "/apis",
        "/apis/",
        "/metrics",
        "/metrics/slis",
    } | health.paths()
    found |= {"/openapi/v2", "/openapi/v3", "/openapi/v3/", "/openid/v1/jwks", "/version", "/flagz", "/statusz"}
    for one in catalog.groups:
        base = f"/apis/{one.group}" if one.group else "/api"
        found.add(base)
        found |= {f"{base}/{version}" for version in one.versions}
    return sorted(found)


def _version(group_: Group, version: str) -> Doc:
    return {"groupVersion": f"{group_.group}/{version}", "version": version}


def _group(group_: Group) -> Doc:
    return {
        "name": group_.group,
        "versions": [_version(group_, version) for version in group_.versions],
        "preferredVersion": _version(group_, group_.preferred or group_.versions[0]),
    }


def _entries(served: Served) -> list[Doc]:
    info = served.info
    main: Doc = {
        "name": info.gvr.plural,
        "singularName": info.singular,
        "namespaced": info.namespaced,
        "kind": info.kind,
        "verbs": _verbs(served),
        **_extras(info),
    }
    if served.storage_hash:
        main["storageVersionHash"] = served.storage_hash
    return [main, *(_sub_entry(served, sub) for sub in _subresources(served))]


def _extras(info: ResourceInfo) -> Doc:
    parts = (("shortNames", info.short_names), ("categories", info.categories))
    return {key: values for key, values in parts if values}


def _subresources(served: Served) -> list[Subresource]:
    """Subresources, sorted; of custom resources first status, then scale."""
    found = sorted(served.subresources.items(), reverse=served.info.custom)
    return [sub for _, sub in found]


def _verbs(served: Served) -> list[str]:
    """Verbs, sorted; of custom resources in upstream's order."""
    if served.info.custom:
        kept = served.info.verbs - _WRITES if served.closed else served.info.verbs
        return [verb for verb in _CUSTOM_VERBS if verb in kept]
    return sorted(served.info.verbs)


def _sub_entry(served: Served, sub: Subresource) -> Doc:
    info = served.info
    entry: Doc = {"name": f"{info.gvr.plural}/{sub.name}", "singularName": "", "namespaced": info.namespaced}
    if sub.group:
        entry["group"] = sub.group
    if sub.version:
        entry["version"] = sub.version
    return {**entry, "kind": sub.kind, "verbs": sorted(sub.verbs)}


def _discovered(catalog: Catalog, group_: Group) -> Doc:
    versions = [_discovered_version(catalog, group_.group, version) for version in group_.versions]
    metadata: Doc = {"name": group_.group} if group_.group else {}
    return {"metadata": metadata, "versions": versions}


def _discovered_version(catalog: Catalog, group_: str, version: str) -> Doc:
    if catalog.is_remote(group_, version):
        return {"version": version, "freshness": "Stale"}
    resources = [_discovered_resource(served) for served in catalog.resources(group_, version)]
    return {"version": version, "resources": resources, "freshness": "Current"}


def _discovered_resource(served: Served) -> Doc:
    info = served.info
    own = {"group": "", "version": "", "kind": info.kind}
    if info.custom:
        own = {"group": info.gvr.group, "version": info.gvr.version, "kind": info.kind}
    entry: Doc = {
        "resource": info.gvr.plural,
        "responseKind": own,
        "scope": "Namespaced" if info.namespaced else "Cluster",
        "singularResource": info.singular,
        "verbs": _verbs(served),
        **_extras(info),
    }
    if served.subresources:
        entry["subresources"] = [_discovered_sub(served, sub) for sub in _subresources(served)]
    return entry


def _discovered_sub(served: Served, sub: Subresource) -> Doc:
    kind = {"group": sub.group, "version": sub.version, "kind": sub.kind}
    if served.info.custom and not sub.group:
        kind |= {"group": served.info.gvr.group, "version": served.info.gvr.version}
    return {"subresource": sub.name, "responseKind": kind, "verbs": sorted(sub.verbs)}
