"""Digests that are computed, expected and declared, and what follows from a difference."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pytest

from llamaops.checks.registry import all_checks, run_check
from llamaops.facts.model_digest import DigestFacts, collect_digests
from llamaops.schema.finding import Finding
from llamaops.system.digest import Digest
from tests.fakes.system import FakeSystem

MODEL, SECOND = "/m/a-00001-of-00002.gguf", "/m/a-00002-of-00002.gguf"
FILES: dict[str, str | bytes | OSError] = {MODEL: b"one", SECOND: b"two"}
ONE, TWO = (hashlib.sha256(data).hexdigest() for data in (b"one", b"two"))
OTHER = "ab" * 32


class Computed:
    """Digests of the fake files; None for one that cannot be read."""

    def __init__(self, *, broken: str = "", now: bool = True) -> None:
        self.broken = broken
        self.now = now

    def digest_all(self, paths: Sequence[str]) -> list[Digest | OSError]:
        return [OSError(5, "Input/output error") if path == self.broken else self.one(path) for path in paths]

    def one(self, path: str) -> Digest:
        data = FILES[path]
        assert isinstance(data, bytes)
        digest = hashlib.sha256(data).hexdigest()
        return Digest(
            sha256=digest,
            size_bytes=3,
            computed_at="2026-01-01T00:00:00Z",
            computed_now=self.now,
            elapsed_s=0.1,
        )


def judge(
    expected: Sequence[str] = (), *, more: dict[str, str] | None = None, computes: Computed | None = None
) -> dict[str, Finding]:
    system = FakeSystem(files={**FILES, **(more or {})})
    facts = collect_digests(system, SECOND, [MODEL, SECOND], computes or Computed(), expected)
    found = (run_check(check, {DigestFacts: facts}) for check in all_checks(["digest"]))
    return {
        finding.check.removeprefix("model.digest-is-"): finding for finding in found if finding is not None
    }


def test_digests_are_stated_with_when_they_were_computed() -> None:
    assert f"{ONE} (computed now)" in judge()["known"].summary
    remembered = judge(computes=Computed(now=False))["known"].summary
    assert "computed at 2026-01-01T00:00:00Z, unchanged since" in remembered
    assert {finding.check for finding in judge().values()} == {"model.digest-is-known"}


@pytest.mark.parametrize(
    ("expected", "status"),
    [
        ([TWO], "passed"),  # the part that was named
        ([TWO.upper()], "passed"),
        ([ONE, TWO], "passed"),
        ([ONE], "failed"),
        ([TWO, ONE], "failed"),
        ([OTHER], "failed"),
        ([ONE, TWO, OTHER], "failed"),
    ],
)
def test_expected(expected: list[str], status: str) -> None:
    finding = judge(expected)["as-expected"]
    assert (finding.status, finding.severity) == (status, "required")


def test_a_file_that_cannot_be_read_is_unknown() -> None:
    found = judge([ONE, TWO], computes=Computed(broken=SECOND))
    assert {finding.status for finding in found.values()} == {"unknown"}


@pytest.mark.parametrize(
    ("name", "text", "status"),
    [
        ("SHA256SUMS", f"{ONE}  a-00001-of-00002.gguf\n{OTHER} *unrelated.bin\n", "passed"),
        ("SHA256SUMS", f"{OTHER}  a-00001-of-00002.gguf\n", "failed"),
        ("checksums.txt", f"SHA256 (a-00002-of-00002.gguf) = {TWO}\n", "passed"),
        ("a-00002-of-00002.gguf.sha256", f"{TWO}\n", "passed"),
        ("a-00002-of-00002.gguf.sha256", f"{OTHER}\n", "failed"),
        ("a-00002-of-00002.gguf.sha256", "nonsense\n", None),
        ("other.txt", f"{OTHER}  a-00001-of-00002.gguf\n", None),
    ],
)
def test_declared(name: str, text: str, status: str | None) -> None:
    finding = judge(more={f"/m/{name}": text}).get("as-declared")
    assert (finding and finding.status) == status
    assert finding is None or (finding.check, finding.severity) == ("model.digest-is-as-declared", "required")


def test_another_number_of_digests_than_parts_asks_for_the_right_number() -> None:
    found = judge([ONE, TWO, OTHER])["as-expected"]
    assert found.status == "failed"
    assert found.summary == "3 digests were given, the model has 2 parts"
    assert "once for each part" in (found.remedy or "")
