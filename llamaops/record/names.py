"""Names that say what stands beside them: a secret, a host, a user, a device.

`meaning` answers for variables, arguments, headers, JSON members and configuration keys alike. To teach
it a name, add the word to one of the sets; tests/unit/record/test_names.py has the cases.
"""

# ruff: noqa: SIM905 - words read better one after the other

from __future__ import annotations

STRONG = "strong"  # whatever stands there is secret
WEAK = "weak"  # secret if it looks like one: long, of letters and digits
HOST_NAME = "host"
USER_NAME = "user"
DEVICE_ID = "device"
AUTHORIZATION = "authorization"
COOKIE = "cookie"
NOTHING = ""

# Each of these words at the end of a name makes it telling by itself.
_STRONG_ENDS = frozenset(
    """password passwd passwort passphrase passcode pwd pass secret secrets psk apikey accesskey secretkey
    privatekey authkey credential credentials apitoken accesstoken authtoken masterkey sharedkey userpwd
    presharedkey accountkey pgpassword mysqlpwd userpass sharedaccesskey requirepass masterauth
    authtok keypass storepass rediscliauth sshpass subscriptionkey encryptionkey signingkey clientsecret
    idtoken refreshtoken bearertoken sessiontoken hftoken kennwort authkeys""".split()
)
# A key of these is a secret: api_key, secret-key, ...
_KEY_OF = frozenset(
    """api access secret private auth signing encryption encrypt master account shared preshared license
    licence subscription client admin service storage deploy ssh tls ssl pgp gpg webhook app application
    root session hmac aes jwt cookie consumer rest write management bot hub functions rsa publish signature
    wireguard wg vault recovery sas openai anthropic mistral groq""".split()
)
# A token of these is a secret: access_token, hf-token, ...
_TOKEN_OF = frozenset(
    """access auth api id refresh bearer session hf hub huggingface face github gh gitlab gl slack bot user
    client     security admin oauth oauth2 csrf xsrf jwt app deploy service vault registry npm pypi ci
    job personal pat
    private secret login root discord telegram device push webhook request verification reset invite magic
    read write wandb replicate ngrok tunnel cloudflare cf tailscale influx influxdb grafana sentry docker
    digitalocean heroku fly render vercel netlify circle travis codecov sonar tf terraform kube k8s
    bootstrap join cluster consul nomad do aws azure gcp google twilio stripe model proxy upload download
    account""".split()
)
# A token of these is a piece of a text.
_TOKENS_OF_TEXT = frozenset(
    """bos eos eot eom eog pad unk sep cls mask fim n max min prompt completion total special added image
    audio     video num per cached draft stop next last first new sampled generated prefill decode
    control word
    type think thinking tool newline nl suffix prefix middle rep start end begin bpe piece add ignore out
    predicted reasoning input output vocab text parse time target""".split()
)
# A key of these is a place in a table.
_KEYS_OF_TABLES = frozenset(
    """primary foreign public cache sort partition index object group lookup hash map dict row kv json yaml
    metadata tensor attn arrow hot function home end delete return enter space shift alt ctrl control any
    unknown missing invalid duplicate n num first last next each this that the one config option general
    tokenizer param argument value host route event pub idempotency""".split()
)
# With one of these at the end the name is about a secret, and its value is none.
_ABOUT = frozenset(
    """file files path paths dir directory folder fname filename name names type types length len size count
    index ttl expiry expires expire expiration env var variable hint help policy manager store provider
    url uri endpoint prefix suffix format header headers field required enabled enable disabled optional
    set valid invalid version algorithm alg bits usage limit embd embeddings mode ref reference source
    sock socket agent board""".split()
)
_WEAK_ENDS = frozenset(
    """token key auth sig signature session sid sessionid nonce otp totp state code seed jwt pat webhook pin
    salt hash digest apikeyid keyid""".split()
)
# Those of them that need a value as long as a digest, because short ones are ordinary.
_NEVER = frozenset("state code seed hash digest nonce key_id".split())
_HOSTS = frozenset("""hostname nodename computername fqdn servername nodeid domainname""".split())
_USERS = frozenset("USER LOGNAME USERNAME SUDO_USER USERPROFILE_USER GIT_AUTHOR_NAME".split())
_DEVICES = frozenset(
    """uuid gpuuuid deviceuuid serial serialnumber serialno sn machineid bootid productserial boardserial
    systemuuid productuuid chassisserial guid hwid hardwareid""".split()
)
_COOKIES = frozenset(("cookie", "set-cookie"))
_DIRECTORIES = frozenset(("PWD", "OLDPWD", "pwd_dir"))

