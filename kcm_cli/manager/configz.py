"""The component configuration as a document, for /configz and --write-config-to.

upstream: the v1alpha1 form of KubeControllerManagerConfiguration under its group name
"""

import json

import yaml

from kcm_cli.component import configfile
from kcm_cli.manager.config_files import COMPONENT_CONFIG
from kcm_cli.manager.options import ComponentConfig

GROUP = "kubecontrollermanager.config.k8s.io"


def configz(component: ComponentConfig) -> dict[str, object]:
    """The body of /configz."""
    return {GROUP: document(component)}


def document(component: ComponentConfig) -> dict[str, object]:
    """KubeControllerManagerConfiguration v1alpha1, as /configz shows it."""
    fields = configfile.to_document(component)
    return {"kind": COMPONENT_CONFIG.kind, "apiVersion": COMPONENT_CONFIG.api_versions[0], **fields}


def text(component: ComponentConfig, *, as_json: bool = False) -> str:
    """The document as a file that --config reads."""
    fields = document(component)
    ordered = {"apiVersion": fields.pop("apiVersion"), "kind": fields.pop("kind"), **fields}
    if as_json:
        return json.dumps(ordered, indent=2) + "\n"
    return yaml.safe_dump(ordered, sort_keys=False, default_flow_style=False, width=1000)
