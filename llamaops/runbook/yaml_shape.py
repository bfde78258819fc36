"""YAML text to a published type: limited, without aliases, every error at once with its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import msgspec

from llamaops.errors import InputFileError
from llamaops.schema.bounds import KIB
from llamaops.system.files import read_limited

T = TypeVar("T")
MAX_FILE_BYTES = 256 * KIB
MAX_NODES = 5000
MAX_DEPTH = 12
_MOST_ERRORS = 50
_TAG = "tag:yaml.org,2002:"

Path = tuple[str | int, ...]


class Problem(msgspec.Struct, frozen=True, order=True):
    """Something wrong, and where."""

    line: int
    column: int
    text: str

    def shown(self, file: str) -> str:
        """Return it as one line that editors can follow."""
        return f"{file}:{self.line}:{self.column}: {self.text}"


class Document(msgspec.Struct, Generic[T], frozen=True):
    """A document that was read, with the place of each of its parts."""

    value: T
    places: dict[Path, tuple[int, int]]

    def place(self, *path: str | int) -> tuple[int, int]:
        """Return line and column of a part, or of the nearest part around it."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, (1, 1))

    def problem(self, text: str, *path: str | int) -> Problem:
        """Return a problem at a part."""
        return Problem(*self.place(*path), text)


def read_file(path: str) -> bytes:
    """Return a file's content.

    Raises: InputFileError.
    """
    try:
        content = read_limited(path, limit_bytes=MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InputFileError(f"cannot read {path}: {error.strerror}") from error
    if len(content) > MAX_FILE_BYTES:
        raise InputFileError(f"{path} is larger than {MAX_FILE_BYTES} bytes")
    return content


def parse(content: bytes, kind: type[T]) -> Document[T] | list[Problem]:
    """Read a document of one type, or return everything that is wrong with it."""
    if len(content) > MAX_FILE_BYTES:
        return [Problem(1, 1, f"is larger than {MAX_FILE_BYTES} bytes")]
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        return [Problem(content[: error.start].count(b"\n") + 1, 1, "is not UTF-8 text")]
    tree = _compose(text)
    if isinstance(tree, Problem):
        return [tree]
    reader = _Reader()
    value = reader.read(tree, msgspec.inspect.type_info(kind), ())
    if reader.problems:
        return sorted(reader.problems)[:_MOST_ERRORS]
    return Document(msgspec.convert(value, kind), reader.places)


def _compose(text: str) -> Any:  # noqa: ANN401 - a yaml node
    import yaml

    try:
        depth = 0
        for count, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
            depth += isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent))
            depth -= isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent))
            refused = _refused(event, count, depth)
            if refused:
                mark = event.start_mark
                return Problem(mark.line + 1 if mark else 1, mark.column + 1 if mark else 1, refused)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(filter(None, (error.context, error.problem)))
        return Problem(mark.line + 1 if mark else 1, mark.column + 1 if mark else 1, f"is not YAML: {what}")
    except (yaml.YAMLError, RecursionError) as error:
        return Problem(1, 1, f"is not YAML: {' '.join(str(error).split())}")
    return Problem(1, 1, "is empty") if root is None else root


def _refused(event: Any, count: int, depth: int) -> str | None:  # noqa: ANN401 - a yaml event
    import yaml

    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
        return "anchors and aliases are not allowed"
    if getattr(event, "tag", None) not in (None, "!"):
        return "tags are not allowed"
    if count > MAX_NODES:
        return f"has more than {MAX_NODES} parts"
    return f"is nested deeper than {MAX_DEPTH}" if depth > MAX_DEPTH else None


