"""Secrets known by their own form: a prefix, check words around them, a length.

To add one: a line in FORMS with the literal text that has to occur (searched first, so that a form costs
nothing where it does not occur) and the pattern at that place; `(...)` marks what is secret, else all is.
Then a line in tests/unit/record/test_shapes.py.
"""

# ruff: noqa: PLR2004 - lengths of the forms that are looked for

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from llamaops.record.spans import DEVICE, SECRET, Span

_UUID = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_SLASH = r"(?:\\*/|%2[Ff])"
_WORD = r"[A-Za-z0-9_-]"
_SLACK_HOOK = (
    rf"hooks\.slack\.com{_SLASH}(?:services|workflows|triggers)"
    rf"{_SLASH}([A-Za-z0-9]+(?:{_SLASH}[A-Za-z0-9]+)+)"
)
_WEB_TOKEN = rf"eyJ{_WORD}{{10,}}\.(?:eyJ{_WORD}{{5,}}(?:\.{_WORD}*)?|{_WORD}*(?:\.{_WORD}{{16,}}){{1,3}})"

# rule, literal text, pattern that starts with it, whether a letter or digit may stand before it.
FORMS: tuple[tuple[str, str, str, bool], ...] = (
    ("hugging-face-token", "hf_", r"hf_[A-Za-z0-9]{30,}", True),
    ("hugging-face-token", "api_org_", r"api_org_[A-Za-z0-9]{30,}", True),
    ("openai-key", "sk-", rf"sk-(?:[a-z0-9]{{2,12}}-)*{_WORD}{{20,}}", False),
    ("groq-key", "gsk_", r"gsk_[A-Za-z0-9]{40,}", True),
    ("xai-key", "xai-", r"xai-[A-Za-z0-9]{40,}", True),
    ("perplexity-key", "pplx-", r"pplx-[A-Za-z0-9]{32,}", True),
    ("nvidia-key", "nvapi-", rf"nvapi-{_WORD}{{32,}}", True),
    ("replicate-token", "r8_", r"r8_[A-Za-z0-9]{30,}", False),
    ("together-key", "tgp_v1_", rf"tgp_v1_{_WORD}{{30,}}", True),
    ("github-token", "ghp_", r"ghp_[A-Za-z0-9]{30,}", True),
    ("github-token", "gho_", r"gho_[A-Za-z0-9]{30,}", True),
    ("github-token", "ghu_", r"ghu_[A-Za-z0-9]{30,}", True),
    ("github-token", "ghs_", r"ghs_[A-Za-z0-9]{30,}", True),
    ("github-token", "ghr_", r"ghr_[A-Za-z0-9]{30,}", True),
    ("github-token", "github_pat_", r"github_pat_\w{22,}", True),
    ("gitlab-token", "glpat-", rf"glpat-{_WORD}{{20,}}(?:\.[0-9a-z.]+)?", True),
    ("gitlab-token", "gldt-", rf"gldt-{_WORD}{{20,}}", True),
    ("gitlab-token", "glrt-", rf"glrt-{_WORD}{{20,}}", True),
    ("gitlab-token", "glptt-", rf"glptt-{_WORD}{{20,}}", True),
    ("gitlab-token", "glcbt-", rf"glcbt-{_WORD}{{20,}}", True),
    ("aws-key-id", "AKIA", r"AKIA[A-Z2-7]{16}(?![A-Za-z0-9])", False),
    ("aws-key-id", "ASIA", r"ASIA[A-Z2-7]{16}(?![A-Za-z0-9])", False),
    ("aws-key-id", "AROA", r"AROA[A-Z2-7]{16}(?![A-Za-z0-9])", False),
    ("bedrock-key", "ABSK", r"ABSK[A-Za-z0-9+/]{80,}={0,2}", False),
    ("slack-token", "xox", r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}", True),
    ("slack-token", "xapp-", r"xapp-\d-[A-Za-z0-9-]{20,}", True),
    ("slack-webhook", "hooks.slack.com", _SLACK_HOOK, True),
    ("discord-webhook", "/webhooks/", rf"/webhooks/(\d{{15,22}}/{_WORD}{{40,}})", True),
    ("teams-webhook", "webhook.office.com", r"webhook\.office\.com/webhookb2/([\w@/-]{30,})", True),
    ("telegram-token", ":AA", r":AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])", True),
    ("google-key", "AIza", rf"AIza{_WORD}{{35}}", False),
    ("google-token", "ya29.", rf"ya29\.{_WORD}{{20,}}", False),
    ("google-secret", "GOCSPX-", rf"GOCSPX-{_WORD}{{20,}}", True),
    ("json-web-token", "eyJ", _WEB_TOKEN, False),
    ("npm-token", "npm_", r"npm_[A-Za-z0-9]{36}", True),
    ("pypi-token", "pypi-", rf"pypi-AgE{_WORD}{{40,}}", True),
    ("docker-token", "dckr_", rf"dckr_(?:pat|oat)_{_WORD}{{20,}}", True),
    ("stripe-key", "_live_", r"_live_[A-Za-z0-9]{20,}", True),
    ("stripe-key", "_test_", r"(?<=[rsp]k)_test_[A-Za-z0-9]{20,}", True),
    ("stripe-secret", "whsec_", r"whsec_[A-Za-z0-9+/=]{24,}", True),
    ("sendgrid-key", "SG.", rf"SG\.{_WORD}{{16,}}\.{_WORD}{{16,}}", False),
    ("digitalocean-token", "_v1_", r"(?<=do[opr])_v1_[0-9a-f]{40,}", True),
    ("vault-token", "hvs.", rf"hvs\.{_WORD}{{20,}}", False),
    ("vault-token", "hvb.", rf"hvb\.{_WORD}{{20,}}", False),
    ("age-key", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-[0-9A-Za-z]{20,}", True),
    ("age-key", "AGE-PLUGIN-", r"AGE-PLUGIN-[0-9A-Za-z-]{20,}", True),
    ("linear-key", "lin_api_", r"lin_api_[A-Za-z0-9]{30,}", True),
    ("tailscale-key", "tskey-", r"tskey-[a-z]+-[A-Za-z0-9-]{16,}", True),
    ("grafana-token", "glsa_", r"glsa_\w{30,}", True),
    ("grafana-token", "glc_", r"glc_[A-Za-z0-9+/=]{32,}", True),
    ("databricks-token", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?", False),
    ("postman-key", "PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}", True),
    ("shopify-token", "shp", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}", True),
    ("mailgun-key", "key-", r"key-[0-9a-f]{32}(?![0-9A-Za-z])", False),
    ("newrelic-key", "NRAK-", r"NRAK-[A-Z0-9]{27}", True),
    ("doppler-token", "dp.", r"dp\.(?:pt|st|ct|sa)\.[\w.-]{30,}", False),
    ("flyio-token", "FlyV1 ", r"FlyV1 ([\w+/=,-]{40,})", False),
    ("atlassian-token", "ATATT3", r"ATATT3[\w=-]{40,}", True),
    ("pulumi-token", "pul-", r"pul-[0-9a-f]{40}", False),
    ("password-hash", "$2", r"\$2[abxy]?\$\d\d\$[./A-Za-z0-9]{53}", True),
    ("password-hash", "$argon2", r"\$argon2(?:id|i|d)\$[\w=,$+/.-]{20,}", True),
    ("password-hash", "$apr1$", r"\$apr1\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}", True),
    ("password-hash", "$6$", r"\$6\$(?:rounds=\d+\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{86}", True),
    ("password-hash", "$5$", r"\$5\$(?:rounds=\d+\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{43}", True),
    ("password-hash", "$y$", r"\$y\$[./A-Za-z0-9]+\$[./A-Za-z0-9]{1,86}\$[./A-Za-z0-9]{43}", True),
    ("aws-signature", "Signature=", r"(?<![A-Za-z])Signature=([0-9A-Za-z%+/=]{20,})", True),
    ("azure-signature", "sig=", r"sig=([0-9A-Za-z%+/]{30,}={0,2})", False),
    ("gpu-uuid", "GPU-", rf"GPU-{_UUID}", True),
    ("gpu-uuid", "MIG-", rf"MIG-(?:GPU-)?{_UUID}(?:/\d+/\d+)?", True),
    ("wireguard-key", "PrivateKey = ", r"PrivateKey = ([A-Za-z0-9+/]{43}=)", False),
)  # fmt: skip
_IDENTIFIERS = ("gpu-uuid",)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def boundary_before(text: str, at: int) -> bool:
    """Say whether something new begins at a place: no letter or digit before it, unless of an escape."""
    if at == 0:
        return True
    before = text[at - 1]
    if not (before.isalnum() or before == "_"):
        return True
    if at >= 2 and text[at - 2] == "\\" and before in "nrt":
        return True
    return at >= 3 and text[at - 3] == "%" and text[at - 2].isalnum()


def find_shapes(text: str) -> Iterator[Span]:
    """Yield everything that has the form of a secret."""
    for rule, literal, pattern, glued in FORMS:
        at = text.find(literal)
        while at >= 0:
            next_at = at + len(literal)
            if glued or boundary_before(text, at):
                match = _compiled(pattern).match(text, at)
                if match is not None:
                    start, end = match.span(1 if match.re.groups else 0)
                    start = _with_id(text, rule, start)
                    kind = DEVICE if rule in _IDENTIFIERS else SECRET
                    yield Span(start, end, kind, rule, text[start:end])
                    next_at = max(next_at, end)
            at = text.find(literal, next_at)
    yield from _private_keys(text)


def _with_id(text: str, rule: str, start: int) -> int:
    """Take in what belongs to the secret before its literal text."""
    if rule == "telegram-token":
        return start - (
            len(text[max(0, start - 12) : start]) - len(text[max(0, start - 12) : start].rstrip("0123456789"))
        )
    if rule == "stripe-key":
        return start - 2
    if rule == "digitalocean-token":
        return start - 3
    return start


_MOST_OF_A_KEY = 65536
_BEGIN = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_END = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_BODY = (
    r"(?:[A-Za-z0-9+/=\s,]|\\+[nrt]|"
    r"\\(?=\\*[nr])|[\"']\s{0,4}[+,]?\s{0,40}[\"']|(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset)"
    r": [^\n\\]{0,200})*"
)


def _private_keys(text: str) -> Iterator[Span]:
    """Yield private keys in PEM and its relatives, also cut off at either end."""
    at = text.find("PRIVATE KEY")
    next_end = -1
    while at >= 0:
        if next_end < at:
            next_end = text.find("-----END ", at)
            next_end = len(text) if next_end < 0 else next_end
        begin = text.rfind("-----BEGIN ", max(0, at - 60), at)
        end = at + 11
        if begin >= 0 and (match := _compiled(_BEGIN).match(text, begin)):
            closing = _compiled(_END).match(text, next_end) if next_end < end + _MOST_OF_A_KEY else None
            end = closing.end() if closing else _body_end(text, match.end())
            yield Span(begin, end, SECRET, "private-key", text[begin:end])
        elif (start := text.rfind("-----END ", max(0, at - 60), at)) >= 0 and (
            match := _compiled(_END).match(text, start)
        ):
            first = _tail_of_key(text, start)
            if first < start:
                yield Span(first, match.end(), SECRET, "private-key", text[first : match.end()])
            end = match.end()
        at = text.find("PRIVATE KEY", end)
    yield from _putty(text)


def _body_end(text: str, at: int) -> int:
    match = _compiled(_BODY).match(text, at, at + _MOST_OF_A_KEY)
    end = match.end() if match else at
    # What followed on a line of its own in ordinary words is no part of the key.
    return at + len(text[at:end].rstrip())


def _tail_of_key(text: str, end: int) -> int:
    """Return where the lines of a key begin whose beginning was cut off."""
    start = end
    limit = max(0, end - _MOST_OF_A_KEY)
    while start > limit:
        line_start = max(text.rfind("\n", limit, start - 1), text.rfind("\\n", limit, start - 1) + 1) + 1
        line = text[max(line_start, limit) : start].strip().removesuffix("\\n").strip()
        if (len(line) < 16 and start != end) or not re.fullmatch(r"[A-Za-z0-9+/=]*", line):
            break
        if line_start <= limit or line_start >= start:
            return max(line_start, limit) if line_start < start else start
        start = line_start
    return start


def _putty(text: str) -> Iterator[Span]:
    at = text.find("Private-Lines:")
    while at >= 0:
        match = _compiled(r"Private-Lines: ?\d+\s*((?:[A-Za-z0-9+/=]+(?:\s|\\n|\\r)*){1,400})").match(
            text, at
        )
        if match:
            yield Span(match.start(1), match.end(1), SECRET, "private-key", match[1])
        at = text.find("Private-Lines:", at + 14)
