"""What a command may load, on the module table and not on a clock."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.gguf_files import FakeGguf

HEAVY = {
    "rich",
    "yaml",
    "psutil",
    "pynvml",
    "numpy",
    "gguf",
    "jinja2",
    "huggingface_hub",
    "http.client",
    "asyncio",
    "pydantic",
    "urllib.request",
}
# What starts programs, and what paths, data classes and error reports drag in.
COSTLY = {
    "subprocess",
    "selectors",
    "threading",
    "tempfile",
    "shutil",
    "pathlib",
    "urllib.parse",
    "dataclasses",
    "secrets",
    "random",
    "pkgutil",
    "traceback",
    "platformdirs",
    "llamaops.system.process",
}
LIGHTEST = HEAVY | {"msgspec", "argparse", "platformdirs", "hashlib", "llamaops.record", "llamaops.facts"}


def loaded(tmp_path: Path, *arguments: str) -> set[str]:
    code = (
        "import sys, json\n"
        "from llamaops.cli.app import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "json.dump(sorted(sys.modules), sys.stderr)\n"
    )
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        env=environ,
        timeout=60,
        check=True,
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_version_loads_almost_nothing(tmp_path: Path) -> None:
    modules = loaded(tmp_path, "--version")
    assert not {name for name in modules if name in LIGHTEST - {"argparse"}}


@pytest.mark.parametrize("arguments", [["--help"], ["smoke", "--help"], ["record", "list", "--help"]])
def test_help_loads_nothing_heavy(tmp_path: Path, arguments: list[str]) -> None:
    modules = loaded(tmp_path, *arguments)
    assert not modules & (HEAVY | COSTLY | {"msgspec", "hashlib", "datetime"})
    assert not {name for name in modules if name.startswith(("llamaops.probes", "llamaops.checks"))}


def test_inspect_loads_no_engine_and_no_network_code(tmp_path: Path) -> None:
    model = tmp_path / "tiny.gguf"
    model.write_bytes(FakeGguf().to_bytes())
    modules = loaded(tmp_path, "inspect", str(model))
    assert "llamaops.facts.gguf_file" in modules
    assert not modules & ((HEAVY | COSTLY | {"hashlib", "_hashlib"}) - {"asyncio"})
    forbidden = (
        "llamaops.probes",
        "llamaops.facts.host",
        "llamaops.facts.accelerator",
        "llamaops.facts.binaries",
    )
    assert not {name for name in modules if name.startswith(forbidden)}


def test_a_process_of_our_own_does_not_search_what_it_keeps_for_garbage(tmp_path: Path) -> None:
    code = (
        "import atexit, gc, sys\n"
        "from llamaops.cli.app import main\n"
        "atexit.register(lambda: print(gc.get_threshold()[0] > 10_000, gc.get_freeze_count() > 0))\n"
        "sys.argv = ['llamaops', 'record', 'list']\n"
        "main()\n"
        "assert gc.get_freeze_count() == 0 and gc.isenabled()\n"
    )
    # What is registered first runs last: after what `main` registers.
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "True True", done.stderr


def test_record_list_loads_what_lists_and_no_more(tmp_path: Path) -> None:
    modules = loaded(tmp_path, "record", "list")
    forbidden = ("llamaops.probes", "llamaops.facts", "llamaops.checks", "llamaops.record.redact")
    assert not {name for name in modules if name.startswith(forbidden)}
    assert not modules & (HEAVY | COSTLY | {"hashlib"})
