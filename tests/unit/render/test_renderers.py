"""Whole renderings against files that a reviewer can open; `make golden` makes them anew."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from llamaops.record.boundaries import derive, gaps, strongest
from llamaops.record.record import Record, Tool
from llamaops.record.redact import Redactor, redact
from llamaops.render.highlights import highlights
from llamaops.render.markdown_text import render_markdown
from llamaops.render.summary import render_record, render_summary
from llamaops.schema.evidence import evidence_of
from llamaops.schema.finding import Finding
from llamaops.schema.step import StepResult

GOLDEN = Path(__file__).parents[2] / "golden"
HOSTILE = "\x1b[31mred\x1b[0m | `code` <b>\u202e"


def record() -> Record[dict[str, Any]]:
    log = evidence_of("stderr", "llama-server -m m.gguf", b"load_tensors: \x1b[1mCPU\n```\nend\n")
    findings = (
        Finding(
            check="host.memory-is-known", title="Memory is known", boundary="host", status="passed",
            severity="required", summary="8 GiB are available", evidence=(log.id,),
        ),
        Finding(
            check="model.name-is-plain", title=f"The name is plain {HOSTILE}", boundary="model_file",
            status="failed", severity="required", summary="the name holds control characters",
            expected="plain text", observed=HOSTILE, remedy="rename it", evidence=(log.id,),
        ),
        Finding(
            check="load.device", title="Weights lie on the device", boundary="model_load", status="unknown",
            severity="required", summary="the log hides its buffer lines", why="not_attempted",
            remedy="run with -lv 4",
        ),
        Finding(
            check="host.swap", title="No swap is needed", boundary="host", status="failed",
            severity="advisory",
            summary="swap is off", expected="some", observed="none", remedy="add swap", accepted="wanted so",
        ),
    )  # fmt: skip
    ladder = derive(findings, {"host": 0.01, "model_file": 0.02, "model_load": 0.03})
    steps = (
        StepResult(
            id="look", end="done", started_at="2026-01-02T03:04:05.000Z", elapsed_s=0.5, detail="look around"
        ),
    )
    known = {"state": "known", "source": {"kind": "file", "name": "/proc/meminfo", "evidence": None}}
    unknown = {"state": "unknown", "why": "not_attempted", "detail": "nobody looked"}
    facts = {
        "host": {
            "memory": {"total_bytes": {**known, "value": 8589934592}},
            "gpu": {**unknown, "source": {"kind": "computed", "name": "not attempted", "evidence": None}},
        },
        "model": {"name": {**known, "value": HOSTILE}, "path": {**known, "value": "/models/m.gguf"}},
    }
    return Record(
        id="20260102T030405Z-smoke-abcdef",
        command="smoke",
        argv=("smoke", "--model", "/models/m.gguf"),
        started_at="2026-01-02T03:04:05.000Z",
        finished_at="2026-01-02T03:04:06.000Z",
        tool=Tool(name="llamaops", version="0.1.0", python="3.11.0"),
        outcome="failed",
        exit_status=3,
        ended="ended by itself",
        promised=("host", "generated_output"),
        strongest=strongest(ladder),
        boundaries=ladder,
        gaps=gaps(findings, (log,), steps, ("one prompt says nothing about quality",)),
        findings=findings,
        steps=steps,
        facts=facts,
        evidence=(log,),
    )


def rendered(form: str) -> str:
    # An id differs from run to run.
    return re.sub(r"ev-[0-9a-f]{12}", "ev-0123456789ab", _rendered(form))


def _rendered(form: str) -> str:
    redacted = redact(msgspec.to_builtins(record()), Redactor())
    if form == "md":
        return render_markdown(redacted)
    lines = (
        render_summary(redacted, folder="/records/r") if form == "summary.txt" else render_record(redacted)
    )
    return "".join(f"{line.text}\n" for line in lines)


@pytest.mark.parametrize("form", ["md", "summary.txt", "record.txt"])
def test_the_rendering_is_the_reviewed_one(form: str) -> None:
    path = GOLDEN / f"record.{form}"
    text = rendered(form)
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("form", ["md", "summary.txt", "record.txt"])
def test_no_renderer_sends_a_control_character(form: str) -> None:
    assert not [c for c in rendered(form) if (c < " " and c != "\n") or c in "\x7f\u202e"]


def test_boundaries_come_before_findings_and_findings_before_facts() -> None:
    text = rendered("md")
    places = [
        text.index(f"## {name}") for name in ("Boundaries", "Findings", "What this", "Facts", "Evidence")
    ]
    assert places == sorted(places)


def test_what_was_not_attempted_is_never_shown_as_absent() -> None:
    text = rendered("md")
    assert "unknown (not attempted): nobody looked" in text
    assert "absent" not in text


def test_what_a_server_held_is_shown_apart_from_the_pages_of_files() -> None:
    held = {"resident_bytes": 3 * 2**20, "own_bytes": 2**20, "file_bytes": 2 * 2**20}
    facts = {"lifecycle": {"memory_when_ready": {"state": "known", "value": held}}}
    assert dict(highlights("serve", facts)) == {
        "held when ready": "1.0 MiB of its own, 2.0 MiB of files",
    }


def test_vectors_ranks_a_router_sleep_and_who_answers_have_rows() -> None:
    def known(value: object) -> dict[str, object]:
        return {"state": "known", "value": value}

    idle = {"name": "three", "state_before": "unloaded", "state_after": None, "why_not": "it is unloaded"}
    models = [{"name": "one", "state_before": "unloaded", "state_after": "loaded", "why_not": ""}, idle]
    facts = {
        "server": {
            "embeddings": known({"dimension": 128, "different_similarity": 0.571}),
            "rerank": known({"relevant_score": 8.5719, "other_score": -2.0887}),
        },
        "router": {"models": known(models)},
        "sleep": {"woken": {"elapsed_s": 1.25}},
        "owner": {"listeners": known([{"pid": 7, "address": "0.0.0.0", "port": 8080}])},
    }
    assert dict(highlights("verify", facts)) == {
        "vectors": "128 numbers each, different texts 0.571 alike",
        "ranks": "relevant document 8.57, other -2.09",
        "router's models": "one loaded, three unloaded (not asked)",
        "woken in": "1.25 s",
        "who answers": "pid 7 on 0.0.0.0:8080",
    }