_SPACED = {code: " " for code in range(128) if not chr(code).isalnum()}

_MOST_REMEMBERED = 4096
_known: dict[str, str] = {}


def meaning(name: str) -> str:
    """Return what a name says of its value; the answer is remembered, since names repeat."""
    found = _known.get(name)
    if found is None:
        if len(_known) >= _MOST_REMEMBERED:
            _known.clear()
        found = _known[name] = _meaning(name)
    return found


def words_of(name: str) -> list[str]:
    """Return the words of a name in lower case: `X-Api-Key`, `apiKey` and `API_KEY` are alike."""
    lower = name.lower()
    if name.isascii() and (name == lower or (name.isupper() and not any(map(str.isdigit, name)))):
        return lower.translate(_SPACED).split()  # as most are: no word begins inside of another
    import re

    spaced = re.sub(r"([a-z0-9])([A-Z])|([A-Z])(?=[A-Z][a-z])", r"\1\3 \2", name)
    return [word for word in re.split(r"[^A-Za-z0-9]+|\s", spaced.lower()) if word]


def _meaning(name: str) -> str:
    bare = name.strip("-._")
    words = words_of(bare)
    if not words or bare in _DIRECTORIES:
        return NOTHING
    if words[-1].isdigit() and len(words) > 1:
        words = words[:-1]
    special = _special(bare, words)
    return special if special is not None else _secret(bare, words)


def _special(bare: str, words: list[str]) -> str | None:
    lower, joined = bare.lower(), "".join(words)
    if words[-1] == "authorization" or joined.endswith("authorizationheader"):
        return AUTHORIZATION
    if lower in _COOKIES:
        return COOKIE
    if joined in _HOSTS or joined.endswith("hostname"):
        return HOST_NAME
    if bare == "hft":  # llama.cpp's short form of --hf-token
        return STRONG
    if bare in _USERS:
        return USER_NAME
    if joined in _DEVICES or (words[-1] in ("uuid", "serial") and len(words) > 1):
        return DEVICE_ID
    return None


def _secret(bare: str, words: list[str]) -> str:
    last = words[-1]
    before = words[-2] if len(words) > 1 else ""
    if last == "id" and before == "key" and "access" in words:
        return STRONG
    stem = last.rstrip("0123456789")
    if stem in _STRONG_ENDS or "".join(words) in _STRONG_ENDS:
        return STRONG if stem != "pass" or len(words) > 1 else WEAK
    if stem in ("key", "keys", "token", "tokens"):
        return (_key if stem.startswith("key") else _token)(bare, before, stem)
    if last == "data" and before == "key":  # client-key-data
        return STRONG
    if last in ("x", "value") and before in _STRONG_ENDS | {"key", "token"}:
        return meaning("_".join(words[:-1]))
    if last in _ABOUT or last in _NEVER:
        return NOTHING
    if any(word in ("secret", "password", "passwd", "passphrase", "apikey") for word in words):
        return STRONG
    return WEAK if last in _WEAK_ENDS else NOTHING


def _key(bare: str, before: str, stem: str) -> str:
    if before in _KEYS_OF_TABLES:
        return NOTHING
    if before in _KEY_OF:
        return STRONG
    if stem == "keys":
        return NOTHING
    return STRONG if before and bare.isupper() else WEAK


def _token(bare: str, before: str, stem: str) -> str:
    if before in _TOKENS_OF_TEXT:
        return NOTHING
    if stem == "tokens":
        return STRONG if before in ("auth", "access", "api", "secret") else NOTHING
    return STRONG if before in _TOKEN_OF or (before and bare.isupper()) else WEAK
