import pytest

from llamaops.record.redact import Redactor


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("LLAMA_API_KEY=abc", "LLAMA_API_KEY=<secret-1>"),
        ("--api-key abc --port 80", "--api-key <secret-1> --port 80"),
        ("--api-key=a1,b2 -c 1", "--api-key=<secret-1> -c 1"),
        ("['x', '--api-key', 'abc']", "['x', '--api-key', '<secret-1>']"),
        ('{"password": "p w", "n": 1}', '{"password": "<secret-1>", "n": 1}'),
        ('"{\\"password\\": \\"pw1\\", \\"n\\": 1}"', '"{\\"password\\": \\"<secret-1>\\", \\"n\\": 1}"'),
        ("db_password: hunter2", "db_password: <secret-1>"),
        ("?x=1&api_key=abc&y=2", "?x=1&api_key=<secret-1>&y=2"),
        ("Authorization: Bearer abc", "Authorization: Bearer <secret-1>"),
        ("authorization: abc123", "authorization: <secret-1>"),
        ("{'Authorization': 'Basic dTpw'}", "{'Authorization': 'Basic <secret-1>'}"),
        ("X-Api-Key: abc", "X-Api-Key: <secret-1>"),
        ("Cookie: a=secretvalue; b=othervalue", "Cookie: a=<secret-1>; b=<secret-2>"),
        ("- name: API_KEY\n  value: abc", "- name: API_KEY\n  value: <secret-1>"),
        ("<password>abc</password>", "<password><secret-1></password>"),
        ("curl -u bob:pw http://127.0.0.1/", "curl -u bob:<secret-1> http://127.0.0.1/"),
        ("sshpass -p abc ssh x", "sshpass -p <secret-1> ssh x"),
        ("machine h.example login bob password abc", "machine h.example login <user-1> password <secret-1>"),
        ("token 0a1B2c3D4e5F6g7H8i9J expired", "token 0a1B2c3D4e5F6g7H8i9J expired"),
        ("retry with bearer 0a1B2c3D4e5F6g7H8i9J", "retry with bearer <secret-1>"),
        ("password='\"'\"'a b'\"'\"' x", "password='\"'\"'<secret-1>'\"'\"' x"),
    ],
)
def test_what_stands_at_a_telling_place_goes(text: str, result: str) -> None:
    assert Redactor().text(text) == result


@pytest.mark.parametrize(
    "text",
    [
        "n_tokens = 5, token = 12, key = attn_k, key_length = 128",
        '"api_key": null, "token_type": "bearer", "password": ""',
        "--api-key KEY   API key to use (env: LLAMA_API_KEY)",
        "--api-key $LLAMA_API_KEY --hf-token ${HF_TOKEN}",
        "Authorization: Bearer ***",
        "LLAMA_API_KEY=<set> password: [redacted]",
        "--api-key-file /etc/llama/keys.txt --ssl-key-file /etc/llama/tls.key",
        "TLS_KEY=/etc/llama/tls.key",
        "can hold a secret: anything but a few words",
        "expected value for argument: --api-key\nnext line",
        "api_key=self._key, token=request.token",
        'FLAGS = {"--api-key", "--hf-token", "--password"}',
        "bos_token: '<s>', eos_token = '<|im_end|>'",
        "password is read from a file",
        "LONGEST_KEY = 65536",
    ],
)
def test_what_only_sounds_like_one_stays(text: str) -> None:
    assert Redactor().text(text) == text
