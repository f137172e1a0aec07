"""From a command line to the completed configuration."""

from pathlib import Path

import pytest

from kcm_cli.component.leader_config import LeaderElectionConfig
from kcm_cli.component.tracing_config import TracingConfig
from kcm_cli.component.version import OWN_VERSION
from kcm_cli.controllers.deployment.config import DeploymentConfig
from kcm_cli.manager.config import Config, ConfigError, load

HEAD = "apiVersion: kubecontrollermanager.config.k8s.io/v1alpha1\nkind: KubeControllerManagerConfiguration\n"


def config(*args: str) -> Config:
    return load(args)


def problems(*args: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        config(*args)
    return caught.value.problems


def test_defaults_are_valid_and_quiet() -> None:
    assert config().warnings == ()


def test_flags_override_the_file(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        HEAD + "DeploymentController: {ConcurrentDeploymentSyncs: 7}\nJobController: {ConcurrentJobSyncs: 8}\n"
    )
    component = config(f"--config={file}", "--concurrent-job-syncs=9").component
    assert (component.controllers.deployment.concurrent_syncs, component.controllers.job.concurrent_syncs) == (7, 9)


def test_a_flag_set_to_its_default_overrides_the_file(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(HEAD + "JobController: {ConcurrentJobSyncs: 8}\n")
    assert config(f"--config={file}", "--concurrent-job-syncs=5").component.controllers.job.concurrent_syncs == 5


def test_each_controller_finds_its_configuration() -> None:
    given = config("--concurrent-deployment-syncs=3")
    assert given.by_type()[DeploymentConfig] == DeploymentConfig(concurrent_syncs=3)
    assert given.by_type()[LeaderElectionConfig] is given.component.generic.leader_election


def test_controllers_that_run() -> None:
    usual = {"deployment-controller", "job-controller", "node-ipam-controller", "token-cleaner-controller"}
    assert usual - {*config().controllers} == {"token-cleaner-controller"}
    named = config("--controllers=*,tokencleaner,-deployment").controllers
    assert usual - {*named} == {"deployment-controller"}


REFUSED = [
    pytest.param(
        ["--leader-elect-lease-duration=10s"],
        "leader-elect-lease-duration must be greater than leader-elect-renew-deadline",
        id="lease duration",
    ),
    pytest.param(
        ["--leader-elect-retry-period=9s"],
        "leader-elect-renew-deadline must be greater than leader-elect-retry-period * 1.2",
        id="retry period",
    ),
    pytest.param(
        ["--leader-elect-resource-lock=redis"],
        'leader-elect-resource-lock must be "leases", but got "redis"',
        id="lock",
    ),
    pytest.param(
        ["--cluster-signing-legacy-unknown-key-file=k"],
        '"cluster-signing-legacy-unknown": cannot specify key without cert',
        id="signer key alone",
    ),
    pytest.param(
        ["--cluster-signing-cert-file=c", "--cluster-signing-kubelet-client-cert-file=c"]
        + ["--cluster-signing-kubelet-client-key-file=k"],
        "cannot specify --cluster-signing-{cert,key}-file and other --cluster-signing-*-file flags at the same time",
        id="both ways of signing",
    ),
    pytest.param(
        ["--concurrent-cron-job-syncs=0"], "concurrent-cron-job-syncs must be greater than 0, but got 0", id="workers"
    ),
    pytest.param(
        ["--max-endpoints-per-slice=1001"],
        "max-endpoints-per-slice must not be more than 1000, but got 1001",
        id="slice size",
    ),
    pytest.param(
        ["--mirroring-concurrent-service-endpoint-syncs=51"],
        "mirroring-concurrent-service-endpoint-syncs must not be more than 50, but got 51",
        id="mirroring workers",
    ),
    pytest.param(
        ["--attach-detach-reconcile-sync-period=500ms"],
        "attach-detach-reconcile-sync-period must be at least one second",
        id="reconcile period",
    ),
    pytest.param(
        ["--service-cluster-ip-range=a,b,c"],
        "service-cluster-ip-range must not hold more than two ranges",
        id="three service ranges",
    ),
    pytest.param(["--allocate-node-cidrs"], "cluster-cidr must be given with --allocate-node-cidrs", id="no range"),
    pytest.param(
        ["--allocate-node-cidrs", "--cluster-cidr=10.0.0.0"] + ["--cluster-cidr=ten"],
        'cluster-cidr: "ten" is not a range of addresses such as 10.0.0.0/16',
        id="range",
    ),
    pytest.param(
        ["--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/16,10.1.0.0/16"],
        "cluster-cidr: two ranges must be of different address families",
        id="families",
    ),
    pytest.param(
        ["--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/16", "--node-cidr-mask-size=15"],
        "cluster-cidr: 10.0.0.0/16 is smaller than the range of one node, which node-cidr-mask-size makes /15",
        id="range of a node",
    ),
    pytest.param(
        ["--secure-port=65536"],
        "secure-port 65536 must be between 0 and 65535, inclusive. 0 for turning off secure port",
        id="port",
    ),
    pytest.param(
        ["--tls-cert-file=c"],
        "tls-cert-file needs tls-private-key-file: a certificate and its key go together",
        id="certificate without key",
    ),
    pytest.param(["--tls-min-version=TLS12"], 'tls-min-version: unknown tls version "TLS12"', id="tls version"),
    pytest.param(
        ["--tls-cipher-suites=ROT13"],
        "tls-cipher-suites: Cipher suite ROT13 not supported or doesn't exist",
        id="cipher",
    ),
    pytest.param(["--tls-curve-preferences=99"], "tls-curve-preferences: unknown curve 99", id="curve"),
    pytest.param(
        ["--tls-curve-preferences=29,23", "--tls-curve-preferences=29"],
        "tls-curve-preferences: curve 29 is given twice",
        id="curve twice",
    ),
    pytest.param(
        ["--tls-curve-preferences=23, 29"],
        'invalid argument "23, 29" for "--tls-curve-preferences" flag: must be a whole number',
        id="curve behind a blank",
    ),
    pytest.param(
        ["--version=v1.36.0-"],
        'invalid argument "v1.36.0-" for "--version" flag: must be true, false, raw or vX.Y.Z',
        id="version with an empty suffix",
    ),
    pytest.param(
        ["--node-monitor-period=0"], "node-monitor-period must be greater than zero", id="period of the nodes' health"
    ),
    pytest.param(
        ["--horizontal-pod-autoscaler-sync-period=0"],
        "horizontal-pod-autoscaler-sync-period must be greater than zero",
        id="period of autoscalers",
    ),
    pytest.param(
        ["--authorization-always-allow-paths=/a*b"],
        'authorization-always-allow-paths: only trailing * allowed in "/a*b"',
        id="path",
    ),
    pytest.param(
        ["--requestheader-group-headers= "], "requestheader-group-headers must not hold an empty value", id="header"
    ),
    pytest.param(
        ["--requestheader-uid-headers=X-Remote-Uid", "--feature-gates=RemoteRequestHeaderUID=false"],
        'requestheader-uid-headers requires the "RemoteRequestHeaderUID" feature to be enabled',
        id="uid header without its gate",
    ),
    pytest.param(
        ["--requestheader-uid-headers=X-Mine"],
        "requestheader-uid-headers must hold X-Remote-Uid, which API servers that aggregate others send",
        id="uid header of one's own",
    ),
    pytest.param(
        ["--logging-format=json", "--feature-gates=LoggingBetaOptions=false"],
        "logging-format: Log format json is disabled, see LoggingBetaOptions feature",
        id="json without its gate",
    ),
    pytest.param(
        ["--show-hidden-metrics-for-version=1.30"],
        "show-hidden-metrics-for-version must be omitted or have the value '1.35'",
        id="hidden metrics",
    ),
    pytest.param(["--disabled-metrics=a,,b"], 'disabled-metrics must be names of metrics, and "" is none', id="metric"),
    pytest.param(
        ["--allow-metric-labels=a,b=c", "--allow-metric-labels-manifest=m"],
        "allow-metric-labels and allow-metric-labels-manifest exclude each other",
        id="labels twice",
    ),
    pytest.param(
        ["--kube-api-burst=0"], "kube-api-burst must be greater than 0 where kube-api-qps is, but got 0", id="burst"
    ),
    pytest.param(["--logging-format=xml"], 'logging-format must be "json" or "text", but got "xml"', id="log format"),
    pytest.param(
        ["--logging-format=json", "--vmodule=a=1"], "vmodule works with --logging-format=text only", id="vmodule"
    ),
    pytest.param(
        ["--log-text-split-stream"], "log-text-split-stream: Feature LoggingAlphaOptions is disabled", id="alpha logs"
    ),
    pytest.param(
        ["--cloud-provider=aws"],
        'cloud provider "aws" was specified, but built-in cloud providers are disabled. '
        "Please set --cloud-provider=external and migrate to an external cloud provider",
        id="cloud provider",
    ),
    pytest.param(
        ["--controllers=deploymnt"],
        '"deploymnt" is not in the list of known controllers (did you mean deployment?)',
        id="controller",
    ),
    pytest.param(["--feature-gates=Nope=true"], "unrecognized feature gate: Nope (kcm --help lists them)", id="gate"),
    pytest.param(
        ["--emulated-version=1.30"], "emulation version 1.30 is not between [1.33, 1.36]", id="emulated version"
    ),
    pytest.param(
        ["-v=+3"],
        'invalid argument "+3" for "-v, --v" flag: must be a whole number',
        id="signed verbosity",
    ),
    pytest.param(
        ["-v", "0x3"],
        'invalid argument "0x3" for "-v, --v" flag: must be a whole number',
        id="hexadecimal verbosity",
    ),
    pytest.param(
        ["--vmodule=a=1_0"],
        'invalid argument "a=1_0" for "--vmodule" flag: must be a whole number',
        id="verbosity of a file",
    ),
    pytest.param(["serve"], "unexpected argument: serve (see kcm --help)", id="positional"),
    pytest.param(
        ["--config=/no/such/file"],
        "cannot read the configuration file /no/such/file: No such file or directory",
        id="no file",
    ),
]


@pytest.mark.parametrize(("args", "problem"), REFUSED)
def test_refuses(args: list[str], problem: str) -> None:
    assert problem in problems(*args)


def test_all_errors_are_reported_together(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(HEAD + "JobController: {Workers: 8}\n")
    found = problems("-v=x", "--nope=1", "extra", f"--config={file}", "--controllers=nope", "--feature-gates=Nope=1")
    assert len(found) == 6
    assert f"{file}: JobController.Workers: unknown field" in found


def test_negative_numbers_that_have_no_effect() -> None:
    config("--kube-api-qps=-1", "--kube-api-burst=-5", "--controller-start-interval=-1s")
    config("--concurrent-validating-admission-policy-status-syncs=0")


def test_without_leader_election_durations_are_not_checked() -> None:
    assert config("--leader-elect=false", "--leader-elect-lease-duration=0s").warnings == ()


@pytest.mark.parametrize("lock", ["endpoints", "configmaps", "endpointsleases", "configmapsleases"])
def test_former_locks_become_leases(lock: str) -> None:
    completed = config(f"--leader-elect-resource-lock={lock}")
    assert completed.component.generic.leader_election.resource_lock == "leases"
    (warning,) = completed.warnings
    assert f"leader-elect-resource-lock={lock} no longer does anything" in warning


@pytest.mark.parametrize("flag", ["port", "address", "pod-eviction-timeout", "enable-taint-manager", "logtostderr"])
def test_flags_that_upstream_removed_are_unknown(flag: str) -> None:
    with pytest.raises(ConfigError) as raised:
        config(f"--{flag}=1")
    assert raised.value.problems[0].startswith(f"unknown flag: --{flag}")


def test_an_option_without_effect_is_reported_with_its_path(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(HEAD + "Generic: {Port: 8080}\n")
    problem = "Generic.Port: set, but plain HTTP is no longer served, so it has no effect"
    assert config(f"--config={file}").warnings == (problem,)
    assert config().warnings == ()


def test_node_ranges_are_checked_only_with_allocation() -> None:
    assert config("--allocate-node-cidrs", "--controllers=*,-node-ipam-controller").warnings == ()
    assert config("--cluster-cidr=ten").warnings == ()


def test_the_plain_port_of_a_file_has_no_effect(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(HEAD + "Generic: {Port: 8080}\n")
    completed = config(f"--config={file}")
    assert completed.component.generic.port == 8080
    assert completed.warnings == ("Generic.Port: set, but plain HTTP is no longer served, so it has no effect",)


def test_alpha_log_options_with_their_gate() -> None:
    completed = config("--log-text-split-stream", "--feature-gates=LoggingAlphaOptions=true")
    assert completed.logs.text_split_stream


def test_flags_are_listed_with_their_values() -> None:
    flags = config("--v=2").flags
    assert (flags["v"], flags["leader-elect-lease-duration"], flags["controllers"]) == ("2", "15s", "[*]")
    assert flags["node-sync-period"] == "0s"  # deprecated ones, too, which the help leaves out


def test_leader_migration_has_a_default() -> None:
    generic = config("--enable-leader-migration").component.generic
    assert generic.leader_migration.leader_name == "cloud-provider-extraction-migration"
    assert config().component.generic.leader_migration.leader_name == ""


def test_leader_migration_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "migration.yaml"
    file.write_text(
        "apiVersion: controllermanager.config.k8s.io/v1\nkind: LeaderMigrationConfiguration\n"
        "leaderName: move\nresourceLock: leases\ncontrollerLeaders: [{name: a, component: '*'}]\n"
    )
    generic = config("--enable-leader-migration", f"--leader-migration-config={file}").component.generic
    assert generic.leader_migration.controller_leaders == (("a", "*"),)
    file.write_text(file.read_text().replace("resourceLock: leases\n", ""))
    assert config("--enable-leader-migration", f"--leader-migration-config={file}").component.generic == generic
    file.write_text(file.read_text().replace("leaderName: move\n", ""))
    found = problems("--enable-leader-migration", f"--leader-migration-config={file}")
    assert found == (f"{file}: leaderName of the leader migration must be set",)


def test_a_missing_leader_migration_file_is_the_only_error(tmp_path: Path) -> None:
    found = problems("--enable-leader-migration", f"--leader-migration-config={tmp_path}/none")
    assert found == (f"cannot read the configuration file {tmp_path}/none: No such file or directory",)


def test_the_reported_version_can_be_set() -> None:
    assert config().git_version == OWN_VERSION
    assert config("--version=v1.36.2-custom").git_version == "v1.36.2-custom"


TRACING = "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: TracingConfiguration\n"


def test_spans_are_off() -> None:
    assert config().tracing is None


def test_a_tracing_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "tracing.yaml"
    file.write_text(TRACING + "endpoint: collector:4317\nsamplingRatePerMillion: 1000\n")
    completed = config(f"--tracing-config-file={file}")
    assert (completed.tracing, completed.warnings) == (TracingConfig(endpoint="collector:4317", rate=1000), ())
    file.write_text(TRACING)
    completed = config(f"--tracing-config-file={file}")
    assert completed.tracing == TracingConfig()
    assert any("samplingRatePerMillion is not set" in warning for warning in completed.warnings)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            TRACING + "endpoint: http://c:4317",
            "endpoint must be host:port, or begin with dns://, unix:// or unix-abstract:"
            '// (OTLP over gRPC, without TLS), but got "http://c:4317"',
        ),
        (
            TRACING + "samplingRatePerMillion: 1000001",
            "samplingRatePerMillion must not be more than 1000000, but got 1000001",
        ),
        (TRACING + "samplingRatePerMillion: '5'", 'samplingRatePerMillion: must be a whole number, but got "5"'),
        (TRACING + "samplingRatePerMillion: 0.5", "samplingRatePerMillion: must be a whole number, but got 0.5"),
        (TRACING + "endpoint: 4317", "endpoint: must be a string, but got 4317"),
        (TRACING + "samplingRate: 5", "samplingRate: unknown field (did you mean samplingRatePerMillion?)"),
        (TRACING.replace("apiserver", "kubelet"), "apiVersion: must be"),
        (TRACING.replace("TracingC", "C"), "kind: must be"),
        ("{", "not YAML"),
        ("", "must hold one document, and holds 0"),
    ],
)
def test_a_bad_tracing_file_is_one_error(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "tracing.yaml"
    file.write_text(text)
    (found,) = problems(f"--tracing-config-file={file}")
    assert found.startswith(f"{file}: {problem}")


def test_a_missing_tracing_file_is_one_error(tmp_path: Path) -> None:
    (found,) = problems(f"--tracing-config-file={tmp_path}/none")
    assert found == f"cannot read the configuration file {tmp_path}/none: No such file or directory"
