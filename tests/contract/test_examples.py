"""The records we ship validate, render to the bytes beside them, and hold no path or name of a machine."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import msgspec
import pytest

from llamaops.record.export import SCHEMAS, schema_of
from llamaops.record.groups import StoredRecord
from llamaops.record.published_words import PUBLISHED_WORDS
from llamaops.record.redact import Redacted, Redactor, redact
from llamaops.record.secrets import collect_secrets
from llamaops.record.store import read
from llamaops.render.markdown_text import render_markdown

ROOT = Path(__file__).parents[2]
RECORDS = sorted(path.parent for path in (ROOT / "records").glob("*/record.json"))
PUBLIC = {
    "127.0.0.1", "localhost", "huggingface.co", "github.com", "page-of-another-site.invalid",
    # in llama-server's own help
    "ggml.ai", "docs.z.ai", "json-schema.org",
}  # fmt: skip
"""Hosts that a record may name: none of them is the machine's."""


def test_there_are_examples() -> None:
    assert len(RECORDS) >= 2


@pytest.mark.parametrize("folder", RECORDS, ids=lambda folder: folder.name)
def test_an_example_validates(folder: Path) -> None:
    assert read(folder).id
    jsonschema.validate(json.loads((folder / "record.json").read_text()), schema_of(StoredRecord))


@pytest.mark.parametrize("folder", RECORDS, ids=lambda folder: folder.name)
def test_an_example_renders_to_its_own_markdown(folder: Path) -> None:
    record = json.loads((folder / "record.json").read_text())
    assert render_markdown(Redacted(record, ())) == (folder / "record.md").read_text()


@pytest.mark.parametrize("folder", RECORDS, ids=lambda folder: folder.name)
def test_an_example_names_no_place_of_its_machine(folder: Path) -> None:
    text = "".join(path.read_text() for path in folder.iterdir())
    assert not re.findall(r"/(?:root|work|home|Users)/[\w.-]+", text)
    hosts = set(re.findall(r"https?://([\w.-]+)", text))
    assert hosts <= PUBLIC, hosts - PUBLIC


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_the_published_schema_is_what_the_types_say(name: str) -> None:
    published = json.loads((ROOT / "docs" / "schema" / name).read_text())
    made = json.loads(msgspec.json.encode(schema_of(SCHEMAS[name])))
    assert published == made, "run `make generate`"


def enum_words(node: object) -> set[str]:
    if isinstance(node, list):
        return set().union(*map(enum_words, node)) if node else set()
    if not isinstance(node, dict):
        return set()
    own = [word for word in [*node.get("enum", []), node.get("const")] if isinstance(word, str)]
    return set(own).union(*(enum_words(value) for value in node.values()))


def test_a_user_named_like_a_word_of_a_record_leaves_the_record_valid() -> None:
    words = {word for word in enum_words(schema_of(StoredRecord)) if len(word) >= 3}
    assert words <= PUBLISHED_WORDS, sorted(words - PUBLISHED_WORDS)
    record = json.loads((RECORDS[0] / "record.json").read_text())
    for user in ("operator", "file", "known"):
        secrets = collect_secrets({"USER": user, "HOME": f"/home/{user}"}, host=user)
        clean = redact(record, Redactor(secrets)).record
        jsonschema.validate(clean, schema_of(StoredRecord))
