"""Run the command line with `python -m llamaops`."""

from llamaops.cli.app import main

if __name__ == "__main__":
    raise SystemExit(main())
