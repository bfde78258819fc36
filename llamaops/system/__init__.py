"""The only code that touches the machine: processes, files, sockets, libraries, clocks.

It observes and acts within bounds and never judges. `ports.System` is what collectors get; tests pass
`tests/fakes/system.py`. Nothing else in llamaops may import subprocess or socket.

- `process` runs one bounded child; `server_process` keeps one alive; `guard` outlives a killed llamaops
  just long enough to stop what it had started.
- `http` makes one bounded exchange with one origin.
- `files` reads with limits and writes atomically.
"""
