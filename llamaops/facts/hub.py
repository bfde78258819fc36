"""What a hub says about a file before it is downloaded: nothing here is verified."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llamaops.facts.gguf_shards import parse_shard_name
from llamaops.facts.hub_reference import HubReference
from llamaops.schema.fact import Fact, Source, Unknown, known, not_attempted
from llamaops.schema.shape import Shape

MOST_LISTED = 32
CUT = 200


class HubFile(Shape, frozen=True, kw_only=True):
    """One file to download."""

    path: str
    """Path in the repository."""
    size_bytes: int | None
    """Length that the hub declares."""
    sha256: str | None
    """Digest that the hub declares; none for a small file, which it keeps in git itself."""


class HubFacts(Shape, frozen=True, kw_only=True):
    """What a hub says about a file and its repository."""

    endpoint: str
    """The hub that was asked."""
    repository: str
    """OWNER/NAME."""
    asked_revision: str
    """Branch, tag or commit that was asked for."""
    commit: Fact[str]
    """The commit that it stands for now."""
    file: str
    """The file that was asked for."""
    files: Fact[tuple[HubFile, ...]]
    """It, and the other parts of a split model."""
    licence: Fact[str]
    """Licence in the card."""
    licence_name: Fact[str]
    """The publisher's own name of it."""
    licence_link: Fact[str]
    """Where it is written."""
    base_models: Fact[tuple[str, ...]]
    """What the card says that it was made from."""
    relation: Fact[str]
    """How it was made from them: quantized, finetune, merge, adapter."""
    quantizer: Fact[str]
    """Who quantized it: the card's word, else the owner of a repository of quantized files."""
    author: Fact[str]
    """Who owns the repository."""
    changed_at: Fact[str]
    """When the repository last changed."""
    gated: Fact[str]
    """Whether the hub asks for a login and consent: `no`, `auto` or `manual`."""
    datasets: Fact[tuple[str, ...]]
    """What the card says that it was trained on."""
    card_file: Fact[HubFile]
    """The card itself."""
    accepted_licence: str | None
    """The licence that the operator decided to accept."""
    downloaded: Fact[tuple[str, ...]]
    """Where the files lie now."""


def unknown_hub(reference: HubReference, endpoint: str, accepted: str | None, gap: Unknown) -> HubFacts:
    """Return what is known when the hub did not answer, or has nothing of that name."""
    rest = not_attempted(gap.detail) if gap.why == "absent" else gap
    fields: dict[str, Any] = dict.fromkeys(HubFacts.__struct_fields__, rest)
    return HubFacts(**fields | {"files": gap} | _asked(reference, endpoint, accepted))


def _asked(reference: HubReference, endpoint: str, accepted: str | None) -> dict[str, Any]:
    return {
        "endpoint": endpoint,
        "repository": reference.repository,
        "asked_revision": reference.revision,
        "file": reference.file,
        "accepted_licence": accepted,
        "downloaded": not_attempted("nothing was downloaded yet"),
    }


def parse_hub(
    reference: HubReference, endpoint: str, accepted: str | None, answer: Mapping[str, Any]
) -> HubFacts:
    """Turn the hub's answer, as plain data, into facts."""
    source = Source(kind="http", name=f"{endpoint}/api/models/{reference.repository}")
    card = answer.get("card")
    reader = _Reader(card if isinstance(card, dict) else {}, source)
    tags = [tag for tag in answer.get("tags") or () if isinstance(tag, str)]
    relation = _relation(tags, reader)
    files = {str(one["path"]): one for one in answer.get("files") or ()}
    return HubFacts(
        **_asked(reference, endpoint, accepted),
        commit=reader.of(answer.get("commit"), "commit"),
        files=_wanted(reference, files, source),
        licence=reader.text("license"),
        licence_name=reader.text("license_name"),
        licence_link=reader.text("license_link"),
        base_models=reader.texts("base_model"),
        relation=relation,
        quantizer=_quantizer(reference, reader, relation),
        author=reader.of(answer.get("author") or reference.repository.partition("/")[0], "author"),
        changed_at=reader.of(answer.get("changed_at"), "time of change"),
        gated=reader.of(_gate(answer.get("gated")), "gate"),
        datasets=reader.texts("datasets"),
        card_file=_card(files, source),
    )


class _Reader:
    """Takes texts from a card, which may hold anything."""

    def __init__(self, card: dict[str, Any], source: Source) -> None:
        self._card = card
        self._source = source

    def of(self, value: object, what: str) -> Fact[str]:
        """Return a text."""
        if not isinstance(value, str) or not value.strip():
            return Unknown(why="absent", detail=f"the hub gives no {what}", source=self._source)
        return known(value.strip()[:CUT], self._source)

    def text(self, key: str) -> Fact[str]:
        """Return a text of the card; the first of several."""
        value = self._card.get(key)
        return self.of(value[0] if isinstance(value, list) and value else value, f"{key} in the card")

    def texts(self, key: str) -> Fact[tuple[str, ...]]:
        """Return one or several texts of the card."""
        value = self._card.get(key)
        found = tuple(str(one)[:CUT] for one in (value if isinstance(value, list) else [value]) if one)
        if not found:
            detail = f"there is no {key} in the card"
            return Unknown(why="absent", detail=detail, source=self._source)
        return known(found[:MOST_LISTED], self._source)


def _gate(value: object) -> str:
    return value if isinstance(value, str) else "yes" if value else "no"


def _relation(tags: list[str], reader: _Reader) -> Fact[str]:
    for tag in tags:
        kind, _, rest = tag.removeprefix("base_model:").partition(":")
        if tag.startswith("base_model:") and rest and kind in {"quantized", "finetune", "merge", "adapter"}:
            return reader.of(kind, "relation")
    return reader.text("base_model_relation")


def _quantizer(reference: HubReference, reader: _Reader, relation: Fact[str]) -> Fact[str]:
    said = reader.text("quantized_by")
    if not isinstance(said, Unknown):
        return said
    quantized = not isinstance(relation, Unknown) and relation.value == "quantized"
    return reader.of(reference.repository.partition("/")[0] if quantized else None, "quantizer")


def _file(path: str, one: Mapping[str, Any]) -> HubFile:
    size, digest = one.get("size"), one.get("sha256")
    return HubFile(
        path=path,
        # A boolean is an int to Python, and no size.
        size_bytes=size if type(size) is int and size >= 0 else None,
        sha256=digest if isinstance(digest, str) else None,
    )


def _wanted(
    reference: HubReference, files: Mapping[str, Mapping[str, Any]], source: Source
) -> Fact[tuple[HubFile, ...]]:
    split = parse_shard_name(reference.file)
    paths = [reference.file]
    if split is not None and split.count > 1:
        paths = [split.path(number) for number in range(1, min(split.count, 1024) + 1)]
    missing = [path for path in paths if path not in files]
    if missing:
        near = [path for path in files if path.endswith(".gguf")][:6]
        there = f"; there are {', '.join(near)}" if near else ""
        detail = f"{reference.repository} has no {', '.join(missing[:4])}{there}"
        return Unknown(why="absent", detail=detail, source=source)
    return known(tuple(_file(path, files[path]) for path in paths), source)


def _card(files: Mapping[str, Mapping[str, Any]], source: Source) -> Fact[HubFile]:
    if "README.md" not in files:
        return Unknown(why="absent", detail="the repository has no card", source=source)
    return known(_file("README.md", files["README.md"]), source)
