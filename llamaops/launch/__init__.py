"""What is asked, and what a build offers, to a command line: pure functions.

`settings` holds what can be asked and what the engine will make of it; `argv` makes the command line for
one build; `extra` checks the operator's own flags. A flag that the build's own --help does not have is
refused before anything starts.

May import: the types of facts, schema. To add a setting: a field in `LaunchSettings`, a line in `argv`.
"""
