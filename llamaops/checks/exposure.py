"""Whether everything about who may reach a server was decided, and whether the decisions agree."""

from __future__ import annotations

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.facts.exposure import ExposureFacts, Switch

LOOPBACK = ("127.", "::1", "localhost")
SHORTEST_KEY_BYTES = 20
IN_FILE = "write it into the decisions file"


def _missing(what: str) -> Verdict:
    return Verdict(
        holds=False, summary=f"nothing was decided about {what}", expected="a decision", observed="none"
    )


def _decided(holds: bool, summary: str, expected: str) -> Verdict:
    return Verdict(holds=holds, summary=summary, expected=expected, observed=summary)


def _is_loopback(address: str) -> bool:
    return address.startswith(LOOPBACK)


@check(
    "exposure.bind-is-decided", title="Where the server listens was decided", boundary=None, remedy=IN_FILE
)
def bind_is_decided(exposure: ExposureFacts) -> Verdict:
    """Ask for an address, and for loopback where a proxy stands in front."""
    bind, tls = exposure.decisions.bind, exposure.decisions.tls
    if bind is None:
        return _missing("the address to listen on")
    where = f"{bind.address}:{bind.port}"
    if tls is not None and tls.by == "proxy" and not _is_loopback(bind.address):
        return Verdict(
            holds=False,
            summary=f"the server listens on {where}, beside the proxy that stands in front of it",
            expected="a loopback address behind a proxy",
            observed=where,
            remedy="bind to 127.0.0.1 where the proxy is on the same machine; else let the server encrypt",
        )
    return _decided(0 < bind.port < 65536, where, "an address and a port from 1 to 65535")  # noqa: PLR2004


@check("exposure.key-is-decided", title="Clients need a key from a file", boundary=None, remedy=IN_FILE)
def key_is_decided(exposure: ExposureFacts) -> Verdict:
    """Ask for a key file."""
    key = exposure.decisions.api_key
    return (
        _missing("an API key")
        if key is None
        else _decided(holds=True, summary=f"a key from {key.file}", expected="a key file")
    )


@check(
    "exposure.key-file-is-private",
    title="The key file holds keys and only its owner reads it",
    boundary=None,
    remedy="chmod 600 the file, and put one random key of at least 20 characters on each line",
)
def key_file_is_private(exposure: ExposureFacts) -> Verdict | NotApplicable:
    """Judge the file's permissions and the length of its keys."""
    if exposure.decisions.api_key is None:
        return NotApplicable("no key file was decided")
    found = exposure.key_file.need()
    good = not found.open_to_others and found.lines > 0 and found.shortest_line_bytes >= SHORTEST_KEY_BYTES
    return _decided(
        good,
        f"mode {found.mode}, {found.lines} keys, the shortest of {found.shortest_line_bytes} characters",
        f"mode 0600 or stricter, and keys of at least {SHORTEST_KEY_BYTES} characters",
    )


@check("exposure.tls-is-decided", title="Who encrypts was decided", boundary=None, remedy=IN_FILE)
def tls_is_decided(exposure: ExposureFacts) -> Verdict:
    """Ask for TLS with its files, or for the reason why not."""
    tls = exposure.decisions.tls
    if tls is None:
        return _missing("TLS")
    if tls.by == "none":
        return _decided(
            bool(tls.why), f"nobody encrypts: {tls.why or 'no reason given'}", "TLS, or the reason why not"
        )
    lacking = [name for name in ("certificate", "private_key", "server_name") if getattr(tls, name) is None]
    if tls.by == "server":
        lacking = [name for name in lacking if name != "server_name"]
    said = f"the {tls.by} encrypts" + (f", but {', '.join(lacking)} is not named" if lacking else "")
    return _decided(not lacking, said, "the certificate, its private key and the server's name")


@check(
    "exposure.private-key-is-private",
    title="Only its owner reads the certificate's private key",
    boundary=None,
    remedy="chmod 600 the private key",
)
def private_key_is_private(exposure: ExposureFacts) -> Verdict | NotApplicable:
    """Judge the permissions of the private key."""
    if exposure.decisions.tls is None or exposure.decisions.tls.private_key is None:
        return NotApplicable("no private key is named")
    found = exposure.private_key.need()
    return _decided(not found.open_to_others, f"mode {found.mode}", "nobody but its owner")


