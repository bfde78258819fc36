"""Import every probe module, so that the registry is whole."""

from __future__ import annotations

import llamaops.probes.concurrency
import llamaops.probes.server  # noqa: F401 - the import itself registers the probes
