"""What is given to diagnose: compressed files, folders, growing logs."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from pathlib import Path

import pytest

from llamaops.checks.diagnosis import boundary_of
from llamaops.checks.registry import all_checks, run_check
from llamaops.diagnosis.judge import diagnose_parts, diagnose_text
from llamaops.diagnosis.parts import Part
from llamaops.errors import InputFileError
from llamaops.operations import diagnose_input
from llamaops.operations.diagnose import diagnosis_of_run
from llamaops.operations.diagnose_watch import watch
from llamaops.schema.diagnosis import Diagnosis
from llamaops.schema.evidence import evidence_of
from llamaops.schema.finding import Finding

LOG = b"one\nerror: invalid argument: --no-such-flag\n"


def slug_of(*paths: Path | str, stdin: bytes = b"") -> str:
    return diagnose_parts(diagnose_input.parts_from([str(p) for p in paths], io.BytesIO(stdin))).slug


@pytest.mark.parametrize(
    "pack", [gzip.compress, bz2.compress, lzma.compress, bytes, lambda d: d.decode().encode("utf-16")]
)
def test_forms_of_a_file(pack: object, tmp_path: Path) -> None:
    assert callable(pack)
    path = tmp_path / "log"
    path.write_bytes(pack(LOG))
    assert slug_of(path) == "unknown-flag"


def test_a_cut_compressed_file_still_counts(tmp_path: Path) -> None:
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(LOG * 500)[:-6])
    assert slug_of(path) == "unknown-flag"


def test_standard_input_and_a_large_file(tmp_path: Path) -> None:
    assert slug_of("-", stdin=LOG) == "unknown-flag"
    path = tmp_path / "log"
    path.write_bytes(b"srv  update_slots: all slots are idle\n" * 150_000 + LOG)
    assert slug_of(path) == "unknown-flag"


def test_a_folder_is_one_situation(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(
        "gguf_init_from_file: failed to open GGUF file '/home/a/m.gguf' (No such file or directory)\n"
    )
    (tmp_path / "b.service").write_text(
        "[Service]\nProtectHome=yes\nExecStart=/usr/bin/llama-server -m /home/a/m.gguf\n"
    )
    assert slug_of(tmp_path) == "unit-protects-home"


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputFileError):
        slug_of(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputFileError):
        slug_of(tmp_path / "empty")


def test_watch_reports_each_new_verdict(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("build: 5000 (aa) with cc\n")
    steps = [
        "main: model loaded\nmain: server is listening on http://127.0.0.1:8080\n",
        "",
        "CUDA error: an illegal memory access was encountered\n",
    ]

    def wait() -> bool:
        if not steps:
            return False
        with path.open("a") as log:
            log.write(steps.pop(0))
        return True

    slugs = [found.slug for found in watch(str(path), wait=wait)]
    assert slugs == ["unknown", "no-fault-found", "cuda-illegal-access"]


@pytest.mark.parametrize(
    ("text", "check", "status"),
    [
        ("error: invalid argument: -x\n", "diagnosis.binary-without-fault", "failed"),
        ("cudaMalloc failed: out of memory\n", "diagnosis.model-load-without-fault", "failed"),
        ("main: model loaded\n", "diagnosis.model-load-without-fault", "passed"),
        ("Unable to open /dev/kfd read-write: Permission denied\n", "diagnosis.host-without-fault", "failed"),
        ("failed to read magic\n", "diagnosis.model-file-without-fault", "failed"),
        ("Context size has been exceeded.\n", "diagnosis.api-response-without-fault", "failed"),
        ("CUDA error: misaligned address\n", "diagnosis.generated-output-without-fault", "failed"),
        (
            "debug build, performance may be affected: warning: debug build, performance may be affected\n",
            "diagnosis.benchmark-without-fault",
            "failed",
        ),
        ("nothing of note\n", "diagnosis.model-load-without-fault", "unknown"),
    ],
)
def test_checks_of_a_diagnosis(text: str, check: str, status: str) -> None:
    """Among them diagnosis.concurrency-without-fault, which concerns none of these."""
    found = diagnose_text(text)
    findings = {
        finding.check: finding.status
        for one in all_checks(["diagnosis"])
        if (finding := run_check(one, {Diagnosis: found})) is not None
    }
    assert findings == {check: status}, boundary_of(found)


CUT = (
    'POST /v1/chat/completions -> 200\n{"choices":[{"finish_reason":"length","message":{"role":"assistant",'
    '"content":"Paris is"}}],"usage":{"completion_tokens":8}}\n'
)


class _Failed:
    """A run of which one check failed, for another reason than the length of an answer."""

    def group(self, kind: object) -> None:
        """Return nothing: no program was started."""

    def failures(self) -> list[Finding]:
        return [
            Finding(
                check="server.props-agree", title="t", boundary="api_response", status="failed",
                severity="required", summary="it names another model",
            )
        ]  # fmt: skip


def test_the_limit_of_an_own_probe_is_no_cause() -> None:
    evidence = evidence_of("http", "POST /v1/chat/completions", CUT.encode())
    assert diagnose_parts([Part("http-response", "answer", CUT)]).slug == "answer-cut-by-token-limit"
    found = diagnosis_of_run(_Failed(), (evidence,))  # type: ignore[arg-type]
    assert found is None or (found.verdict == "unknown" and found.primary is None)
