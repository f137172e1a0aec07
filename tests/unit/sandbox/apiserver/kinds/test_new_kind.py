"""A new kind is one declaration: its fields, defaults, rules, columns and a status."""

import re

import pytest

from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox import assembly
from kcm_cli.sandbox.apiserver.kinds import KINDS
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog, Facts, Subresource
from kcm_cli.sandbox.apiserver.registry.core import Kind, Kinds
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, by_spec, status_check
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, at, layout
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.validation import rules
from tests.kit.api import Api, started
from tests.kit.places import ROOT

_SPEC = rules.fields(rules.required("berth"), rules.optional("lines", rules.at_least(2, "must be at least 2")))
_STATUS = rules.fields(*rules.counters("taut"))
_SCHEMA: Doc = {
    "description": "A ship at its berth.",
    "properties": {
        "spec": {
            "type": "object",
            "description": "How it is moored.",
            "properties": {
                "berth": {"type": "string", "description": "Its place."},
                "lines": {"type": "integer", "format": "int32"},
                "since": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.Time"},
                "fenders": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            },
            "required": ["berth"],
        },
        "status": {"type": "object", "properties": {"taut": {"type": "integer", "format": "int32"}}},
    },
}


def _defaults(doc: Tree) -> None:
    doc.setdefault("spec", {}).setdefault("lines", 4)


MOORING = Kind(
    "harbour.example.com",
    "moorings",
    facts=Facts(
        ("harbour.example.com", "v1"), "moorings", "mooring", "Mooring", namespaced=True, short=("mo",),
        subresources=(Subresource("status"),),
    ),
    schema=_SCHEMA,
    defaults=_defaults,
    strategy=Strategy(generation=True, new_status={}, check=by_spec(_SPEC), check_status=status_check(_STATUS)),
    table=layout(NAME, Column("Berth", "Its place.", at("spec.berth")), AGE),
)  # fmt: skip
PATH = "/apis/harbour.example.com/v1/namespaces/default/moorings"


@pytest.fixture
async def harbour(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> Api:
    """A server that has the kind, too."""
    monkeypatch.setattr(assembly, "KINDS", Kinds([*KINDS, MOORING]))
    return await started(certificates)


def mooring(**spec: object) -> Doc:
    return {"metadata": {"name": "m"}, "spec": {"berth": "7", **spec}}


async def test_its_fields_are_decoded_defaulted_and_validated(harbour: Api) -> None:
    made = await harbour.json("POST", PATH, mooring(), status=201)
    assert (made["kind"], made["apiVersion"], made["spec"]) == (
        "Mooring",
        "harbour.example.com/v1",
        {"berth": "7", "lines": 4},
    )
    assert made["metadata"]["generation"] == 1
    refused = await harbour.json("POST", PATH, mooring(lines=1), status=422)
    assert refused["details"]["causes"][0]["field"] == "spec.lines"
    strict = await harbour.json("POST", PATH, mooring(sails=2), status=400, query={"fieldValidation": "Strict"})
    assert 'unknown field "spec.sails"' in strict["message"]


async def test_its_status_is_written_apart(harbour: Api) -> None:
    made = await harbour.json("POST", PATH, mooring() | {"status": {"taut": 9}}, status=201)
    assert made["status"] == {}
    changed = await harbour.json("PUT", f"{PATH}/m/status", made | {"spec": {"berth": "8"}, "status": {"taut": 2}})
    assert (changed["spec"]["berth"], changed["status"]) == ("7", {"taut": 2})
    await harbour.json("PUT", f"{PATH}/m/status", changed | {"status": {"taut": -1}}, status=422)


async def test_its_lists_are_applied_by_their_type(harbour: Api) -> None:
    for manager, fender in (("one", "a"), ("two", "b")):
        body = mooring(fenders=[fender]) | {"apiVersion": "harbour.example.com/v1", "kind": "Mooring"}
        applied = await harbour.call(
            "PATCH",
            f"{PATH}/m",
            body,
            query={"fieldManager": manager},
            headers={"content-type": "application/apply-patch+yaml"},
        )
        assert applied.status in (200, 201), applied.body
    assert (await harbour.json("GET", f"{PATH}/m"))["spec"]["fenders"] == ["a", "b"]


async def test_clients_find_and_show_it(harbour: Api) -> None:
    await harbour.json("POST", PATH, mooring(), status=201)
    listed = await harbour.json("GET", "/apis/harbour.example.com/v1")
    ours = [one["name"] for one in listed["resources"] if one["name"].startswith("moorings")]
    assert ours == ["moorings", "moorings/status"]
    service = await harbour.json("GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1.harbour.example.com")
    assert service["spec"]["group"] == "harbour.example.com"
    table = await harbour.json("GET", PATH, headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Berth", "Age"]
    assert table["rows"][0]["cells"][:2] == ["m", "7"]
    document = await harbour.json("GET", "/openapi/v3/apis/harbour.example.com/v1")
    schema = document["components"]["schemas"]["com.example.harbour.v1.Mooring"]
    assert schema["properties"]["spec"]["properties"]["berth"]["description"] == "Its place."
    whole = await harbour.json("GET", "/openapi/v2", headers={"accept": "application/json"})
    assert {"com.example.harbour.v1.Mooring", "com.example.harbour.v1.MooringList"} <= whole["definitions"].keys()


def test_each_declared_kind_is_served() -> None:
    catalog = Catalog(KINDS)
    found = [one for group in catalog.groups for name in group.versions for one in catalog.resources(group.group, name)]
    served = {(one.info.gvr.group, one.info.gvr.plural) for one in found}
    lacking = {(kind.group, kind.resource) for kind in KINDS} - served
    assert not lacking, "a kind that upstream lacks has `facts`, which name the same group and resource"


async def test_the_kind_of_the_page_is_whole(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    (text,) = re.findall(r"```python\n(\"\"\"Berth: .*?)```", page, re.DOTALL)
    declared: dict[str, Kind] = {}
    exec(text, declared)
    monkeypatch.setattr(assembly, "KINDS", Kinds([*KINDS, declared["KIND"]]))
    api = await started(certificates)
    path = "/apis/harbour.example.com/v1/namespaces/default/berths"
    made = await api.json("POST", path, {"metadata": {"name": "b"}, "spec": {"ship": "anna"}}, status=201)
    assert (made["spec"], made["status"]) == ({"ship": "anna", "side": "Port"}, {})
    refused = await api.json("POST", path, {"metadata": {"name": "c"}, "spec": {"side": "Bow"}}, status=422)
    assert [cause["field"] for cause in refused["details"]["causes"]] == ["spec.ship", "spec.side"]
    table = await api.json("GET", path, headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})
    assert table["rows"][0]["cells"][:2] == ["b", "anna"]
