"""What a model says about itself and where its folder says that it comes from."""

from __future__ import annotations

import pytest

from llamaops.facts.gguf_probe import look
from llamaops.facts.hub_place import hub_place
from llamaops.facts.identity_derive import identity_of
from llamaops.facts.model_identity import HubPlace, IdentityFacts
from llamaops.schema.fact import Known, Unknown
from tests.fakes import gguf_files as g
from tests.fakes.system import FakeSystem

DIGEST = "ab" * 32
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def identity(file: g.FakeGguf, path: str = "/m/tiny.gguf") -> IdentityFacts:
    system = FakeSystem(files={path: file.to_bytes()})
    return identity_of(system, look(system, path))


def test_lineage_licence_and_quantizer() -> None:
    file = g.FakeGguf()
    for key, value in {
        "general.license.link": "licences/llama3",
        "general.quantized_by": "somebody",
        "general.base_model.count": (g.U32, 2),
        "general.base_model.0.name": "Base",
        "general.base_model.0.organization": "Org",
        "general.base_model.1.repo_url": "hub/org/other",
        "general.dataset.count": (g.U32, 1),
        "general.dataset.0.repo_url": "hub/org/data",
    }.items():
        file = file.with_key(key, value)
    found = identity(file).provenance.need()
    assert (found.name, found.licence, found.licence_link) == ("Tiny Test", "apache-2.0", "licences/llama3")
    assert found.quantized_by == "somebody"
    assert [(one.name, one.organization, one.repo_url) for one in found.base_models] == [
        ("Base", "Org", None),
        (None, None, "hub/org/other"),
    ]
    assert found.datasets == ("hub/org/data",)


def test_a_hostile_count_of_base_models_is_bounded() -> None:
    found = identity(g.FakeGguf().with_key("general.base_model.count", (g.U32, 2**32 - 1))).provenance.need()
    assert len(found.base_models) == 32


def test_the_kinds_of_special_tokens_are_read() -> None:
    kinds = g.Array(g.I32, [2, 3, 4, 1, 1, 1, 1, 1])
    found = identity(g.FakeGguf().with_key("tokenizer.ggml.token_type", kinds)).vocabulary.need()
    assert {one.role: one.kind for one in found.special_kinds} == {"bos": 3, "eos": 4}
    strings = g.Array(g.STRING, ["a"] * 8)
    assert (
        identity(g.FakeGguf().with_key("tokenizer.ggml.token_type", strings)).vocabulary.need().special_kinds
        == ()
    )


def test_a_pooling_that_is_not_known_is_no_pooling() -> None:
    found = identity(g.FakeGguf().with_key("llama.pooling_type", (g.U32, 9))).pooling
    assert isinstance(found, Unknown)
    assert found.why == "unparsed"


def test_a_file_that_is_not_there_is_unknown_throughout() -> None:
    system = FakeSystem()
    found = identity_of(system, look(system, "/m/none.gguf"))
    assert all(isinstance(getattr(found, name), Unknown) for name in IdentityFacts.__struct_fields__)


SNAPSHOT = f"/h/hub/models--Org--Repo/snapshots/{COMMIT}/sub/m.gguf"


@pytest.mark.parametrize(
    ("path", "files", "links", "expected"),
    [
        (
            SNAPSHOT,
            {f"/h/hub/models--Org--Repo/blobs/{DIGEST}": b"x"},
            {SNAPSHOT: f"/h/hub/models--Org--Repo/blobs/{DIGEST}"},
            ("Org/Repo", COMMIT, DIGEST),
        ),
        (
            "/d/sub/m.gguf",
            {"/d/.cache/huggingface/download/sub/m.gguf.metadata": f"{COMMIT}\n{DIGEST}\n1700000000.0\n"},
            {},
            (None, COMMIT, DIGEST),
        ),
        (
            "/d/m.gguf",
            {"/d/.cache/huggingface/download/m.gguf.metadata": "nonsense\n"},
            {},
            (None, None, None),
        ),
        ("/d/m.gguf", {}, {}, None),
    ],
)
def test_folders_of_a_download(
    path: str,
    files: dict[str, str | bytes | OSError],
    links: dict[str, str],
    expected: tuple[str | None, ...] | None,
) -> None:
    found = hub_place(FakeSystem(files=files, links=links), path)
    if expected is None:
        assert isinstance(found, Unknown)
        return
    assert isinstance(found, Known)
    assert isinstance(found.value, HubPlace)
    assert (found.value.repository, found.value.revision, found.value.sha256) == expected
