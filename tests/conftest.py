"""Real engines for the tests, a home of their own for each, and nothing left running.

The engines come from the cache through `llamaops fetch`'s operation. Where one cannot be had, the tests
that need it are skipped by name and listed at the end; in CI such a skip is a failure.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path

import hypothesis
import pytest

from llamaops.errors import LlamaopsError
from llamaops.operations import build_engine, fetch
from llamaops.schema.bounds import Bounds
from llamaops.system import fetch as installer
from llamaops.system import guard
from llamaops.system.catalogue import Artefact, catalogue, variants
from llamaops.system.cpu_flags import cpu_flags
from llamaops.system.machine import Machine

# Engines of several workers share few cores: threads that spin while they wait for each other would make
# each decode take a hundred times as long. What the engines compute is the same.
os.environ["OMP_WAIT_POLICY"] = "passive"
os.environ["GOMP_SPINCOUNT"] = "0"
# Taken before any test gets a home of its own: the cache and pip's settings are the developer's.
ENVIRON: Mapping[str, str] = dict(os.environ)
CACHE = fetch.cache_folder(ENVIRON)
IN_CI = ENVIRON.get("CI", "") not in ("", "0", "false")
NO_LLVMPIPE = "the engine lists no llvmpipe device: install mesa-vulkan-drivers"
ENGINE_MARKERS = ("llamacpp", "fullengine", "vulkan")
ENGINE_FIXTURES = {"embedded_server", "b10434_server", "fetched", "embedded_model", "full_engine", "vulkan"}
OPTED_INTO = {"full_engine_server", "old_engine_2025", "old_engine_2024", "windowed_model"}
"""Builds that take long to make, and a model with terms to accept: where somebody has them, tests run."""
NO_AVX512 = "this processor has no AVX-512, which build b10434 uses for every model"
F32_FLAGS = {"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl"}
"""What b10434 computes F16 and F32 models with; quantized ones need the rest of its flags too."""
NOT_FOR_EVERY_MACHINE = (
    NO_LLVMPIPE,
    NO_AVX512,
    "is not installed",  # nginx, curl, openssl, systemd-analyze or podman
    "no container can run here",
    "which that build needs for quantized models",  # a test of a processor that lacks it
    "set LLAMAOPS_TEST_SOURCES",
    "root may read every file",
)  # Mesa cannot be installed, nor a processor changed, everywhere

# The same examples in every run: a suite that finds something new at random blocks whoever comes next.
hypothesis.settings.register_profile("llamaops", derandomize=True, database=None, deadline=None)
hypothesis.settings.load_profile("llamaops")

_skipped: list[tuple[str, str]] = []


def _fetched(what: str) -> str:
    """Return the path of an artefact, downloading it if need be; skip the test where that fails."""
    try:
        with Machine(ENVIRON) as machine:
            report = fetch.fetch([what], CACHE, machine, lambda _step, _done, _total: None)
    except LlamaopsError as error:
        pytest.skip(f"no embedded {what}: {error}")
    return report.items[0].path


@pytest.fixture(scope="session")
def fetched() -> Callable[[str], str]:
    """Return what brings an artefact of the catalogue into the cache and returns its path, or skips."""
    return _fetched


@pytest.fixture(scope="session")
def embedded_server() -> str:
    """Return the path of the embedded llama-server, CPU and Vulkan: the newest build that fits this CPU."""
    return _fetched("engine")


@pytest.fixture(scope="session")
def embedded_entry(embedded_server: str) -> Artefact:
    """Return the catalogue's entry of the embedded llama-server: its build, commit and flags."""
    return next(item for item in variants("engine").values() if f"/{item.path}/" in embedded_server)


@pytest.fixture(scope="session")
def b10434_server() -> str:
    """Return the path of llama-server of build b10434, for F16 and F32 models only.

    On a processor without AVX-VNNI it is ended by SIGILL when it computes with a quantized model.
    """
    with Machine(ENVIRON) as machine:
        if not (cpu_flags(machine) or frozenset()) >= F32_FLAGS:
            pytest.skip(NO_AVX512)
    return _fetched("engine-b10434")


@pytest.fixture(scope="session")
def embedded_model() -> str:
    """Return the path of the embedded model (SmolLM2-135M-Instruct, Q4_1)."""
    return _fetched("model")


@pytest.fixture(scope="session")
def windowed_model() -> str:
    """Return the path of a model with sliding windows (Gemma 3 270M), where somebody has fetched it."""
    path = installer.found(catalogue()["model-gemma3"], CACHE)
    if path is None:
        pytest.skip("the sliding-window model is not fetched: llamaops fetch model-gemma3")
    return path


