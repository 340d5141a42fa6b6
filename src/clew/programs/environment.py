"""The environment of a program: the few variables of Clew's own that every program needs, and what it is given."""

import os
from collections.abc import Mapping

# Programs, language, terminal, certificates and proxies. Everything else must be given to the agent explicitly.
PASSED_ON = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TERM",
    "TMPDIR",
    "USER",
    "LOGNAME",
    "SHELL",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSH_AUTH_SOCK",
)


def environment_for(*parts: Mapping[str, str], of: Mapping[str, str] | None = None) -> dict[str, str]:
    """PASSED_ON and HOME of our environment (or `of`), then the parts in order: a later one overrides."""
    ours = os.environ if of is None else of
    result = {name: ours[name] for name in (*PASSED_ON, "HOME") if name in ours}
    for part in parts:
        result.update(part)
    return result
