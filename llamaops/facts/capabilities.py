"""What a program accepts, read from its own help text.

Three families of help text exist. `common` is printed by llama.cpp's shared argument parser (since
September 2024): options at column 0, help at column 40 exactly. `indented` is everything else:
llama-bench, llama-quantize, llama-gguf-split, the RPC server, and every program before that date.

The text is a claim: it lists options that are rejected at run time. `removed` marks those it admits to;
for the rest `binaries.confirm_flags` asks the program itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from llamaops.errors import ParseError
from llamaops.schema.shape import Shape

HELP_COLUMN = 40
"""Where the shared parser starts help text; the three columns before it are blank when it does."""

MAX_INDENT = 12
"""Deepest indentation at which an old help text starts an option; deeper lines continue one."""

Grammar = Literal["common", "indented"]


class Option(Shape, frozen=True, kw_only=True, omit_defaults=True):
    """One option as the help text shows it."""

    aliases: tuple[str, ...]
    """Spellings, in the order of the help text."""
    negated: tuple[str, ...] = ()
    """Spellings that switch it off, such as --no-warmup."""
    value_hints: tuple[str, ...] = ()
    """One hint for each value it takes; none for a switch."""
    help: str = ""
    """The help text on one line; where many programs are listed, only of removed or deprecated options."""
    allowed_values: tuple[str, ...] = ()
    """The values it names, where it names them."""
    default: str | None = None
    """The default as displayed, up to the first comma; text, never a typed value: some are wrong."""
    default_note: str | None = None
    """The whole of what is said about the default, where that is more."""
    env: str | None = None
    """The environment variable that sets it."""
    section: str | None = None
    """Heading it stands under."""
    removed: bool = False
    """Whether the text says that it is kept only to be refused."""
    deprecated: bool = False
    """Whether the text says that it still works but should not be used."""

    @property
    def spellings(self) -> tuple[str, ...]:
        """Return every spelling, positive ones first."""
        return self.aliases + self.negated


class Capabilities(Shape, frozen=True, kw_only=True):
    """The options of one program."""

    grammar: Grammar
    """Which family of help text it was read from."""
    options: tuple[Option, ...]
    """In the order of the help text."""

    def find(self, flag: str) -> Option | None:
        """Return the option with this spelling; underscores in a long name count as dashes."""
        wanted = fold(flag)
        return next((option for option in self.options if wanted in option.spellings), None)

    def has(self, flag: str) -> bool:
        """Say whether the option is listed and not marked as removed."""
        option = self.find(flag)
        return option is not None and not option.removed

    def takes_value(self, flag: str) -> bool | None:
        """Say whether a value follows; None when the option is not listed or the text does not say.

        Indented help texts leave the hint out for some options that do take a value.
        """
        option = self.find(flag)
        if option is None:
            return None
        if fold(flag) in option.negated:
            return False
        if option.value_hints:
            return True
        return False if self.grammar == "common" else None

    def nearest(self, flag: str) -> str | None:
        """Return the spelling closest to one that this program lacks, for an error message."""
        import difflib

        names = [name for option in self.options if not option.removed for name in option.spellings]
        replacement = self.find(flag)
        if replacement is not None and replacement.removed:
            advised = re.findall(r"(?<!\S)--[a-z][\w-]*", replacement.help)
            return next((name for name in advised if name in names), None)
        found = difflib.get_close_matches(fold(flag), names, n=1, cutoff=0.6)
        return found[0] if found else None

    def without_prose(self) -> Capabilities:
        """Return the same without help texts, for a record: the raw text is kept as evidence there.

        Where a text says that an option is removed or deprecated it stays, for it names the replacement.
        """
        return msgspec.structs.replace(
            self,
            options=tuple(
                option if option.removed or option.deprecated else msgspec.structs.replace(option, help="")
                for option in self.options
            ),
        )

    def env_names(self) -> tuple[str, ...]:
        """Return the environment variables that the help text names."""
        return tuple(option.env for option in self.options if option.env)


class _Raw(msgspec.Struct):
    """An option while its lines are collected."""

    head: str
    section: str | None
    lines: list[str]


def fold(flag: str) -> str:
    """Return a long option with dashes for underscores, as llama.cpp reads it."""
    return flag.replace("_", "-") if flag.startswith("--") else flag


def parse_help(text: str) -> Capabilities:
    """Read a help text of any llama.cpp program.

    Raises: ParseError when it lists no option.
    """
    text = text.replace("\r\n", "\n").expandtabs(8)
    common = re.search(r"^-{1,2}[A-Za-z]", text, re.MULTILINE) is not None
    parse = _parse_common if common else _parse_indented
    options = tuple(parse(text))
    if not options:
        raise ParseError("the help text lists no options")
    return Capabilities(grammar="common" if common else "indented", options=options)


def _parse_common(text: str) -> Iterator[Option]:
    for raw in _collect_common(text):
        aliases, hints = _split_common_head(raw.head)
        yield _option(aliases, hints, raw)


def _collect_common(text: str) -> Iterator[_Raw]:
    """Group the lines of the shared parser's help text by option."""
    section: str | None = None
    current: _Raw | None = None
    for line in text.split("\n"):
        heading = re.match(r"-----\s*(.+?)\s*-----\s*$", line)
        if heading:
            section = heading[1]
        elif re.match(r"--?[^\s-]", line):
            if current:
                yield current
            current = _start_common(line, section)
            continue
        elif current and line.startswith(" " * HELP_COLUMN):
            current.lines.append(line[HELP_COLUMN:].rstrip())
            continue
        # A heading, a blank line or a trailer ends the option.
        if current:
            yield current
        current = None
    if current:
        yield current


