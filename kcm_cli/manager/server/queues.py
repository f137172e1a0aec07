"""The names of upstream's queues of loads, for metrics (see ``runtime.loads``)."""

SERVING = "DynamicServingCertificateController"
SERVING_FILES = "DynamicCABundle-serving-cert"
CLIENT_CA_FILE = "DynamicCABundle-client-ca-bundle"
PROXY_CA_FILE = "DynamicCABundle-request-header"
CLIENT_CA_CONFIG_MAP = "DynamicConfigMapCABundle-client-ca"
PROXY_HEADERS_CONFIG_MAP = "RequestHeaderAuthRequestController"
