"""JSON Schema files from the published types, the strings under the fields as descriptions.

python -m llamaops.record.export FOLDER
"""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path
from typing import Any

import msgspec

from llamaops.record.groups import StoredDocument, StoredRecord
from llamaops.runbook.document import Runbook
from llamaops.schema.shape import Shape

SCHEMAS = {
    "record.schema.json": StoredRecord,
    "document.schema.json": StoredDocument,
    "runbook.schema.json": Runbook,
}


def schema_of(published: Any) -> dict[str, Any]:  # noqa: ANN401 - a generic alias is no type to mypy
    """Return the JSON Schema of a published type, with descriptions."""
    schema = msgspec.json.schema(published)
    texts = field_texts()
    for name, definition in schema.get("$defs", {}).items():
        own = texts.get(name.split("_", 1)[0], {})
        for field, described in definition.get("properties", {}).items():
            if field in own and "description" not in described:
                described["description"] = own[field]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def field_texts() -> dict[str, dict[str, str]]:
    """Return, by class name, the string under each field of every published type."""
    modules = {kind.__module__ for kind in _subclasses(Shape)}
    found: dict[str, dict[str, str]] = {}
    for name in sorted(modules):
        file = importlib.import_module(name).__file__
        if file is None:
            continue
        for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name] = _texts_of(node)
    return found


def _texts_of(node: ast.ClassDef) -> dict[str, str]:
    texts = {}
    for field, after in zip(node.body, [*node.body[1:], None], strict=True):
        is_text = (
            isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        )
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and is_text:
            texts[field.target.id] = " ".join(after.value.value.split())  # type: ignore[union-attr]
    return texts


def _subclasses(kind: type) -> set[type]:
    found: set[type] = set()
    direct: list[type] = kind.__subclasses__()
    for one in direct:
        found |= {one} | _subclasses(one)
    return found


def write_schemas(folder: Path) -> list[Path]:
    """Write every schema into a folder and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, published in SCHEMAS.items():
        path = folder / name
        path.write_bytes(msgspec.json.format(msgspec.json.encode(schema_of(published)), indent=1) + b"\n")
        written.append(path)
    return written


if __name__ == "__main__":
    for file in write_schemas(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/schema")):
        sys.stdout.write(f"{file}\n")
