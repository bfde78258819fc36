"""Run every benchmark of this folder on the embedded engine and model, one after the other.

    python -m benchmarks [NAME ...]

Each script prints its figures and their ratios itself; a name that begins with `make_` writes input for
another and is no benchmark. Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from llamaops.operations.fetch import cache_folder, embedded

HERE = Path(__file__).resolve().parent
LIMIT_S = 1800


def names() -> list[str]:
    """Return the benchmarks of this folder."""
    files = sorted(path.stem for path in HERE.glob("*.py"))
    return [name for name in files if not name.startswith(("_", "make_"))]


def arguments(folder: Path) -> Mapping[str, list[str]]:
    """Return what the scripts that need input are called with.

    Raises: SystemExit when the embedded engine or model is not there.
    """
    paths = embedded(cache_folder(os.environ))
    if paths is None or paths.server is None or paths.model is None:
        raise SystemExit("benchmarks: the embedded engine or model is missing: run `llamaops fetch`")
    big = str(folder / "bigvocab.gguf")
    programs = str(Path(paths.server).parent)
    return {
        "deep": [paths.model],
        "digest": [paths.model],
        "inspect_model": [paths.model, big],
        "preflight": ["--bin-dir", programs],
        "ready": ["--bin-dir", programs, "--model", paths.model],
        "sampling": ["--bin-dir", programs, "--model", paths.model],
        "verify_overhead": ["--bin-dir", programs, "--model", paths.model],
    }


def run(script: str, *words: str) -> bool:
    """Run one script of this folder and say whether it ended well."""
    argv = [sys.executable, "-m", f"benchmarks.{script}", *words]
    return subprocess.run(argv, cwd=HERE.parent, check=False, timeout=LIMIT_S).returncode == 0


def main() -> int:
    """Run those that were named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("name", nargs="*", help=", ".join(names()))
    chosen = parser.parse_args().name or names()
    if unknown := set(chosen) - set(names()):
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}")
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        given = arguments(Path(folder))
        if "inspect_model" in chosen and not run("make_bigvocab", given["inspect_model"][1]):
            failed.append("make_bigvocab")
        for name in chosen:
            print(f"\n== {name}", flush=True)
            if not run(name, *given.get(name, [])):
                failed.append(name)
    if failed:
        print(f"benchmarks: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
