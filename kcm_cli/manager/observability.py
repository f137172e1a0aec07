"""The metrics and health checks of a manager. ``manager.pages`` shows them."""

import platform
from pathlib import Path

import yaml

from kcm_cli.component.clock import Clock
from kcm_cli.component.featuregates import ABSENT, FeatureGates
from kcm_cli.component.health import HealthChecks, SliMetrics
from kcm_cli.component.metrics import MetricsOptions, Registry, RestClientMetrics, Stability, WorkqueueCollector
from kcm_cli.component.metrics.process import ProcessMetrics, StartTimeOnly
from kcm_cli.component.metrics_config import LABEL_KEY, MetricsConfig
from kcm_cli.component.version import BINARY, COMPONENT, OWN_VERSION, EffectiveVersion, commit, go_platform
from kcm_cli.engine.context import DebugTable
from kcm_cli.machinery.yaml_errors import load
from kcm_cli.manager.config import Config
from kcm_cli.manager.errors import RunError
from kcm_cli.manager.running import RunningControllers
from kcm_cli.runtime.cause_ring import CauseRing


class Observability:
    """The registries of one manager."""

    def __init__(self, config: Config, clock: Clock, causes: CauseRing | None = None) -> None:
        """causes: by default a new record. Raises RunError for an invalid manifest of metric labels."""
        self.config = config
        self.clock = clock
        self.started = clock.now()
        self.slis = Registry(about_itself=False)
        families = SliMetrics(self.slis)
        self.registry = Registry(metrics_options(config.metrics))
        self.workqueues = WorkqueueCollector(self.registry)
        self.rest = RestClientMetrics(self.registry)
        self.health = HealthChecks(metrics=families)
        self.running = RunningControllers(self.health, self.registry)
        self.debug: DebugTable = {}
        self.causes = CauseRing(clock) if causes is None else causes
        self.process = ProcessMetrics()
        self.registry.add(self.process)
        self.slis.add(StartTimeOnly(self.process))
        self.sli_families = families
        show_version(self.registry, config.version)
        show_gates(self.registry, config.gates)


def metrics_options(config: MetricsConfig) -> MetricsOptions:
    """The registry's options from the metrics flags. Raises RunError."""
    pairs = {**_manifest(config.allow_labels_manifest), **dict(config.allow_labels)}
    allowed: dict[str, dict[str, frozenset[str]]] = {}
    for key, values in pairs.items():
        metric, _, label = key.partition(",")
        allowed.setdefault(metric, {})[label] = frozenset(value.strip() for value in values.split(","))
    return MetricsOptions(allowed, frozenset(config.disabled), show_hidden=bool(config.show_hidden_for_version))


def _manifest(path: str) -> dict[str, str]:
    if not path:
        return {}
    flag = "allow-metric-labels-manifest"
    try:
        document = load(Path(path).read_text(encoding="utf-8"), yaml.BaseLoader)  # all scalars are texts
    except OSError as error:
        raise RunError(f"{flag}: cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RunError(f"{flag}: {path} is not YAML") from error
    mapping = document.get("allowListMapping", document) if isinstance(document, dict) else document
    mapping = mapping or {}
    if not isinstance(mapping, dict) or not all(isinstance(values, str) for values in mapping.values()):
        raise RunError(f"{flag}: {path} must map metric,label to values")
    for key in mapping:
        if not LABEL_KEY.fullmatch(key):
            raise RunError(f'{flag}: {path} must have keys of the form metric,label, and "{key}" is none')
    return mapping


def show_version(registry: Registry, version: EffectiveVersion) -> None:
    """Set the metrics kubernetes_build_info and version_info."""
    labels = {
        "build_date": "",
        "compiler": platform.python_implementation(),
        "git_commit": commit(),
        "git_tree_state": "",
        "git_version": OWN_VERSION,
        "go_version": f"python{platform.python_version()}",
        "major": str(BINARY.major),
        "minor": str(BINARY.minor),
        "platform": go_platform(),
    }
    build = registry.gauge(
        "kubernetes_build_info",
        "The build of this program as labels; always 1.",
        labels=tuple(labels),
        stability=Stability.BETA,
    )
    build.labels(*labels.values()).set(1.0)
    names = ("binary", "component", "emulation", "min_compat")
    info = registry.gauge("version_info", "The release of each component, and the one that it emulates.", labels=names)
    info.labels(f"{BINARY}.0", COMPONENT, str(version.emulation), str(version.min_compatibility)).set(1.0)


def show_gates(registry: Registry, gates: FeatureGates) -> None:
    """Set the metric kubernetes_feature_enabled."""
    family = registry.gauge(
        "kubernetes_feature_enabled",
        "Whether a feature gate is on. The stage is empty for GA.",
        labels=("name", "stage"),
        stability=Stability.BETA,
    )
    for gate in gates.values():
        if gate.stage != ABSENT:
            stage = "" if gate.stage == "GA" else gate.stage
            family.labels(gate.name, stage).set(1.0 if gate.enabled else 0.0)
