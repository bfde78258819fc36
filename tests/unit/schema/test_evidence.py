"""Evidence keeps a digest of the whole, and an id that gives nothing away."""

from __future__ import annotations

import hashlib
import subprocess
import sys

from llamaops.schema.evidence import evidence_of


def test_within_a_run_equal_output_has_an_equal_id_and_another_source_another() -> None:
    first, again = evidence_of("stdout", "a", b"x"), evidence_of("stdout", "a", b"x")
    assert first.id == again.id
    assert len({first.id, evidence_of("stdout", "b", b"x").id, evidence_of("stderr", "a", b"x").id}) == 3


def test_the_digest_is_of_the_original() -> None:
    assert evidence_of("log", "a", b"x").sha256 == hashlib.sha256(b"x").hexdigest()


def test_an_id_cannot_be_made_again_from_a_guess() -> None:
    code = "from llamaops.schema.evidence import evidence_of; print(evidence_of('stdout', 'a', b'x').id)"
    words = [sys.executable, "-c", code]
    other = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    assert other.stdout.strip() != evidence_of("stdout", "a", b"x").id
