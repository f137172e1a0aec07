"""CustomResourceDefinition. Its rules, and what it defines, are in ``crd``.

upstream: apiextensions-apiserver pkg/registry/customresourcedefinition
"""

from kcm_cli.sandbox.apiserver.crd.definition import GROUP, PLURAL
from kcm_cli.sandbox.apiserver.crd.definitions import STRATEGY, default_definition
from kcm_cli.sandbox.apiserver.registry.core import Kind

KIND = Kind(GROUP, PLURAL, defaults=default_definition, strategy=STRATEGY, etcd=f"{GROUP}/{PLURAL}")
