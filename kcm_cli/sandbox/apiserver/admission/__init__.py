"""Admission (see ``admission.chain``)."""

from kcm_cli.sandbox.apiserver.admission.chain import Admission

__all__ = ["Admission"]
