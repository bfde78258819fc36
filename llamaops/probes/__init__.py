"""Ask a running server, one file per question: its answer's type, its parser and its probe together.

A probe makes one bounded exchange through `system.http.HttpClient` and returns what came of it: an
`EndpointAnswer`, which every status becomes (401, 404, 501 and 503 are facts), and a `Fact` of the typed
answer. `probes.server.collect_server` asks them in order and returns the fact group `ServerFacts`.
Prompts are our own fixed ones. Nothing here judges, and nothing a server does raises.

May import: system, schema. To add a probe: one file with a function under
`@probe`, one field in `ServerFacts`, one line in `collect_server`, and answers of two builds in its test.
"""
