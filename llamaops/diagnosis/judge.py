"""Judgement: which of the things that hold is the cause.

- A rule that names another in `over` explains it: the other is a symptom.
- Failures before warnings, what ends a program before what one request suffers; wrappers last.
- Among equals the first line of the last start wins: what follows a first error follows from it.
- A failure up to the load that is followed by readiness in the same log was recovered from.
- A wrapper alone ("failed to load model") names no cause: the answer is `unknown`, with its line.
"""

from __future__ import annotations

from collections.abc import Sequence

from llamaops.diagnosis import complaints
from llamaops.diagnosis.candidates import Candidate, candidates
from llamaops.diagnosis.landmarks import Landmarks, landmarks_of
from llamaops.diagnosis.parts import Part
from llamaops.diagnosis.ranking import SECURITY, SEVERITY, other_role, rank_of, roles_of
from llamaops.diagnosis.rule import RuleSet, rule_set
from llamaops.diagnosis.scan import scan
from llamaops.diagnosis.scanned import Scanned
from llamaops.diagnosis.situation import Situation, situation_of
from llamaops.diagnosis.wording import Wording, words_of
from llamaops.schema.diagnosis import Cause, Diagnosis, PartSeen, Sure, UnexplainedError, Verdict

NOTHING_PROVEN = "no fault found; nothing proven"
UNEXPLAINED_COMPLAINT = "nothing here explains what is complained of"
MAX_CONTRIBUTING = 12
MAX_UNEXPLAINED = 3
_TELLING = frozenset(("log", "text", "http-response", "host-facts", "inspect"))
"""Kinds of parts that show what happened; the others show what was asked for."""
_LESS: dict[Sure, Sure] = {"certain": "likely", "likely": "possible", "possible": "possible"}


def diagnose_parts(parts: Sequence[Part], rules: RuleSet | None = None) -> Diagnosis:
    """Return what the parts of one situation mean, taken together.

    Args:
        parts: Logs, answers, command lines and whatever else belongs to the situation, in order.
        rules: The rules; the package's own where none are given.
    """
    rules = rules or rule_set()
    return judge([scan(index, part, rules.signals) for index, part in enumerate(parts)], rules)


def diagnose_text(text: str, kind: str = "log", name: str = "log") -> Diagnosis:
    """Return what one text means."""
    return diagnose_parts([Part(kind, name, text)])


def judge(scans: Sequence[Scanned], rules: RuleSet) -> Diagnosis:
    """Return the diagnosis of parts that were scanned."""
    return _Judgement(scans, rules).diagnosis()


