"""The command line: parse, call one operation, print, exit.

Each command is a module with `add_parser(subparsers)` and `run(args) -> int`. Heavy imports are inside
`run`, so that --help and --version load almost nothing. `output` is the only module that prints.
"""
