from __future__ import annotations

import pytest

from llamaops.facts.run_failure import classify
from llamaops.system.process import End, Exited, NotStarted, Signalled, StoppedAtBound
from tests.fakes.system import completed

ARGV = ("/opt/llama-server", "--version")


LOADER = (
    "/opt/llama-server: error while loading shared libraries: libgomp.so.1: cannot open shared object file"
)
MUSL = "Error loading shared library libstdc++.so.6: No such file or directory (needed by /x)"
OLD_LIBC = "/opt/llama-server: /lib/libc.so.6: version `GLIBC_2.38' not found (required by /opt/llama-server)"
SYMBOL = "/opt/llama-server: symbol lookup error: /opt/libllama.so.0: undefined symbol: ggml_backend_dev_name"
VARIABLE = 'error while handling environment variable "LLAMA_ARG_CTX_SIZE": stoi\n\n'
ENOENT = "No such file or directory"


@pytest.mark.parametrize(
    ("end", "stderr", "kind", "what"),
    [
        (Exited(127), LOADER, "missing_library", "libgomp.so.1"),
        (Exited(127), MUSL, "missing_library", "libstdc++.so.6"),
        (Exited(1), OLD_LIBC, "library_too_old", "GLIBC_2.38"),
        (Exited(127), SYMBOL, "undefined_symbol", "ggml_backend_dev_name"),
        (Signalled(4), "", "illegal_instruction", None),
        (Exited(132), "Illegal instruction (core dumped)", "illegal_instruction", "Illegal instruction"),
        (Exited(132), "", "illegal_instruction", None),
        (Signalled(11), "", "crashed", None),
        (Exited(134), "terminate called", "crashed", None),
        (StoppedAtBound("wall_s", killed=True), "", "timed_out", None),
        (StoppedAtBound("total_bytes", killed=False), "", "flooded", None),
        (NotStarted("Exec format error", 8), "", "wrong_architecture", "Exec format error"),
        (NotStarted("Permission denied", 13), "", "not_executable", "Permission denied"),
        (NotStarted(ENOENT, 2), "", "not_found", ENOENT),
        (Exited(126), "sh: 1: /x/llama-server: Exec format error", "wrong_architecture", "Exec format error"),
        (Exited(127), "sh: 1: exec: /x/llama-server: not found", "not_found", None),
        (Exited(1), "stoi\n", "config_file", "stoi"),
        (Exited(1), VARIABLE, "engine_variable", "LLAMA_ARG_CTX_SIZE"),
    ],
)
def test_each_failure_has_its_kind(end: End, stderr: str, kind: str, what: str | None) -> None:
    failure = classify(completed(ARGV, stderr=stderr, end=end), evidence=("ev-1",))
    assert failure is not None
    assert (failure.kind, failure.what) == (kind, what)
    assert failure.probe == "--version"
    assert failure.evidence == ("ev-1",)
    assert "/opt/llama-server" in failure.detail


@pytest.mark.parametrize(
    ("end", "stderr"),
    [
        (Exited(0), "W something about libgomp.so.1: cannot open shared object file"),
        (Exited(1), "usage: llama-quantize [--help]\n"),
        (Exited(1), "error: unknown argument: --version\n"),
        (Exited(1), "error: the word stoi in a sentence\n"),
    ],
)
def test_an_answer_with_status_one_is_no_failure(end: End, stderr: str) -> None:
    assert classify(completed(ARGV, stderr=stderr, end=end)) is None
