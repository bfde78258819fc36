"""Fetch a file from a hub: record what it is, decide, download, verify, inspect."""

from __future__ import annotations

import os

import msgspec

from llamaops.errors import FetchError
from llamaops.facts.asked import AskedFacts
from llamaops.facts.hub import HubFacts, parse_hub, unknown_hub
from llamaops.facts.hub_reference import HubReference
from llamaops.facts.model_digest import collect_digests
from llamaops.facts.model_look import collect_model
from llamaops.operations.session import Session
from llamaops.schema.fact import Fact, Source, Unknown, Why, known
from llamaops.system import cache as store
from llamaops.system import hub as client
from llamaops.system.cache import cache_folder
from llamaops.system.digest import Digester
from llamaops.system.machine import Machine
from llamaops.system.remote_file import hub_endpoint

NOT_COVERED = ("whether the licence that the card names is the one that applies",)
REJECTED = ".rejected"


class HubRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to fetch."""

    reference: HubReference
    accepted_licence: str | None = None
    folder: str | None = None
    """Where to put it; None is a folder of the cache."""
    quiet: bool = True


def fetch_from_hub(session: Session, machine: Machine, request: HubRequest) -> str:
    """Record what the hub says, and download only what may be: return how it ended."""
    session.begin(("model_file",), NOT_COVERED)
    facts = _ask(session, machine, request)
    session.add("hub", facts)
    session.judge("hub")
    if session.failed("model_file") or isinstance(facts.files, Unknown) or isinstance(facts.commit, Unknown):
        return "nothing was downloaded: see the findings"
    reference = request.reference
    folder = request.folder or os.path.join(  # noqa: PTH118 - strings throughout
        cache_folder(machine.environ), "hub", reference.repository, facts.commit.value
    )
    try:
        paths = _download(session, machine, request, facts, folder)
    except FetchError as error:
        source = Source(kind="http", name=f"{facts.endpoint}/{facts.repository}")
        _add_downloaded(session, facts, Unknown(why="failed", detail=str(error), source=source))
        return "the download did not end; what was downloaded is kept, and the same command goes on with it"
    _add_downloaded(session, facts, known(tuple(paths), Source(kind="file", name=folder)))
    _verify(session, machine, facts, paths)
    if session.failed("model_file"):
        for path in paths:
            os.replace(path, path + REJECTED)  # noqa: PTH105 - strings throughout
        return f"the download failed its checks and was renamed to *{REJECTED}"
    return f"downloaded to {paths[0]}"


def _add_downloaded(session: Session, facts: HubFacts, downloaded: Fact[tuple[str, ...]]) -> None:
    session.add("hub", msgspec.structs.replace(facts, downloaded=downloaded))
    session.judge("hub")


def _ask(session: Session, machine: Machine, request: HubRequest) -> HubFacts:
    endpoint = hub_endpoint(machine.environ)
    reference = request.reference
    with session.step("ask-hub", f"ask {endpoint} about {reference.repository}") as step:
        try:
            answer = client.ask_repository(
                endpoint, reference.repository, reference.revision, machine.environ
            )
        except FetchError as error:
            step.end = "failed"
            source = Source(kind="http", name=f"{endpoint}/api/models/{reference.repository}")
            why: Why = "absent" if isinstance(error, client.NotThereError) else "failed"
            gap = Unknown(why=why, detail=str(error), source=source)
            return unknown_hub(reference, endpoint, request.accepted_licence, gap)
    return parse_hub(reference, endpoint, request.accepted_licence, answer)


def _download(
    session: Session, machine: Machine, request: HubRequest, facts: HubFacts, folder: str
) -> list[str]:
    files = facts.files.need()
    with store.explained("model", folder):
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103 - strings throughout
        left = [one for one in files if not os.path.exists(f"{folder}/{one.path}")]  # noqa: PTH110
        begun = store.used_bytes(f"{folder}/.cache")  # what an earlier try left counts
        needed = sum(one.size_bytes or 0 for one in left) - begun
        store.need_space(folder, needed_bytes=needed, title="model")
    paths = []
    for file in files:
        with session.step("download", f"download {file.path}, {file.size_bytes} bytes, into {folder}"):
            paths.append(
                client.download(
                    facts.endpoint,
                    facts.repository,
                    facts.commit.need(),
                    file.path,
                    folder,
                    machine.environ,
                    quiet=request.quiet,
                )
            )
    return paths


def _verify(session: Session, machine: Machine, facts: HubFacts, paths: list[str]) -> None:
    """Hold digests against the hub's, and look at the header."""
    files = facts.files.need()
    expected = [one.sha256 for one in files if one.sha256 is not None]
    with session.step("verify", f"compute the SHA-256 of {len(paths)} files and read the header"):
        digester = Digester(dict(machine.environ), remembered=False)
        whole = len(expected) == len(files)
        session.add("digests", collect_digests(machine, paths[0], paths, digester, expected if whole else ()))
        model, identity = collect_model(machine, paths[0])
        session.add("asked", AskedFacts(via="inspect", model_path=paths[0]))
        session.add("model", model)
        session.add("identity", identity)
    session.judge("digest", "model", "identity")
