"""What happens to a write between its decoding and its storing (see ``admission.chain``)."""

from kcm_cli.sandbox.apiserver.admission.chain import Admission

__all__ = ["Admission"]
