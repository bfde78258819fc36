"""From what an operator has (logs, answers, command lines) to the cause, its proof and the next step.

Pure: parts in, `Diagnosis` out. Imports the standard library, msgspec, `schema`, and the parser of load
logs from `facts`; the only files it reads are its own rules. google-re2 is used where it is installed
(linear time, and fast enough for logs of gigabytes) and is never required.

To add a rule: add it to the file of its area in `rules/`, with examples that must and that must not
match, then run `python -m llamaops.diagnosis.build` which validates every rule and writes the compact
form that is loaded at run time. A test fails when that form is out of date.
"""