def _start_common(line: str, section: str | None) -> _Raw:
    gap = line[HELP_COLUMN - 3 : HELP_COLUMN]
    if len(line) > HELP_COLUMN and gap == "   " and line[HELP_COLUMN] != " ":
        return _Raw(line[:HELP_COLUMN].rstrip(), section, [line[HELP_COLUMN:].rstrip()])
    return _Raw(line.rstrip(), section, [])


def _split_common_head(head: str) -> tuple[list[str], list[str]]:
    """Split `-c,    --ctx-size N` into its spellings and its value hints."""
    aliases = []
    rest = head
    while match := re.match(r"(-[^\s,]+)(,\s*|\s+|$)", rest):
        aliases.append(match[1])
        rest = rest[match.end() :]
        if not match[2].startswith(","):
            break
    return aliases, _words(rest)


def _words(text: str) -> list[str]:
    """Split at spaces that are not inside brackets: `<a b>=<c>,...` is one word."""
    words: list[str] = []
    depth = 0
    word = ""
    for character in text:
        depth += (character in "<[{(") - (character in ">]})" and depth > 0)
        if character == " " and depth == 0:
            if word:
                words.append(word)
            word = ""
        else:
            word += character
    return [*words, word] if word else words


def _parse_indented(text: str) -> Iterator[Option]:
    section: str | None = None
    current: _Raw | None = None
    indent = 0
    for line in text.split("\n"):
        depth = len(line) - len(line.lstrip(" "))
        if 0 < depth <= MAX_INDENT and re.match(r"--?[A-Za-z?]", line[depth:]):
            if current:
                yield _indented_option(current)
            current, indent = _Raw(line.strip(), section, []), depth
        elif current and depth > indent:
            current.lines.append(line.strip())
        elif line.strip():
            # Text at the left edge ends the list; a heading starts the next one.
            if current:
                yield _indented_option(current)
            current = None
            heading = re.match(r"([A-Za-z][\w /-]*):\s*$", line)
            section = heading[1] if heading else section
    if current:
        yield _indented_option(current)


def _indented_option(raw: _Raw) -> Option:
    head, help_text = _split_indented(raw.head)
    aliases, hints, rest = _read_indented_head(head, complete=bool(help_text))
    said = " ".join(part for part in (rest, help_text) if part)
    return _option(aliases, hints, _Raw(raw.head, raw.section, [said, *raw.lines] if said else raw.lines))


def _split_indented(line: str) -> tuple[str, str]:
    """Split at the first wide gap that does not follow a comma, else at a colon after the head."""
    gap = re.search(r"(?<![,\s])\s{2,}(?=[^\s])", line)
    if gap and not re.match(r"--?[A-Za-z]", line[gap.end() :]):
        return line[: gap.start()], line[gap.end() :]
    colon = re.match(r"(-[^:]*?):\s+(.+)$", line)
    if colon and len(colon[1].split()) <= 3:  # noqa: PLR2004 - two spellings and a hint
        return colon[1], colon[2]
    return line, ""


