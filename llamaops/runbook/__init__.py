"""Runbooks: what an operator does, in an order, with consent and evidence, as data.

A runbook is a YAML file: inputs, steps that call llamaops' own commands or one bounded program, what each
has to give, consent for whatever changes state, and what is not covered. It has no shell, no conditions
and no loops: where one is needed, it is an operation in Python with a test.

This package reads, plans, lints and orders; it may import `checks` and what lies below it. It starts
nothing itself: `run` is given what performs a step. `operations.run_runbook` gives it the real one.

To add a runbook: one file in `shipped/`. A test loads, lints and plans every file there.
"""
