import base64
import json
import random
import re
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamaops.record.redact import Redactor
from llamaops.record.secrets import Secrets
from tests.fakes.redaction_encodings import CUTS, ENCODINGS, cut, encode

VALUE = "q7$k'W\\d\"é%41z&amp;"


def clean(text: str, *values: str) -> str:
    return Redactor(Secrets(values=values)).text(text)


@pytest.mark.parametrize("value", ["x7q", "abc", "hunter2", VALUE, "two words", "käse"])
@pytest.mark.parametrize("text", ["{}", "a{}b", "entry {} seen", '{{"x": "{}"}}', "/tmp/{}.bin"])
def test_a_given_value_goes_glued_and_alone(value: str, text: str) -> None:
    assert value not in clean(text.format(value), value)


@pytest.mark.parametrize("value", ["x7q", "hunter2!", VALUE, "k" * 40 + "1"])
@pytest.mark.parametrize("around", ["", "a", "ab", "user:"])
def test_base64_goes_at_every_alignment(value: str, around: str) -> None:
    for coder in (base64.b64encode, base64.urlsafe_b64encode):
        form = coder(f"{around}{value}tail".encode()).decode()
        cut_lines = ["\n".join([form[:7], form[7:]])] if len(value) >= 8 else []
        for text in (form, form.rstrip("="), f"/slots/{form}.bin", *cut_lines):
            found = clean(f"note {text} end", value)
            assert found.startswith("note ")
            assert form.rstrip("=")[8:-8] == "" or form.rstrip("=")[8:-8] not in found
            assert found != f"note {text} end"


@pytest.mark.parametrize(
    "form",
    [
        quote(VALUE, safe=""),
        re.sub("%..", lambda m: m[0].lower(), quote(VALUE, safe="")),
        quote(quote(VALUE, safe="")),
        json.dumps(VALUE)[1:-1],
        json.dumps(json.dumps(VALUE))[3:-3],
        repr(VALUE)[1:-1],
        VALUE.replace("'", "'\"'\"'"),
        VALUE.replace("%", "%%"),
        VALUE.replace("$", "$$"),
        VALUE.encode().hex(),
        base64.b64encode(base64.b64encode(VALUE.encode())).decode(),
        base64.b64encode(quote(json.dumps(VALUE)).encode()).decode(),
    ],
)
def test_an_encoded_form_goes(form: str) -> None:
    assert form not in clean(f"entry {form} seen", VALUE)


def test_lines_of_a_value_go_one_by_one() -> None:
    from llamaops.record.secrets import collect_secrets

    found = collect_secrets({"LLAMAOPS_TEST_SECRET_0": "first-line\nsecond\nthi"}, host="h0")
    assert Redactor(found).text("x second y\nfirst-line thi") == "x <secret-1> y\n<secret-2> <secret-3>"


def test_a_value_cut_by_the_next_log_line_leaves_the_line() -> None:
    text = "0.01.111.111 I srv  f: entry hunter\n0.01.111.222 W srv  g: 2-and-more seen"
    assert clean(text, "hunter2-and-more") == (
        "0.01.111.111 I srv  f: entry <secret-1>\n0.01.111.222 W srv  g: <secret-1> seen"
    )


def test_the_beginning_of_a_value_at_the_end_of_what_was_kept_goes() -> None:
    assert clean("the key is abcdefgh1234", "abcdefgh12345678") == "the key is <secret-1>"


def test_a_short_value_is_not_seen_across_words_or_lines() -> None:
    for text in ("a b c", "xa\nbcx", 'a"b"c', "a$b%c", "YW Jj"):
        assert clean(text, "abc") == text


def test_a_value_that_means_something_to_patterns_is_taken_as_it_is() -> None:
    assert clean("a.*b axxb", ".*b") == "a<secret-1> axxb"
    assert clean("$& \\1", "$& \\1") == "<secret-1>"


@settings(max_examples=150, deadline=None)
@given(
    value=st.text("abcXYZ019!#%/+$'\"\\ é&;=", min_size=3, max_size=40).filter(
        lambda v: len(v.strip()) == len(v)
    ),
    names=st.lists(st.sampled_from(sorted(ENCODINGS)), max_size=3),
    how=st.sampled_from(("none", *CUTS)),
    seed=st.integers(0, 10**6),
)
def test_no_given_value_survives(value: str, names: list[str], how: str, seed: int) -> None:
    r = random.Random(seed)
    form = encode(r, value, names)
    text = f"entry {form} seen" if how == "none" else cut(r, "entry ", form, " seen", how)[0]
    redactor = Redactor(Secrets(values=(value,)))
    found = redactor.text(text)
    assert value not in found
    if len(value) >= 8 and value.isascii() and value.isalnum():
        assert found != text
    assert redactor.text(found) == found


def test_a_ruler_after_encoded_text_stays() -> None:
    form = base64.b64encode(b"user:hunter2-x").decode().rstrip("=")
    assert clean(f"{form}\n===== next", "hunter2-x") == "<secret-1>\n===== next"
    assert clean(f"note {form}= end", "hunter2-x") == "note <secret-1> end"
