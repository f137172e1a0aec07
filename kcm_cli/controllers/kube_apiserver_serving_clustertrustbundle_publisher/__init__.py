from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="kube-apiserver-serving-clustertrustbundle-publisher-controller",
    client="kube-apiserver-serving-clustertrustbundle-publisher",
    gates=("ClusterTrustBundle",),
    requires=(
        "certificates.k8s.io/v1beta1/clustertrustbundles",
        "certificates.k8s.io/v1alpha1/clustertrustbundles",
    ),
)
