from __future__ import annotations

import datetime as dt
import importlib.util
from pathlib import Path

import pytest

from llamaops.cli import app
from llamaops.operations.sources import Claim, age_days, load_claims, page
from llamaops.runbook.load import find_all

ROOT = Path(__file__).parents[3]
CLAIMS = load_claims()


def test_the_page_is_what_the_data_says() -> None:
    assert (ROOT / "docs" / "sources.md").read_text() == page(CLAIMS), "make generate"


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.claim[:40])
def test_a_claim_is_whole_and_what_uses_it_is_there(claim: Claim) -> None:
    dt.date.fromisoformat(claim.checked)
    assert claim.builds
    books = {found.id for found in find_all({})}
    for name in claim.used_by:
        assert name in books or importlib.util.find_spec(name) is not None, name


def test_age() -> None:
    assert age_days(CLAIMS[0], dt.date.fromisoformat(CLAIMS[0].checked) + dt.timedelta(days=9)) == 9


def test_stale_claims_are_listed_and_fail(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["sources"]) == 0
    assert capsys.readouterr().out.count("used by") == len(CLAIMS)
    assert app.main(["sources", "--stale", "36500"]) == 0
    assert "no claim is older" in capsys.readouterr().out
    assert app.main(["sources", "--stale", "1e3"]) == 2
