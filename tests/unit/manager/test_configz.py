"""/configz and the configuration file that --write-config-to writes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcm_cli.component import configfile, options
from kcm_cli.machinery.go_floats import to_float32
from kcm_cli.manager.config import Config, load
from kcm_cli.manager.config_files import COMPONENT_CONFIG
from kcm_cli.manager.configz import configz, text
from kcm_cli.manager.options import ComponentConfig
from tests.kit.own import own_controllers

CHANGED = [
    "--controllers=*,-deployment",
    "--kube-api-qps=5000",
    "--node-eviction-rate=0.3",
    "--service-cluster-ip-range=10.0.0.0/16,fd00::/112",
    "--leader-elect=false",
    "--horizontal-pod-autoscaler-tolerance=0.2",
    "--min-resync-period=90m",
    "--enable-leader-migration",
    "--cluster-signing-cert-file=ca.crt",
    "--cluster-signing-key-file=ca.key",
]


def config(*args: str) -> Config:
    return load(args)


def test_defaults_equal_upstreams(reference: Callable[[str], Any]) -> None:
    found: Any = configz(config().component)
    for controller in own_controllers():
        found["kubecontrollermanager.config.k8s.io"].pop(controller.config_key, None)
    same = json.dumps(found) == json.dumps(reference("configz.json"))
    assert same, "an option that upstream lacks has a flag and no key, unless its controller is not upstream's either"


@pytest.mark.parametrize("args", [pytest.param([], id="defaults"), pytest.param(CHANGED, id="changed")])
@pytest.mark.parametrize("as_json", [False, True], ids=["yaml", "json"])
def test_written_configuration_is_read_back_unchanged(args: list[str], as_json: bool, tmp_path: Path) -> None:
    first = config(*args)
    file = tmp_path / "config"
    file.write_text(text(first.component, as_json=as_json))
    again = config(f"--config={file}")
    assert configz(again.component) == configz(first.component)
    assert again.component == first.component


def test_names_are_canonical() -> None:
    body: Any = configz(config("--controllers=deployment,-job-controller").component)
    generic = body["kubecontrollermanager.config.k8s.io"]["Generic"]
    assert generic["Controllers"] == ["deployment-controller", "-job-controller"]


def test_a_second_service_range_is_a_separate_field() -> None:
    body: Any = configz(config("--service-cluster-ip-range=10.0.0.0/16,fd00::/112").component)
    ipam = body["kubecontrollermanager.config.k8s.io"]["NodeIPAMController"]
    assert (ipam["ServiceCIDR"], ipam["SecondaryServiceCIDR"]) == ("10.0.0.0/16", "fd00::/112")


VALUES: dict[str, st.SearchStrategy[object]] = {
    "bool": st.booleans(),
    "string": st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"])),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "float32": st.floats(width=32, allow_nan=False, allow_infinity=False).map(to_float32),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    # float seconds hold every nanosecond of some hundred days, and whole seconds of any span
    "duration": st.one_of(st.integers(0, 10**9).map(lambda ms: ms / 1000), st.integers(0, 10**9).map(float)),
    "strings": st.lists(st.text(st.characters(codec="ascii", exclude_categories=["Cc"])), max_size=4).map(tuple),
    "ip": st.ip_addresses().map(str),
    "": st.lists(st.tuples(st.text("abc./"), st.text("abc./")), max_size=3).map(tuple),
}
COMPONENT = [binding for binding in options.bind(ComponentConfig) if binding.key]


@given(st.fixed_dictionaries({}, optional={b.path: VALUES[b.option.kind.word] for b in COMPONENT}))
@settings(max_examples=40, deadline=None)
def test_any_configuration_round_trips(values: dict[options.Path, object]) -> None:
    component = options.build(ComponentConfig, values)
    again = options.build(ComponentConfig, configfile.parse(text(component), COMPONENT_CONFIG, ComponentConfig))
    assert again == component