@check(
    "exposure.firewall-is-decided",
    title="Which machines reach the port was decided",
    boundary=None,
    remedy=IN_FILE,
)
def firewall_is_decided(exposure: ExposureFacts) -> Verdict:
    """Ask for the firewall's rule."""
    rule = exposure.decisions.firewall
    return (
        _missing("the firewall")
        if rule is None
        else _decided(holds=True, summary=rule.rule, expected="a rule")
    )


@check("exposure.cors-is-decided", title="Which web pages may ask was decided", boundary=None, remedy=IN_FILE)
def cors_is_decided(exposure: ExposureFacts) -> Verdict:
    """Ask for a list of origins; llama-server's own default lets any page ask."""
    cors = exposure.decisions.cors
    if cors is None:
        return _missing("CORS, and llama-server's default is any origin")
    if "*" in cors.origins:
        return _decided(
            bool(cors.why), f"any origin: {cors.why or 'no reason given'}", "a list, or the reason why not"
        )
    return _decided(holds=True, summary=", ".join(cors.origins) or "no origin", expected="a list of origins")


@check(
    "exposure.rate-limit-is-decided",
    title="How often a client may ask was decided",
    boundary=None,
    remedy=IN_FILE,
)
def rate_limit_is_decided(exposure: ExposureFacts) -> Verdict:
    """Ask for a limit at the proxy, or for the reason why not."""
    limit, tls = exposure.decisions.rate_limit, exposure.decisions.tls
    if limit is None:
        return _missing("a rate limit")
    if limit.by == "none":
        return _decided(
            bool(limit.why), f"no limit: {limit.why or 'no reason given'}", "a limit, or the reason why not"
        )
    said = f"{limit.requests_per_minute} a minute, {limit.burst} at once, by the proxy"
    there = tls is not None and tls.by == "proxy"
    good = there and limit.requests_per_minute > 0 and limit.burst >= 0
    return _decided(
        good, said if there else f"{said}, but there is no proxy", "a limit that something enforces"
    )


@check("exposure.logging-is-decided", title="What is written down was decided", boundary=None, remedy=IN_FILE)
def logging_is_decided(exposure: ExposureFacts) -> Verdict:
    """Ask for how long logs are kept and whether prompts are in them."""
    logging = exposure.decisions.logging
    if logging is None:
        return _missing("logs")
    if logging.prompts and not logging.why:
        return _decided(
            holds=False,
            summary="prompts are logged: no reason given",
            expected="no prompts in logs, or the reason why",
        )
    kept = f"kept {logging.keep_days} days, {'with' if logging.prompts else 'without'} prompts"
    return _decided(logging.keep_days >= 0, kept, "how long logs are kept")


@check(
    "exposure.tools-are-decided",
    title="Whether clients reach the built-in tools was decided",
    boundary=None,
    remedy=IN_FILE,
)
def tools_are_decided(exposure: ExposureFacts) -> Verdict:
    """Refuse built-in tools beyond this machine: they read files and run commands."""
    tools, bind = exposure.decisions.tools, exposure.decisions.bind
    if tools is not None and tools.open and bind is not None and not _is_loopback(bind.address):
        return Verdict(
            holds=False,
            summary=f"built-in tools would be reached on {bind.address}",
            expected="no tools beyond this machine",
            observed="open",
            remedy="leave --tools out: they read files and run commands as the server's user",
        )
    return _switch(tools, "built-in tools")


@check(
    "exposure.metrics-are-decided",
    title="Whether clients reach /metrics was decided",
    boundary=None,
    remedy=IN_FILE,
)
def metrics_are_decided(exposure: ExposureFacts) -> Verdict:
    """Ask about /metrics."""
    return _switch(exposure.decisions.metrics, "/metrics")


@check(
    "exposure.slots-are-decided",
    title="Whether clients reach /slots was decided",
    boundary=None,
    remedy=IN_FILE,
)
def slots_are_decided(exposure: ExposureFacts) -> Verdict:
    """Ask about /slots, which shows other people's prompts on some builds."""
    return _switch(exposure.decisions.slots, "/slots")


def _switch(switch: Switch | None, what: str) -> Verdict:
    if switch is None:
        return _missing(what)
    if not switch.open:
        return _decided(holds=True, summary=f"{what}: closed", expected="closed, or the reason why not")
    return _decided(
        bool(switch.why), f"{what}: open: {switch.why or 'no reason given'}", "closed, or the reason why not"
    )
