"""Reads the files that flags name: the configuration of the component, of leader migration and of tracing."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kcm_cli.component import configfile, options
from kcm_cli.component.configfile import Form
from kcm_cli.component.leader_config import LOCK, LeaderMigrationConfig
from kcm_cli.component.options import Group
from kcm_cli.manager.options import Options

if TYPE_CHECKING:
    from kcm_cli.component.tracing_config import TracingConfig

COMPONENT_CONFIG = Form("KubeControllerManagerConfiguration", ("kubecontrollermanager.config.k8s.io/v1alpha1",))
LEADER_MIGRATION = Form(
    "LeaderMigrationConfiguration",
    tuple(f"controllermanager.config.k8s.io/{version}" for version in ("v1", "v1beta1", "v1alpha1")),
)
TRACING = Form(
    "TracingConfiguration",
    tuple(f"apiserver.config.k8s.io/{version}" for version in ("v1", "v1beta1", "v1alpha1")),
)


def component_values(name: str) -> tuple[Mapping[options.Path, object], list[str]]:
    """The values in a component configuration file by attribute path, and its errors."""
    return _values(name, COMPONENT_CONFIG, Options)


def leader_migration(name: str) -> tuple[LeaderMigrationConfig, list[str]]:
    """The content of a leader migration file, and its errors. In v1, which has no resourceLock, the lock is a lease."""
    values, problems = _values(name, LEADER_MIGRATION, LeaderMigrationConfig)
    found = options.build(LeaderMigrationConfig, {("resource_lock",): LOCK, **values})
    problems = problems or [f"{name}: {problem}" for problem in found.problems()]
    return (LeaderMigrationConfig() if problems else found), problems


def tracing(name: str) -> tuple["TracingConfig", list[str]]:
    """The content of a tracing configuration file, and its errors."""
    # imported here: a start without a file needs none of it
    from kcm_cli.component.tracing_config import TracingConfig

    values, problems = _values(name, TRACING, TracingConfig)
    found = options.build(TracingConfig, values)
    return found, problems or [f"{name}: {problem}" for problem in options.problems(found)]


def _values(name: str, form: Form, root: type[Group]) -> tuple[Mapping[options.Path, object], list[str]]:
    try:
        return configfile.parse(Path(name).read_text(encoding="utf-8"), form, root), []
    except OSError as error:
        return {}, [f"cannot read the configuration file {name}: {error.strerror}"]
    except UnicodeDecodeError:
        return {}, [f"{name}: not UTF-8 text"]
    except configfile.ConfigFileError as error:
        return {}, [f"{name}: {problem}" for problem in error.problems]
