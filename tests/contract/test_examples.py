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
from llamaops.record.redact import Redacted
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
