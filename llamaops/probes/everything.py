"""Import every probe module, so that the registry is whole."""

from __future__ import annotations

import llamaops.probes.concurrency
import llamaops.probes.drain
import llamaops.probes.more
import llamaops.probes.router
import llamaops.probes.server
import llamaops.probes.sleep
import llamaops.probes.surface  # noqa: F401 - the import itself registers the probes