class _Judgement:
    def __init__(self, scans: Sequence[Scanned], rules: RuleSet) -> None:
        self._scans = scans
        self._situation: Situation = situation_of(scans)
        self._marks: Landmarks = landmarks_of(scans, self._situation.facts)
        self._held = candidates(rules, self._situation)
        self._words = Wording([s.part.name for s in scans], self._situation.secrets)

    def diagnosis(self) -> Diagnosis:
        roles = roles_of(self._held, self._marks)
        order = sorted(self._held, key=lambda c: rank_of(c, self._marks))
        first = next((c for c in order if roles[id(c)] == "primary"), None)
        if first is not None and (
            first.rule.tier == "wrapper"
            or self._only_a_warning(first)
            or self._only_harmless(first)
            or self._beside_a_failure(first)
        ):
            return self._answer(None, order, roles)
        return self._answer(first, order, roles)

    def _only_a_warning(self, first: Candidate) -> bool:
        """Say whether the worst is a plain warning of a program that is proven to work."""
        plain = first.rule.severity in {"warn", "info"} and first.rule.tier != "cause"
        alone = sum(s.part.kind != "command" for s in self._scans) < 2  # noqa: PLR2004 - a log by itself
        return plain and alone and self._marks.proven()[0] is not None and self._all_understood()

    def _only_harmless(self, first: Candidate) -> bool:
        """Say whether the worst is a harmless message, and nothing proves that the program works."""
        return (
            first.rule.severity == "info"
            and first.rule.tier != "cause"
            and (self._marks.proven()[0] is None or bool(self._unexplained()))
        )

    def _beside_a_failure(self, first: Candidate) -> bool:
        """Say whether all that is known could be abused, while something else failed or is complained of."""
        complaint = self._complaint()
        other = bool(complaint) and not complaints.of_security(complaint)
        return first.rule.area == SECURITY and (other or bool(self._unexplained()))

    def _answer(self, first: Candidate | None, order: list[Candidate], roles: dict[int, str]) -> Diagnosis:
        primary = self._words.cause(first, "primary") if first is not None else None
        others, seen = [], {primary.slug if primary else ""}
        for candidate in order:
            if candidate is first or candidate.rule.slug in seen:
                continue
            seen.add(candidate.rule.slug)
            role = roles[id(candidate)]
            others.append(self._words.cause(candidate, other_role(candidate, role, first)))
        unexplained = self._unexplained()
        count = sum(s.error_count for s in self._scans)
        open_ones = [c for c in order if roles[id(c)] == "primary" and SEVERITY[c.rule.severity] == 0]
        wrapper = self._words.cause(open_ones[0], "symptom") if first is None and open_ones else None
        verdict, slug, summary = self._verdict(primary, wrapper, others, unexplained)
        proven, proof = self._marks.proven()
        return Diagnosis(
            verdict=verdict,
            slug=slug,
            summary=self._words.clean(summary),
            primary=self._checked(primary, unexplained, others) if primary else None,
            contributing=tuple(others[:MAX_CONTRIBUTING]),
            proven=proven,
            proof=tuple(self._words.line(p, n, t) for p, n, t in proof),
            unexplained=unexplained,
            unexplained_count=count,
            exit_status=self._exit_status(),
            parts=self._parts(order),
        )

    def _verdict(
        self,
        primary: Cause | None,
        wrapper: Cause | None,
        others: list[Cause],
        unexplained: tuple[UnexplainedError, ...],
    ) -> tuple[Verdict, str, str]:
        """Return verdict, slug and summary; health is said only with the boundary that is proven."""
        if primary is not None and primary.severity != "info":
            return "fault", primary.slug, primary.says
        if primary is not None:
            return "no_fault", primary.slug, f"{primary.says} {self._proves().capitalize()}."
        if unexplained:
            line = unexplained[0].line
            return "unknown", "unknown", f"the first error that no rule explains: {line.text[:300]}"
        if wrapper is not None:
            return "unknown", "unknown", f"no cause found: {wrapper.says}"
        return self._of_silence(others)

    def _of_silence(self, others: list[Cause]) -> tuple[Verdict, str, str]:
        """Return verdict, slug and summary where nothing stands: health, or what keeps it from being said."""
        recovered = next((c for c in others if c.role == "recovered"), None)
        complaint = self._complaint()
        if complaint and (recovered is None or not complaints.of_a_message(complaint)):
            return "unknown", "unknown", f"{UNEXPLAINED_COMPLAINT}; {self._proves()}"
        if recovered is not None:
            summary = f"recovered from: {recovered.says} {self._proves().capitalize()}."
            return "no_fault", recovered.slug, summary
        proven, _ = self._marks.proven()
        exit_status = self._situation.facts.get("exit_status")
        if proven is not None and not exit_status and self._all_understood():
            return "no_fault", "no-fault-found", f"no fault found; {self._proves()}"
        if proven is None:
            return "unknown", "unknown", NOTHING_PROVEN
        but = f"the exit status is {exit_status}" if exit_status else "not every part is understood"
        return "unknown", "unknown", f"no fault found; {self._proves()}, but {but}"

    def _complaint(self) -> str:
        """Return what the operator told is wrong, if anything; then silence is no health."""
        return next((s.part.complaint for s in self._scans if s.part.complaint), "")

    def _proves(self) -> str:
        proven, _ = self._marks.proven()
        return "nothing else is proven" if proven is None else f"the parts prove {words_of(proven)}"

    def _unused(self) -> tuple[str, ...]:
        """Return the names of parts, other than commands and requests, that no rule rests on."""
        used = self._marks.parts | {hit.part for c in self._held for hit in c.hits}
        return tuple(
            s.part.name
            for index, s in enumerate(self._scans)
            if index not in used and s.lines and s.part.kind in _TELLING
        )

    def _all_understood(self) -> bool:
        """Say whether every part proves something or explains itself; only then is silence health."""
        used = self._marks.parts | {
            h.part for c in self._held if c.rule.severity in {"info", "warn"} for h in c.hits
        }
        return all(index in used or s.part.kind == "command" for index, s in enumerate(self._scans))

    def _checked(
        self, primary: Cause, unexplained: tuple[UnexplainedError, ...], others: list[Cause]
    ) -> Cause:
        """Lower how sure the primary cause is where something else could be the first."""
        del others
        import msgspec

        if primary.severity == "warn" and primary.boundary != "exposure" and not self._marks.proven()[1]:
            why = "it is a warning, and nothing shows that the program became ready; its end may be lost"
            return msgspec.structs.replace(primary, sure="possible", why_sure=why)
        if primary.sure == "certain" and unexplained and primary.evidence:
            line, own = unexplained[0].line, primary.evidence[0]
            earlier = line.part == own.part and line.number < own.number - 1
            if earlier and primary.severity in {"fatal", "error"}:
                why = f"an error before it, on line {line.number}, is of a kind that no rule knows"
                return msgspec.structs.replace(primary, sure="likely", why_sure=why)
        unused = self._unused()
        if unused and primary.sure != "possible":
            why = f"{primary.why_sure}; what {unused[0]} says is not explained by it"
            return msgspec.structs.replace(primary, sure=_LESS[primary.sure], why_sure=why)
        return primary

    def _unexplained(self) -> tuple[UnexplainedError, ...]:
        found = []
        for scanned in self._scans:
            for seen in scanned.errors:
                if self._marks.ready_after((seen.part, seen.number), seen.text):
                    continue
                found.append(self._words.error(seen))
        return tuple(found[:MAX_UNEXPLAINED])

    def _exit_status(self) -> int | None:
        value = self._situation.facts.get("exit_status")
        return value if isinstance(value, int) else None

    def _parts(self, order: list[Candidate]) -> tuple[PartSeen, ...]:
        used = {hit.part for c in order for hit in c.hits} | self._marks.parts
        return tuple(
            PartSeen(name=s.part.name, kind=s.part.kind, lines=s.lines, used=index in used, note=s.part.note)
            for index, s in enumerate(self._scans)
        )
