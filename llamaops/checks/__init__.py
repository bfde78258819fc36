"""Facts to findings: pure functions, one module per area.

A check's parameters are its declared inputs, each a type of a fact group; `run_check` gives them the
groups of the record. A check asks a fact for its value with `need()` and never handles the unknown
case: `run_check` gives `not_run` when a group was not collected, `unknown` when `need()` met an
Unknown, `error` when the function raised, otherwise `passed` or `failed`.

May import: the types of facts and probes, launch, schema; never `llamaops.system`. To add a check:
one function in `checks/<area>.py` with the `@check` decorator, and three cases in its test.
"""
