"""Whether the digests of a model's files are those that are expected, or declared."""

from __future__ import annotations

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.facts.model_digest import DigestFacts, FileDigest


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _when(file: FileDigest) -> str:
    return "computed now" if file.computed_now else f"computed at {file.computed_at}, unchanged since"


@check(
    "model.digest-is-known",
    title="The digest of every file of the model could be computed",
    boundary="model_file",
    remedy="see that the file can be read and does not change meanwhile",
)
def digest_is_known(digests: DigestFacts) -> Verdict:
    """State the digests; unknown where a file could not be read to its end."""
    shown = [f"{_name(one.path)} {one.sha256.need()} ({_when(one)})" for one in digests.files]
    return Verdict(
        holds=True, summary=f"SHA-256: {'; '.join(shown)}", expected="a digest", observed="a digest"
    )


@check(
    "model.digest-is-as-expected",
    title="The digest is the one that was expected",
    boundary="model_file",
    remedy="do not use this file: download it again, and see where the digest that you expect comes from",
)
def digest_is_as_expected(digests: DigestFacts) -> Verdict | NotApplicable:
    """Fail for a digest that differs from the one that the operator gave."""
    if not digests.expected:
        return NotApplicable("none was given")
    files = list(digests.files)
    if len(digests.expected) == 1:
        files = [one for one in files if one.path == digests.named] or files[:1]
    if len(files) != len(digests.expected):
        parts = f"{len(files)} part{'' if len(files) == 1 else 's'}"
        counts = f"{len(digests.expected)} digests were given, the model has {parts}"
        return Verdict(
            holds=False,
            summary=counts,
            expected="one, or one for each part",
            observed=counts,
            remedy="give --expect-sha256 once for the file that is named, or once for each part in order",
        )
    wrong = [
        f"{_name(one.path)} is {there}, expected {wanted}"
        for one, wanted in zip(files, digests.expected, strict=True)
        if (there := one.sha256.need()) != wanted
    ]
    return Verdict(
        holds=not wrong,
        summary="; ".join(wrong) or f"as expected: {', '.join(digests.expected)} ({_when(files[0])})",
        expected=", ".join(digests.expected),
        observed=", ".join(one.sha256.need() for one in files),
    )


@check(
    "model.digest-is-as-declared",
    title="The digest is the one that is declared beside the file",
    boundary="model_file",
    remedy="download the file again; if its publisher replaced it, remove what declares the old digest",
)
def digest_is_as_declared(digests: DigestFacts) -> Verdict | NotApplicable:
    """Fail for a digest that differs from what the download folder or a list beside the file declares."""
    if not digests.declared:
        return NotApplicable("none is declared")
    computed = {one.path: one.sha256 for one in digests.files}
    wrong = [
        f"{_name(one.path)} is {there}, {_name(one.said_by)} declares {one.sha256}"
        for one in digests.declared
        if (there := computed[one.path].need()) != one.sha256
    ]
    said = ", ".join(sorted({_name(one.said_by) for one in digests.declared}))
    return Verdict(
        holds=not wrong,
        summary="; ".join(wrong) or f"as declared by {said}",
        expected="the declared digest",
        observed="; ".join(wrong) or "the declared digest",
    )
