# ruff: noqa: SIM905 - words read better one after the other
import re

import pytest

from llamaops.record import names


@pytest.mark.parametrize(
    "name",
    """LLAMA_API_KEY HF_TOKEN api_key apiKey X-Api-Key --api-key -hft --hf-token AWS_SECRET_ACCESS_KEY
    AWS_ACCESS_KEY_ID
    password PGPASSWORD db_password client_secret LLAMAOPS_TEST_SECRET_0 BOT_TOKEN OPENAI_API_KEY_2
    access_token
    client-key-data AccountKey secretAccessKey passphrase TLS_KEY""".split(),
)
def test_a_telling_name_is_strong(name: str) -> None:
    assert names.meaning(name) == names.STRONG


@pytest.mark.parametrize(
    "name",
    """bos_token eos_token_id n_tokens max_tokens token_type SSH_AUTH_SOCK XDG_SESSION_ID
    XDG_SESSION_TYPE KEYBOARD monkey
    --api-key-file --ssl-key-file key_length token_embd.weight tokenizer.ggml.bos_token_id PWD
    public_key cache_key
    MAX_TOKENS passing tokenizer""".split(),
)
def test_a_name_of_something_else_is_not(name: str) -> None:
    assert names.meaning(name) == names.NOTHING


@pytest.mark.parametrize(
    ("name", "means"),
    [
        ("token", names.WEAK),
        ("key", names.WEAK),
        ("Authorization", names.AUTHORIZATION),
        ("Set-Cookie", names.COOKIE),
        ("HOSTNAME", names.HOST_NAME),
        ("USER", names.USER_NAME),
        ("gpu_uuid", names.DEVICE_ID),
    ],
)
def test_other_meanings(name: str, means: str) -> None:
    assert names.meaning(name) == means


@pytest.mark.parametrize(
    "name",
    """api_key api-key API_KEY API_KEY_2 A1B ab1C apiKey APIKey XMLHttpToken tokenizer.ggml.bos_token_id
    --hf-token __a__b 9a ab9 n\N{LATIN SMALL LETTER E WITH ACUTE}y_key \N{KELVIN SIGN}ey -._ a=b:c""".split(),
)
def test_plain_names_have_the_words_that_the_patterns_find(name: str) -> None:
    spaced = re.sub(r"([a-z0-9])([A-Z])|([A-Z])(?=[A-Z][a-z])", r"\1\3 \2", name)
    assert names.words_of(name) == [word for word in re.split(r"[^A-Za-z0-9]+", spaced.lower()) if word]
