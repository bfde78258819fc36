import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamaops.record.redact import Redactor, redact
from llamaops.record.secrets import Secrets
from tests.fakes.redaction_corpus import given_values, ordinary, planted
from tests.figures.redaction import measure


def test_equal_values_get_equal_placeholders() -> None:
    redactor = Redactor(Secrets(values=("hunter2", "x7q")))
    assert redactor.text("hunter2 x7q hunter2") == "<secret-1> <secret-2> <secret-1>"
    assert redactor.text("x7q from 10.0.0.7") == "<secret-2> from <address-1>"


def test_a_placeholder_never_holds_a_given_value() -> None:
    for value in ("secret", "sec", "removed", "gone", "t-1", "<secret"):
        found = Redactor(Secrets(values=(value, "hunter2"))).text(f"a {value} and hunter2")
        assert value not in found


def test_who_and_where_we_are() -> None:
    own = Secrets(home="/srv/people/zoe", users=("zoe",), hosts=("atlas7.example", "atlas7"))
    text = Redactor(own).text("/srv/people/zoe/m.gguf zoe's zoey ATLAS7 atlas7.example:80 atlas70")
    assert text == "<home>/m.gguf <user-1>'s zoey <host-1> <host-1>:80 atlas70"


def test_ordinary_words_are_no_identity() -> None:
    own = Secrets(home="/root", users=("root",), hosts=("localhost",))
    text = "root of the model, localhost:8080, /rooted"
    assert Redactor(own).text(text) == text


def test_a_record_is_walked_with_its_keys() -> None:
    record = {
        "argv": ["llama-server", "--api-key", "abc", "-v"],
        "api_key": "xyz",
        "settings": {"hf_token": {"state": "known", "value": "short"}},
        "env": [{"name": "DB_PASSWORD", "value": "pw"}],
        "hunter2": 1,
        "count": 5,
        "removed": [],
    }
    done = redact(record, Redactor(Secrets(values=("hunter2",))))
    assert done.record["argv"] == ["llama-server", "--api-key", "<secret-1>", "-v"]
    assert done.record["api_key"] == "<secret-2>"
    assert done.record["settings"]["hf_token"] == {"state": "known", "value": "<secret-3>"}
    assert done.record["env"] == [{"name": "DB_PASSWORD", "value": "<secret-4>"}]
    assert "<secret-5>" in done.record
    assert done.record["count"] == 5
    assert record["api_key"] == "xyz"
    places = {(item.rule, item.place, item.count) for item in done.removed}
    assert ("named-secret", "/argv/2", 1) in places
    assert done.record["removed"] == [
        {"rule": item.rule, "place": item.place, "count": item.count} for item in done.removed
    ]
    assert "xyz" not in json.dumps(done.record)


def test_a_digest_does_not_outlive_a_secret() -> None:
    def evidence(text: str) -> dict[str, object]:
        return {"id": "ev-1", "sha256": "f" * 64, "text": text}

    record = {"evidence": [evidence("key hunter2"), evidence("from 10.0.0.7"), evidence("nothing")]}
    done = redact(record, Redactor(Secrets(values=("hunter2",)))).record["evidence"]
    assert [item["sha256"] for item in done] == [None, "f" * 64, "f" * 64]


def test_what_one_place_gives_away_goes_everywhere() -> None:
    key = "p1-Zx9Yw8Vu7Ts6Rq5Po4"
    done = redact({"a": f"entry {key}", "b": f"--api-key {key}"}, Redactor()).record
    assert done == {"a": "entry <secret-1>", "b": "--api-key <secret-1>"}


def test_nothing_is_forgotten_until_told() -> None:
    redactor = Redactor()
    redactor.text("--api-key p1-Zx9Yw8Vu7Ts6Rq5Po4")
    assert redactor.text("p1-Zx9Yw8Vu7Ts6Rq5Po4") == "<secret-1>"
    redactor.forget()
    assert redactor.text("p1-Zx9Yw8Vu7Ts6Rq5Po4") == "p1-Zx9Yw8Vu7Ts6Rq5Po4"


def test_colour_and_a_wrapped_line_hide_nothing() -> None:
    key = "hf" + "_" + "AbCdEfGhIj" * 3 + "KlMn"
    assert Redactor().text(f"use {key[:9]}\x1b[0m\x1b[33m{key[9:]}\x1b[0m now") == "use <secret-1>\x1b[0m now"
    line = "." * (80 - 13) + " " + key
    assert key[12:] not in Redactor().text(line[:80] + "\n" + line[80:] + " now")


@settings(max_examples=100, deadline=None)
@given(st.text("abc:/@=.-_'\"\\%<>1 \n\x1b[m", max_size=120))
def test_a_second_time_changes_nothing(text: str) -> None:
    redactor = Redactor(Secrets(values=("abc1", "x7q")))
    once = redactor.text(text)
    redactor.forget()
    assert redactor.text(once) == once


def test_figures_of_our_corpus() -> None:
    entries = list(planted(11, 440))
    figures = measure([*entries, *ordinary(11, 1500)], given_values(entries))
    assert figures.share("given") == 100.0
    assert figures.share("others") >= 98.0
    assert figures.share("ordinary") > 99.0
    assert figures.share("kept parts") >= 99.0


def test_importing_compiles_no_pattern() -> None:
    code = (
        "import re, msgspec; n = []; c = re.compile; re.compile = lambda *a: (n.append(a), c(*a))[1]\n"
        "import llamaops.record.redact; print(len(n), 'json' in __import__('sys').modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[0]) <= 6


@pytest.mark.parametrize(
    "unit",
    [
        "a", "%", "\\", '\\"', "\x1b[", "a@", "http://a:b@", "key=", 'password="', "token ", "1.1.", "1:",
        "fe80:", "/home/", "-----BEGIN PRIVATE KEY-----", "eyJ", "sk-a-", "cookie: a=bcde;", "curl -u ",
        "%25", "\\u0041",
    ],
)  # fmt: skip
@pytest.mark.timeout(20)
def test_hostile_repetition_ends(unit: str) -> None:
    # Anything quadratic takes minutes with this; what is linear takes a fraction of a second.
    text = unit * (400_000 // len(unit))
    assert Redactor(Secrets(values=("sk-abcdefghij1234567890", "x7q9"))).text(text) is not None


def test_placeholders_of_an_earlier_redaction_are_not_used_again() -> None:
    assert Redactor().text("<address-1> and 10.0.0.7") == "<address-1> and <address-2>"


@pytest.mark.timeout(20)
def test_many_different_values_take_no_longer_each() -> None:
    text = " ".join(f"<x-{n}> 10.{n >> 8}.{n & 255}.7" for n in range(40_000))
    assert Redactor().text(text).endswith("<address-40000>")


def test_what_no_file_can_hold_is_escaped_after_secrets_are_gone() -> None:
    value = "hunter2\udcff-long-secret"
    data = {"name\udcfe": ["a\udcffb", f"x {value}"], "plain": "\N{LATIN SMALL LETTER E WITH ACUTE}"}
    clean = Redactor(Secrets(values=(value,))).clean(data)
    assert clean["name\\xfe"][0] == "a\\xffb"
    assert "hunter2" not in clean["name\\xfe"][1]
    assert clean["plain"] == data["plain"]
    json.dumps(clean, ensure_ascii=False).encode()
    assert Redactor().clean(["\ud800"]) == ["\\ud800"]
