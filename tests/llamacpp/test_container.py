"""The runbook of a container, with a real one: podman, and a registry on loopback that it is pulled from.

The image holds the embedded engine and the system libraries that it needs, and nothing else. Everything that
podman keeps lies in a folder of the test.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fakes import command
from tests.llamacpp.runbooks import ends, free_port, run_book

NEEDED = ("podman", "runc", "docker-registry")
MISSING = [name for name in NEEDED if shutil.which(name) is None]

pytestmark = [
    pytest.mark.llamacpp,
    pytest.mark.timeout(400),
    pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} is not installed"),
    pytest.mark.skipif(os.geteuid() != 0, reason="no container can run here: needs root"),
]

LOADER = "/lib64/ld-linux-x86-64.so.2"
CONTAINERS = """[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""


@dataclass(frozen=True)
class Runtime:
    """podman with a folder of its own, and a registry beside it."""

    folder: Path
    registry: str

    def podman(self, *words: str, timeout: float = 120) -> str:
        ran = subprocess.run(["podman", *words], capture_output=True, text=True, timeout=timeout, check=False)
        assert ran.returncode == 0, (words, ran.stderr)
        return ran.stdout.strip()


def system_libraries(server: str) -> list[Path]:
    """Return the libraries outside the engine's own folder that it is linked with."""
    told = subprocess.run(["ldd", server], capture_output=True, text=True, timeout=30, check=True).stdout
    paths = [line.split("=>")[1].split("(")[0].strip() for line in told.splitlines() if "=>" in line]
    own = str(Path(server).parent)
    return [Path(path) for path in paths if path.startswith("/") and not path.startswith(own)]


def image_of(server: str, target: Path) -> None:
    """Write a file system as a tar file: the engine below /app, and what it is linked with."""
    with tarfile.open(target, "w") as tar:
        tar.add(Path(server).parent, "app")
        tar.add(Path(LOADER).resolve(), LOADER[1:])
        for library in system_libraries(server):
            tar.add(library.resolve(), f"lib/x86_64-linux-gnu/{library.name}")
        for folder in ("tmp", "models", "etc", "proc", "sys", "dev"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)


def wait_listening(port: int, within_s: float = 20) -> None:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        with socket.socket() as sock:
            if sock.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"nothing listens on {port}")


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    port = free_port()
    registry = f"127.0.0.1:{port}"
    files = {
        "CONTAINERS_CONF": CONTAINERS,
        "CONTAINERS_STORAGE_CONF": f'[storage]\ndriver = "vfs"\nrunroot = "{tmp_path}/run"\n'
        f'graphroot = "{tmp_path}/graph"\n',
        "CONTAINERS_REGISTRIES_CONF": f'[[registry]]\nlocation = "{registry}"\ninsecure = true\n',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        monkeypatch.setenv(name, str(tmp_path / name))
    settings = tmp_path / "registry.yml"
    settings.write_text(
        f"version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {tmp_path}/registry\n"
        f"http:\n  addr: {registry}\n"
    )
    with (
        (tmp_path / "registry.log").open("wb") as log,
        subprocess.Popen(
            ["docker-registry", "serve", settings], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        ) as process,
    ):
        try:
            wait_listening(port)
            yield Runtime(tmp_path, registry)
        finally:
            process.terminate()
            process.wait(20)
            for what in ("rm", "rmi"):
                subprocess.run(["podman", what, "--all", "--force"], timeout=60, check=False)
            command.wait_none_left()


@pytest.fixture
def image(runtime: Runtime, embedded_server: str) -> str:
    """Push an image to the registry, keep none here, and return its name with its digest."""
    archive, digest = runtime.folder / "image.tar", runtime.folder / "digest"
    image_of(embedded_server, archive)
    name = f"{runtime.registry}/llama-server"
    runtime.podman("import", "--change", 'ENTRYPOINT ["/app/llama-server"]', str(archive), f"{name}:test")
    runtime.podman("push", "--digestfile", str(digest), f"{name}:test")
    _try(f"{name}:test")
    runtime.podman("rmi", f"{name}:test")
    return f"{name}@{digest.read_text().strip()}"


def _try(image: str) -> None:
    """Skip where the kernel or a sandbox lets no container run with the runbook's limits."""
    words = ["run", "--rm", "--memory=2g", "--publish=127.0.0.1::8080", image, "--version"]
    ran = subprocess.run(["podman", *words], capture_output=True, text=True, timeout=60, check=False)
    if ran.returncode != 0 and "version" not in ran.stderr:
        pytest.skip(f"no container can run here: {ran.stderr.strip().splitlines()[-1:]}")


def test_run_in_docker(runtime: Runtime, image: str, embedded_model: str) -> None:
    model, port = Path(embedded_model), free_port()
    ran = run_book(
        "run-in-docker",
        runtime.folder / "records",
        program="podman",
        image=image,
        models=model.parent,
        model=model.name,
        port=port,
        memory="2g",
        container="llamaops-test",
    )
    assert ran.status == 0, (ran.err, ends(ran), ran.open_findings())
    assert set(ends(ran).values()) == {"done"}
    assert ran.record["strongest"] == "api_response"
    assert runtime.podman("ps", "--format", "{{.Names}} {{.Ports}}") == (
        f"llamaops-test 127.0.0.1:{port}->8080/tcp"
    )


def test_an_image_that_is_not_there_starts_nothing(runtime: Runtime, image: str, embedded_model: str) -> None:
    model = Path(embedded_model)
    ran = run_book(
        "run-in-docker",
        runtime.folder / "records",
        program="podman",
        image=f"{image.partition('@')[0]}@sha256:{'0' * 64}",
        models=model.parent,
        model=model.name,
        port=free_port(),
        container="llamaops-test",
    )
    assert ran.status == 3
    assert (ends(ran)["pull"], ends(ran)["start"]) == ("failed", "not_run")
    assert runtime.podman("ps", "--all", "--quiet") == ""