@pytest.fixture(scope="session")
def full_engine() -> str:
    """Return the folder of the programs built from source; `make engine` builds them, in minutes."""
    return _built("full-engine", "make engine")


@pytest.fixture(scope="session")
def full_engine_server() -> str:
    """Return the folder of the opt-in build that has llama-server and llama-cli too."""
    return _built("full-engine-server", "make engine-server")


@pytest.fixture(scope="session")
def old_engine_2025() -> str:
    """Return the folder of the opt-in build of August 2025: llama-server and llama-cli."""
    return _built("old-engine-2025", "make old-engines")


@pytest.fixture(scope="session")
def old_engine_2024() -> str:
    """Return the folder of the opt-in build of March 2024, whose programs are server and main."""
    return _built("old-engine-2024", "make old-engines")


def _built(name: str, command: str) -> str:
    with Machine(ENVIRON) as machine:
        folder = build_engine.built(CACHE, machine, name)
        if folder is not None:
            return folder
        tools = build_engine.toolchain(machine)
    title = build_engine.RECIPES[name].title
    if isinstance(tools, build_engine.MissingTools):
        pytest.skip(tools.reason(title))
    pytest.skip(f"the {title} is not built: {command}")


@pytest.fixture(scope="session")
def vulkan(embedded_server: str) -> Mapping[str, str]:
    """Return the variables that make the embedded engine list Mesa's llvmpipe as Vulkan0."""
    extra = {"GGML_VK_VISIBLE_DEVICES": "0"}
    with Machine(ENVIRON) as machine:
        done = machine.run(
            [embedded_server, "--list-devices"],
            bounds=Bounds(wall_s=60),
            env=machine.child_environment(extra),
        )
    text = done.stdout.text + done.stderr.text
    if "Vulkan0" not in text or "llvmpipe" not in text:
        pytest.skip(NO_LLVMPIPE)
    return extra


@pytest.fixture(scope="session", autouse=True)
def _own_temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give the whole run a temporary folder of its own, and see that it leaves no process behind.

    Every child inherits TMPDIR, whatever else is removed from its environment, so the folder's name
    tells ours from those of other runs on the same machine.
    """
    folder = tmp_path_factory.mktemp("tmp")
    patch = pytest.MonkeyPatch()
    patch.setenv("TMPDIR", str(folder))
    patch.setenv("MESA_SHADER_CACHE_DIR", str(folder / "mesa"))
    patch.setattr(tempfile, "tempdir", None)
    yield
    left = _left_running(str(tmp_path_factory.getbasetemp()))
    patch.undo()
    guard.farewell()
    assert not left, f"the tests left processes running (now killed): {left}"


def _left_running(folder: str) -> list[str]:
    """Return the processes of this run that are still there after a moment, and kill them."""
    deadline = time.monotonic() + 3
    while (found := dict(_processes_with(folder.encode()))) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    return [f"{pid}: {line}" for pid, line in found.items()]


def _processes_with(text: bytes) -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").iterdir() if Path("/proc/self").exists() else ():
        if not entry.name.isdigit() or int(entry.name) in (os.getpid(), os.getppid()):
            continue
        try:
            if text in (entry / "environ").read_bytes():
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                yield int(entry.name), command.strip()
        except OSError:
            continue


@pytest.fixture(autouse=True)
def _own_home(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Give each test an empty home, and none of the variables that steer llamaops or an engine."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(("LLAMAOPS_", "LLAMA_", "XDG_", "HF_", "GGML_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note each test that an engine is missing for; in CI, fail it."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and _needs_engine(item):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.user_properties.append(("engine missing", reason.removeprefix("Skipped: ")))
        if IN_CI and not any(accepted in reason for accepted in NOT_FOR_EVERY_MACHINE):
            report.outcome = "failed"
            report.longrepr = f"in CI every engine must be there: {reason}"
    return report


def _needs_engine(item: pytest.Item) -> bool:
    if not OPTED_INTO.isdisjoint(getattr(item, "fixturenames", ())):
        return False
    marked = any(item.get_closest_marker(name) is not None for name in ENGINE_MARKERS)
    return marked or not ENGINE_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Collect what was skipped; with pytest-xdist this runs where the summary is written."""
    _skipped.extend(
        (report.nodeid, str(value)) for name, value in report.user_properties if name == "engine missing"
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the tests that did not run for want of an engine."""
    if not _skipped:
        return
    terminalreporter.section("NOT RUN: an engine is missing", sep="=", yellow=True)
    for reason in sorted({reason for _nodeid, reason in _skipped}):
        terminalreporter.line(reason)
        for nodeid in sorted(nodeid for nodeid, why in _skipped if why == reason):
            terminalreporter.line(f"    {nodeid}")
