"""Where Pellucid looks on the network, and how patient it is. Each endpoint that it contacts is here.

Assign to change one: ``pellucid.settings.hub_endpoint = "https://mirror.example"``.
"""

import os

# The model hub: files are at {hub_endpoint}/{org/name}/resolve/{revision}/{filename}, listings at
# {hub_endpoint}/api/models/{org/name}/revision/{revision}.
hub_endpoint: str = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")

# Sent to the hub, and to no other host, when a call gives no token of its own.
hub_token: str | None = os.environ.get("HF_TOKEN")

# Pyodide, its lock file and its packages, for pages that do not carry them.
pyodide_cdn: str = "https://cdn.jsdelivr.net/pyodide/v0.29.5/full/"

# What a path is relative to when it is no local file: in a page its own origin (None means that), natively
# nothing unless set.
origin: str | None = os.environ.get("PELLUCID_ORIGIN")

# Seconds of silence after which a connection counts as broken.
network_timeout: float = 30.0

# How many times in a row a request may fail without any progress.
network_retries: int = 5

# In a page: whether files from URLs are also written to the origin's private file system, and read from there
# the next time; see pellucid.utils.copies.
keep_copies: bool = False
