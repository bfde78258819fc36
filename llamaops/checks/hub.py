"""Before a download from a hub: is the file there, who decided about the licence, is the revision fixed."""

from __future__ import annotations

from llamaops.checks.registry import Verdict, check
from llamaops.facts.hub import HubFacts
from llamaops.schema.fact import Fact, Known, Unknown

COMMIT_DIGITS = 40


def _or(fact: Fact[str], other: str) -> str:
    return fact.value if isinstance(fact, Known) else other


@check(
    "hub.file-is-there",
    title="The hub has the file, and every part of it",
    boundary="model_file",
    remedy="correct the repository, the file or the revision",
)
def file_is_there(hub: HubFacts) -> Verdict:
    """Fail for a file, a part, a repository or a revision that the hub does not have."""
    if isinstance(hub.files, Unknown) and hub.files.why == "absent":
        return Verdict(holds=False, summary=hub.files.detail, expected=hub.file, observed="not there")
    files = hub.files.need()
    size = sum(one.size_bytes or 0 for one in files)
    where = f"{hub.repository} at {hub.commit.need()[:12]}"
    return Verdict(
        holds=True,
        summary=f"{len(files)} file{'s' if len(files) > 1 else ''} of {size} bytes in {where}",
        expected=hub.file,
        observed=", ".join(one.path for one in files[:4]),
    )


@check(
    "hub.licence-is-decided",
    title="Somebody decided to accept the model's licence",
    boundary="model_file",
    remedy="read the licence and name it with --accept-licence",
)
def licence_is_decided(hub: HubFacts) -> Verdict:
    """Fail unless the licence that was accepted is the one that the card names."""
    if isinstance(hub.licence, Unknown) and hub.licence.why != "absent":
        hub.licence.need()
    names = [_or(fact, "") for fact in (hub.licence, hub.licence_name)]
    named = " ".join(filter(None, names)) or "none"
    link = f", {hub.licence_link.value}" if isinstance(hub.licence_link, Known) else ""
    accepted = (hub.accepted_licence or "").strip().lower()
    allowed = {name.lower() for name in names if name} or {"none"}
    holds = accepted in allowed
    return Verdict(
        holds=holds,
        summary=f"the card names the licence {named}{link}; accepted: {hub.accepted_licence or 'nothing'}",
        expected=named,
        observed=hub.accepted_licence or "no decision",
        remedy=f"read it, then run again with --accept-licence {next(filter(None, names), 'none')}",
    )


@check(
    "hub.file-is-downloaded",
    title="The file was downloaded to its end",
    boundary="model_file",
    remedy="run the command again: what was downloaded is kept, and the download goes on",
)
def file_is_downloaded(hub: HubFacts) -> Verdict:
    """Fail for a download that did not end; unknown while there was none."""
    done = hub.downloaded
    if isinstance(done, Unknown) and done.why == "failed":
        return Verdict(holds=False, summary=done.detail, expected=hub.file, observed="not all of it")
    paths = done.need()
    return Verdict(holds=True, summary=f"it lies at {paths[0]}", expected=hub.file, observed=paths[0])


@check(
    "hub.revision-is-fixed",
    title="The revision is a commit",
    boundary="model_file",
    severity="advisory",
    remedy="name the commit, so that the same file comes the next time",
)
def revision_is_fixed(hub: HubFacts) -> Verdict:
    """Tell of a branch or tag, which can lead to another file tomorrow."""
    commit = hub.commit.need()
    holds = len(hub.asked_revision) == COMMIT_DIGITS and hub.asked_revision == commit
    return Verdict(
        holds=holds,
        summary=f"{hub.asked_revision} is commit {commit}",
        expected="a commit",
        observed=hub.asked_revision,
        remedy=f"write hf:{hub.repository}/{hub.file}@{commit}",
    )


@check(
    "hub.lineage-is-stated",
    title="The card says what the model was made from and by whom",
    boundary="model_file",
    severity="advisory",
    remedy="prefer a publisher who states base model and quantizer",
)
def lineage_is_stated(hub: HubFacts) -> Verdict:
    """Tell of a card without base model."""
    bases = hub.base_models
    if isinstance(bases, Unknown) and bases.why != "absent":
        bases.need()
    made_from = ", ".join(bases.value) if isinstance(bases, Known) else "nothing that it names"
    by = _or(hub.quantizer, "nobody that it names")
    said = f"{_or(hub.relation, 'made')} from {made_from}; quantized by {by}"
    return Verdict(
        holds=isinstance(bases, Known), summary=said, expected="base model and quantizer", observed=said
    )
