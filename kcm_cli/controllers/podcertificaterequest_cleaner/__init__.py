from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="podcertificaterequest-cleaner-controller",
    client="podcertificaterequestcleaner",
    gates=("PodCertificateRequest",),
)
