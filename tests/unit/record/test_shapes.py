import re

import pytest

from llamaops.record.redact import Redactor
from llamaops.record.shapes import FORMS

A, B = "A1b2C3d4E5f6G7h8I9j0", "0123456789abcdef0123456789abcdef"
KEY = "MIIE" + A * 3

CASES = [
    "hf" + "_" + A + A,
    "sk" + "-" + A + A,
    "sk" + "-proj-" + A + "_" + A,
    "ghp" + "_" + A + A,
    "github" + "_pat_" + A + A,
    "glpat" + "-" + A,
    "AKIA" + "ABCDEFGHIJKLMNOP",
    "xoxb" + "-1234567890-" + A,
    "AIza" + (A + A)[:35],
    "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0." + A,
    "npm" + "_" + (A + A)[:36],
    "AGE" + "-SECRET-KEY-1" + A,
    "nvapi" + "-" + A + A,
    "123456789" + ":AA" + (A + A)[:33],
    "GPU" + "-12345678-1234-1234-1234-123456789abc",
    "sk" + "_live_" + A,
    "dop" + "_v1_" + B + B,
    "$2b$12$" + (A + A + A)[:53],
    "hvs" + "." + A + A,
]


@pytest.mark.parametrize("value", CASES)
def test_a_known_form_goes_wherever_it_stands(value: str) -> None:
    for text in (f"using {value} now", f'{{"x":"{value}"}}', f"/tmp/{value}/x", f"a\\n{value}\\n"):
        assert value not in Redactor().text(text)
        assert value[-12:] not in Redactor().text(text)


@pytest.mark.parametrize(
    "text",
    [
        "self_hf_tokenizer_config",
        "disk-performance-of-the-model-folder",
        "risk-free_A1b2C3d4E5f6G7h8I9j0",
        "eyJ is short",
        "AKIA_is_a_prefix",
        "blk.0.attn_k.weight",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    ],
)
def test_what_only_begins_like_one_stays(text: str) -> None:
    assert Redactor().text(text) == text


@pytest.mark.parametrize("label", ["", "RSA ", "OPENSSH ", "ENCRYPTED "])
@pytest.mark.parametrize("end_of_line", ["\n", "\\n", "\\\\n", "\r\n"])
def test_a_private_key_goes_with_all_its_lines(label: str, end_of_line: str) -> None:
    block = end_of_line.join(
        [f"-----BEGIN {label}PRIVATE KEY-----", KEY, KEY[::-1], f"-----END {label}PRIVATE KEY-----"]
    )
    assert Redactor().text(f"before {block} after") == "before <secret-1> after"


def test_a_private_key_that_was_cut_goes_too() -> None:
    begin = f"x\n-----BEGIN PRIVATE KEY-----\n{KEY}\n{KEY}"
    end = f"{KEY}\n{KEY}=\n-----END PRIVATE KEY-----\ny"
    assert KEY not in Redactor().text(begin)
    assert KEY not in Redactor().text(end)
    assert Redactor().text(end).endswith("\ny")


def test_every_form_begins_with_its_literal_text() -> None:
    for rule, literal, pattern, _glued in FORMS:
        body = re.sub(r"^(?:\(\?<[=!][^)]*\))+", "", pattern)
        assert re.sub(r"\\(.)", r"\1", body).startswith(literal[:2]), rule
