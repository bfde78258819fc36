"""Redacted record to text: wording and order, never a status.

Renderers take `Redacted`, which only `record.redact` makes. They do no I/O and ask no clock. Values from
logs and metadata are data: control characters are shown, not sent (`inert`).
"""
