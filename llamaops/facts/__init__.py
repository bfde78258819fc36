"""What was observed, one file per fact group: its type, its collector and its parsers together.

A group is a `Shape` whose fields are `Fact[...]`. `collect_*` functions take a `ports.System` and touch
the machine only through it; `parse_*` functions turn text into values and raise ParseError; both are
joined by `observe`, which turns OSError and ParseError into Unknown. Nothing here judges, and no state
of the machine raises.

May import: system, schema. To add a group: one file here, one field in `record.record.Facts`.
"""