def _read_indented_head(head: str, *, complete: bool) -> tuple[list[str], list[str], str]:
    """Read spellings and hints; return also what turned out to be help text.

    `complete` says that the help text was already cut off, so that every other word is a hint.
    """
    aliases: list[str] = []
    hints: list[str] = []
    words = _words(head)
    for place, word in enumerate(words):
        bare = word.rstrip(",")
        if re.fullmatch(r"--?[A-Za-z?][\w?-]*", bare):
            aliases += [bare] if bare not in aliases else []
            hints.clear()  # the same hint is repeated after each spelling
            continue
        last_alone = place == len(words) - 1 and not hints
        is_hint = not word.startswith("(") and (complete or last_alone or _looks_like_hint(bare))
        if not is_hint:
            return aliases, hints, " ".join(words[place:])
        hints.append(bare)
    return aliases, hints, ""


def _looks_like_hint(word: str) -> bool:
    return word[0] in "<[{" or word == word.upper()


def _option(aliases: list[str], hints: list[str], raw: _Raw) -> Option:
    positive, negated = _split_negated(aliases)
    said = " ".join(line for line in raw.lines if line)
    env = re.search(r"\(env: ([A-Za-z_][A-Za-z0-9_]*)\)", said)
    help_text = re.sub(r"\s*\(env: [A-Za-z_][A-Za-z0-9_]*\)", "", said)
    note = _default_note(help_text)
    default = None if note is None else _default_value(note)
    return Option(
        aliases=tuple(positive),
        negated=tuple(negated),
        value_hints=tuple(hints),
        help=help_text,
        allowed_values=_allowed_values(hints, raw.lines, help_text),
        default=default,
        default_note=note if note != default else None,
        env=env[1] if env else None,
        section=raw.section,
        removed="argument has been removed" in said,
        deprecated="DEPRECATED" in said,
    )


def _split_negated(aliases: list[str]) -> tuple[list[str], list[str]]:
    """Separate the spellings that switch an option off: they come last, and one of them is --no-*."""
    first = len(aliases)
    while first > 1 and re.match(r"--no-|-n[a-z]", aliases[first - 1]):
        first -= 1
    negated = aliases[first:]
    if not any(name.startswith("--no-") for name in negated):
        return aliases, []
    return aliases[:first], negated


def _default_note(said: str) -> str | None:
    """Return what follows `default:`, up to the end of its parenthesis, or of the sentence."""
    found = re.search(r"\bdefaults?:\s*", said)
    if not found:
        return None
    depth = 0
    for place in range(found.end(), len(said)):
        depth += (said[place] == "(") - (said[place] == ")")
        if depth < 0:
            return said[found.end() : place].strip()
    return said[found.end() :].strip() or None


def _default_value(note: str) -> str:
    quoted = re.match(r"'([^']*)'", note)
    return quoted[1] if quoted else re.split(r"[,;]\s", note)[0]


def _allowed_values(hints: list[str], lines: list[str], said: str) -> tuple[str, ...]:
    listed = re.search(r"allowed values: (.+?)(?: \(|$)", said)
    if listed:
        return tuple(value.strip() for value in listed[1].split(",") if value.strip())
    hint = hints[0] if len(hints) == 1 else ""
    # `<a,b>` shows a form (`<pp,tg>`, `<dev1,dev2,..>`), `<a|b>`, `[a|b]` and `{a,b}` show a choice.
    choice = r"<[^<>,]*\|[^<>,]*>|\[[^\[\],]*\|[^\[\],]*\]|\{[^{}]*,[^{}]*\}"
    if re.fullmatch(choice, hint) and ".." not in hint:
        return tuple(value.strip() for value in re.split(r"[|,]", hint[1:-1]))
    if re.fullmatch(r"[a-z0-9][\w+-]*(,[a-z0-9][\w+-]*)+", hint):
        return tuple(hint.split(","))
    if re.fullmatch(r"[A-Z_]+", hint) and hint not in {"N", "M"}:
        bullets = [re.match(r"- ([\w.+-]+)(?::|\s|$)", line) for line in lines]
        return tuple(bullet[1] for bullet in bullets if bullet)
    return ()
