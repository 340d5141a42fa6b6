"""The environment a program gets: what a program needs of ours, its home, and nothing that was not meant for it."""

import os
from collections.abc import Mapping

# What locates programs, language, terminal, certificates and the way out; everything else is the agent's own matter.
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
    """Ours, cut down, with the parts laid over it in order. HOME is ours unless a part names another."""
    ours = os.environ if of is None else of
    result = {name: ours[name] for name in (*PASSED_ON, "HOME") if name in ours}
    for part in parts:
        result.update(part)
    return result
