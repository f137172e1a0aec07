"""/api, /apis and what is below them down to the resources."""

from kcm_cli.machinery.codec import Doc
from kcm_cli.rest.transport import Request, Response
from kcm_cli.sandbox.apiserver.registry import refusals
from kcm_cli.sandbox.apiserver.registry.answers import doc_response, text_response
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog, Group, Served


class Discovery:
    """Answers discovery requests."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def answer(self, request: Request) -> Response:
        match request.path.strip("/").split("/"):
            case ["version"]:
                return doc_response(200, VERSION)
            case ["api"]:
                return doc_response(200, {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
            case ["apis"]:
                return doc_response(200, self._groups())
            case ["api", version]:
                return self._resources("", version)
            case ["apis", group]:
                return self._group(group)
            case ["apis", group, version]:
                return self._resources(group, version)
        return text_response(404, "404 page not found\n")

    def _groups(self) -> Doc:
        groups = [_group(group) for group in self._catalog.groups if group.group]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def _group(self, name: str) -> Response:
        for group in self._catalog.groups:
            if group.group == name:
                return doc_response(200, {"kind": "APIGroup", "apiVersion": "v1", **_group(group)})
        return text_response(404, "404 page not found\n")

    def _resources(self, group: str, version: str) -> Response:
        if not self._catalog.has_version(group, version):
            raise refusals.no_such_path()
        entries = [entry for served in self._catalog.resources(group, version) for entry in _entries(served)]
        document: Doc = {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": entries,
        }
        if not group:
            del document["apiVersion"]
        return doc_response(200, document)


VERSION: Doc = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.0+kcm",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "go1.26",
    "compiler": "gc",
    "platform": "linux/amd64",
}


def _version(group: Group, version: str) -> Doc:
    return {"groupVersion": f"{group.group}/{version}", "version": version}


def _group(group: Group) -> Doc:
    return {
        "name": group.group,
        "versions": [_version(group, version) for version in group.versions],
        "preferredVersion": _version(group, group.preferred or group.versions[0]),
    }


def _entries(served: Served) -> list[Doc]:
    info = served.info
    main: Doc = {
        "name": info.gvr.plural,
        "singularName": info.singular,
        "namespaced": info.namespaced,
        "kind": info.kind,
        "verbs": sorted(info.verbs),
    }
    if info.short_names:
        main["shortNames"] = info.short_names
    if info.categories:
        main["categories"] = info.categories
    if served.storage_hash:
        main["storageVersionHash"] = served.storage_hash
    entries = [main]
    for name, sub in sorted(served.subresources.items()):
        entry: Doc = {"name": f"{info.gvr.plural}/{name}", "singularName": "", "namespaced": info.namespaced}
        if sub.group:
            entry["group"] = sub.group
        if sub.version:
            entry["version"] = sub.version
        entries.append({**entry, "kind": sub.kind, "verbs": sorted(sub.verbs)})
    return entries