class _Reader:
    """Turns nodes into plain data and notes each place and each error."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.places: dict[Path, tuple[int, int]] = {}

    def read(self, node: Any, kind: Any, path: Path) -> Any:  # noqa: ANN401 - a yaml node
        """Return the node's data; what does not fit its type is noted and comes back as None."""
        import yaml

        self.places[path] = (node.start_mark.line + 1, node.start_mark.column + 1)
        kinds = list(kind.types) if isinstance(kind, msgspec.inspect.UnionType) else [kind]
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, kinds, path)
        if isinstance(node, yaml.SequenceNode):
            return self._sequence(node, kinds, path)
        return self._scalar(node, kinds, path)

    def _note(self, node: Any, text: str) -> None:  # noqa: ANN401
        self.problems.append(Problem(node.start_mark.line + 1, node.start_mark.column + 1, text))

    def _mapping(self, node: Any, kinds: list[Any], path: Path) -> Any:  # noqa: ANN401
        info = msgspec.inspect
        form = next((k for k in kinds if isinstance(k, (info.StructType, info.DictType))), None)
        if form is None:
            return self._wrong(node, kinds, path)
        found: dict[str, Any] = {}
        for key, value in self._pairs(node):
            if isinstance(form, info.DictType):
                if isinstance(form.key_type, info.LiteralType) and key not in form.key_type.values:
                    self._note(value, f"{key!r} is none of {', '.join(map(str, form.key_type.values))}")
                found[key] = self.read(value, form.value_type, (*path, key))
                continue
            field = next((f for f in form.fields if f.encode_name == key), None)
            if field is None:
                self._unknown(node, key, [f.encode_name for f in form.fields])
            else:
                found[key] = self.read(value, field.type, (*path, key))
        if isinstance(form, info.StructType):
            missing = [f.encode_name for f in form.fields if f.required and f.encode_name not in found]
            for name in missing:
                self._note(node, f"{name} is missing")
        return found

    def _pairs(self, node: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key.value, str) or key.tag == f"{_TAG}merge":
                self._note(key, "a key has to be plain text")
            elif key.value in seen:
                self._note(key, f"{key.value} is given twice")
            else:
                seen.add(key.value)
                yield key.value, value

    def _unknown(self, node: Any, name: str, known: list[str]) -> None:  # noqa: ANN401
        import difflib

        key = next(key for key, _value in node.value if key.value == name)
        near = difflib.get_close_matches(name, known, 1)
        self._note(key, f"unknown key {name!r}" + (f"; did you mean {near[0]}?" if near else ""))

    def _sequence(self, node: Any, kinds: list[Any], path: Path) -> Any:  # noqa: ANN401
        form = next((k for k in kinds if isinstance(k, msgspec.inspect.VarTupleType)), None)
        if form is None:
            return self._wrong(node, kinds, path)
        return [self.read(item, form.item_type, (*path, index)) for index, item in enumerate(node.value)]

    def _scalar(self, node: Any, kinds: list[Any], path: Path) -> Any:  # noqa: ANN401
        info = msgspec.inspect
        tag, text = node.tag.removeprefix(_TAG), node.value
        for kind in kinds:
            match kind:
                case info.LiteralType():
                    values = {str(value): value for value in kind.values}
                    if text in values and (tag == "str") == isinstance(values[text], str):
                        return values[text]
                case info.StrType() if tag == "str":
                    if not text.strip():
                        self._note(node, f"{_name(path)} must not be empty")
                    return text
                case info.BoolType() if tag == "bool" and text in {"true", "false"}:
                    return text == "true"
                case info.IntType() if (
                    tag == "int" and text.lstrip("+-").isascii() and text.lstrip("+-").isdigit()
                ):
                    return int(text)
                case info.FloatType() if tag in {"int", "float"}:
                    return float(text)
                case info.NoneType() if tag == "null":
                    return None
        return self._wrong(node, kinds, path)

    def _wrong(self, node: Any, kinds: list[Any], path: Path) -> None:  # noqa: ANN401
        wanted = " or ".join(dict.fromkeys(_words(kind) for kind in kinds if _words(kind)))
        quotes = ""
        if any(isinstance(kind, msgspec.inspect.StrType) for kind in kinds) and isinstance(node.value, str):
            quotes = "; put it in quotes"
        self._note(node, f"{_name(path)} has to be {wanted}{quotes}")


def _name(path: Path) -> str:
    return ".".join(str(part) for part in path) or "the document"


def _words(kind: Any) -> str:  # noqa: ANN401 - a msgspec type description
    info = msgspec.inspect
    match kind:
        case info.LiteralType():
            return f"one of {', '.join(str(value) for value in kind.values)}"
        case info.StrType():
            return "text"
        case info.IntType():
            return "a whole number"
        case info.FloatType():
            return "a number"
        case info.BoolType():
            return "true or false"
        case info.VarTupleType():
            return "a list"
        case info.StructType() | info.DictType():
            return "a mapping"
        case _:
            return ""
