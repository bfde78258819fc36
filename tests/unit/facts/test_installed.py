from __future__ import annotations

from collections.abc import Mapping

import pytest

from llamaops.facts.installed import Installed, collect_installed, parse_dpkg_search
from llamaops.schema.fact import Known, Unknown
from llamaops.system.process import Completed, Exited
from tests.fakes.system import FakeSystem, completed


def owner(
    path: str,
    files: Mapping[str, str] | None = None,
    commands: Mapping[tuple[str, ...], Completed] | None = None,
) -> Installed | None:
    system = FakeSystem(files={path: "", **(files or {})}, commands=dict(commands or {}))
    fact = collect_installed(system, path)
    if isinstance(fact, Unknown):
        assert fact.why == "absent"
        return None
    assert isinstance(fact, Known)
    return fact.value


@pytest.mark.parametrize(
    ("path", "by", "name", "version"),
    [
        ("/opt/homebrew/Cellar/llama.cpp/11669/bin/llama-server", "homebrew", "llama.cpp", "11669"),
        ("/nix/store/" + "a" * 32 + "-llama-cpp-11669/bin/llama-server", "nix", "llama-cpp", "11669"),
        ("/nix/store/" + "a" * 32 + "-llama-cpp/bin/llama-server", "nix", "llama-cpp", None),
        ("/gnu/store/" + "b" * 32 + "-llama-cpp-0.0.0-4/bin/llama-cli", "guix", "llama-cpp", "0.0.0-4"),
        ("/snap/llama/12/bin/llama-server", "snap", "llama", "12"),
        ("/var/lib/flatpak/app/org.x.Llama/current/bin/llama-server", "flatpak", "org.x.Llama", None),
    ],
)
def test_stores_are_known_by_the_path(path: str, by: str, name: str, version: str | None) -> None:
    found = owner(path)
    assert found is not None
    assert (found.by, found.name, found.version) == (by, name, version)


def test_a_build_folder_with_what_was_switched_on() -> None:
    cache = (
        "CMAKE_BUILD_TYPE:STRING=Release\nGGML_CUDA:BOOL=ON\nGGML_VULKAN:BOOL=OFF\n"
        "GGML_NATIVE:BOOL=ON\nGGML_LASX:BOOL=ON\n"
    )
    found = owner("/src/llama.cpp/build/bin/llama-server", {"/src/llama.cpp/build/CMakeCache.txt": cache})
    assert found == Installed(
        by="source",
        name="/src/llama.cpp/build",
        detail="CMAKE_BUILD_TYPE=Release GGML_CUDA GGML_NATIVE",
    )


def test_a_wheel_by_the_file_in_its_package_and_by_its_script() -> None:
    record = "llama_x/bin/llama-server,sha256=abc,1\n../../../bin/llama-server-x,sha256=abc,1\n"
    site = "/venv/lib/python3.11/site-packages"
    files = {f"{site}/llama_x-0.10434.0.dist-info/RECORD": record}
    for path in (f"{site}/llama_x/bin/llama-server", "/venv/bin/llama-server-x"):
        found = owner(path, files)
        assert found is not None
        assert (found.by, found.name, found.version) == ("wheel", "llama_x", "0.10434.0")
    assert owner("/venv/bin/llama-server", files) is None


def test_conda() -> None:
    files = {"/conda/conda-meta/llama.cpp-0.0.1-h1_0.json": '{"files": ["bin/llama-server"]}'}
    found = owner("/conda/bin/llama-server", files)
    assert found is not None
    assert (found.by, found.name, found.version) == ("conda", "llama.cpp", "0.0.1")


def test_dpkg_with_a_merged_usr() -> None:
    path = "/usr/bin/llama-server"
    search = ("dpkg-query", "--search", path, "/bin/llama-server")
    show = ("dpkg-query", "--show", "--showformat=${Version}", "llama.cpp-tools")
    found = owner(
        path,
        {"/var/lib/dpkg/status": ""},
        {
            search: completed(search, stdout=f"llama.cpp-tools: {path}\n", end=Exited(1)),
            show: completed(show, stdout="0.7.0+dfsg-1"),
        },
    )
    assert found is not None
    assert (found.by, found.name, found.version) == ("dpkg", "llama.cpp-tools", "0.7.0+dfsg-1")


@pytest.mark.parametrize(
    ("text", "package"),
    [
        ("libggml0:amd64: /usr/lib/x86_64-linux-gnu/libggml.so.0\n", "libggml0"),
        ("diversion by a from: /usr/bin/x\nb: /usr/bin/x\n", "b"),
        ("a, b: /usr/bin\n", "a"),
        ("dpkg-query: no path found matching pattern /x\n", None),
        ("", None),
    ],
)
def test_the_answer_of_dpkg(text: str, package: str | None) -> None:
    assert parse_dpkg_search(text) == package


def test_rpm_pacman_and_apk() -> None:
    path = "/usr/bin/llama-server"
    rpm = ("rpm", "-qf", "--qf", "%{NAME} %{VERSION}-%{RELEASE}\\n", path)
    found = owner(
        path, {"/var/lib/rpm/rpmdb.sqlite": ""}, {rpm: completed(rpm, stdout="llama-cpp b11669-1\n")}
    )
    assert found == Installed(by="rpm", name="llama-cpp", version="b11669-1")
    pacman = ("pacman", "-Qo", path)
    answer = completed(pacman, stdout=f"{path} is owned by llama.cpp b11669-1\n")
    found = owner(path, {"/var/lib/pacman/local/x": ""}, {pacman: answer})
    assert found == Installed(by="pacman", name="llama.cpp", version="b11669-1")
    database = "P:musl\nV:1.2\nF:lib\nR:ld.so\n\nP:llama.cpp\nV:0.7-r0\nF:usr\nF:usr/bin\nR:llama-server\n\n"
    found = owner(path, {"/lib/apk/db/installed": database})
    assert found == Installed(by="apk", name="llama.cpp", version="0.7-r0")


def test_nobody_accounts_for_it() -> None:
    assert owner("/home/me/llama-server", {"/var/lib/dpkg/status": ""}) is None
