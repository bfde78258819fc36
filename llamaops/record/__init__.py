"""Everything one run saw, judged and could not see: assembled, redacted, journalled, stored.

- `record` holds the types; `groups` the typed fact groups, for reading and for the schema.
- `boundaries` derives the ladder and the gaps; nobody sets them by hand.
- `redact` is the one stage between a record and whatever leaves the process.
- `journal` appends each result as soon as it is known; `store` writes the folder and reads it back.

May import: everything before it. Judges nothing.
"""
