"""`llamaops inspect MODEL`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from llamaops.cli import options

if TYPE_CHECKING:
    from llamaops.operations.inspect_model import InspectRequest
    from llamaops.operations.session import Session
    from llamaops.operations.settings import Settings
    from llamaops.system.machine import Machine


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "inspect",
        help="read a model file's header and check that the file is whole",
        description="Read the GGUF header of a model, any shard of it, and check that every byte is there. "
        "Read-only; the tensor data is not read unless an option asks for it.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="GGUF file, any shard of a split model, `embedded`, https://... or hf:OWNER/NAME/FILE@REVISION",
    )
    options.add_common(parser)
    group = parser.add_argument_group("what else to look at")
    group.add_argument(
        "--mmproj", metavar="FILE", action="append", default=[], help="projector that has to fit"
    )
    group.add_argument("--lora", metavar="FILE", action="append", default=[], help="adapter that has to fit")
    group.add_argument("--draft", metavar="FILE", action="append", default=[], help="draft that has to fit")
    group.add_argument("--template", action="store_true", help="compile the chat template and render with it")
    group.add_argument(
        "--chat-template-file",
        metavar="FILE",
        action="append",
        default=[],
        help="a template that is to be used in place of the model's own",
    )
    group.add_argument("--full", action="store_true", help="--template and --sha256")
    group.add_argument("--sha256", action="store_true", help="compute the digest of every file of the model")
    group.add_argument(
        "--expect-sha256",
        metavar="HEX",
        action="append",
        default=[],
        help="digest that the file must have; one for each part, in order, for all parts of a model",
    )
    group.add_argument(
        "--deep", action="store_true", help="read all tensor data and look for NaN (needs gguf)"
    )
    group.add_argument("--binary", metavar="FILE", help="program whose build has to know the model")
    options.add_settings(parser, ("bin_dir", "ctx_size"))
    parser.set_defaults(quiet=True)


def run(args: argparse.Namespace) -> int:
    """Inspect a model."""
    from llamaops.cli.session import perform, resolve
    from llamaops.operations.inspect_model import inspect_model
    from llamaops.system.machine import Machine

    expected = tuple(_digest(text) for text in args.expect_sha256)
    if args.deep:
        _need_gguf()
    if args.model.startswith(("hf:", "http://", "https://")):
        _only_the_header(args)
    settings, facts = resolve(args, ("model", "bin_dir", "ctx_size"))
    if args.bin_dir is None:
        settings.bin_dir = None  # only asked for here: an inspection is of a file

    with Machine() as machine:
        request = _request(args, settings, machine, expected)  # before there is a record: it may be refused

    def operation(session: Session, machine: Machine) -> None:
        inspect_model(session, machine, request)

    return perform(args, settings, facts, operation)


def _request(
    args: argparse.Namespace, settings: Settings, machine: Machine, expected: tuple[str, ...]
) -> InspectRequest:
    """Put together what to look at.

    Raises: UsageError for a program that is not there.
    """
    import os

    from llamaops.cli.progress import meter
    from llamaops.operations.choose import choose_model
    from llamaops.operations.inspect_model import InspectRequest

    remote = args.model.startswith(("hf:", "http://", "https://"))
    choice = None if remote else choose_model(settings, machine)
    named = {"mmproj": args.mmproj, "lora": args.lora, "draft": args.draft}
    return InspectRequest(
        path=choice.path if choice else args.model,
        companions={use: [os.path.expanduser(path) for path in paths] for use, paths in named.items()},  # type: ignore[misc]  # noqa: PTH111 - the keys are those of Use
        ctx_size=settings.ctx_size,
        sha256=args.sha256 or args.full,
        expect_sha256=expected,
        deep=args.deep,
        meter=meter,
        template=args.template or args.full,
        template_files=tuple(os.path.expanduser(path) for path in args.chat_template_file),  # noqa: PTH111
        program=_program(args, settings, machine),
    )


def _need_gguf() -> None:
    import importlib.util

    from llamaops.errors import UsageError

    if importlib.util.find_spec("gguf") is None or importlib.util.find_spec("numpy") is None:
        raise UsageError("--deep needs the gguf package", hint="pip install 'llamaops[deep]'")


def _only_the_header(args: argparse.Namespace) -> None:
    """Refuse what a remote file cannot be asked for.

    Raises: UsageError.
    """
    from llamaops.errors import UsageError

    if args.model.startswith("hf:"):
        from llamaops.facts.hub_reference import parse_reference

        parse_reference(args.model)
    else:
        _checked_address(args.model)
    more = (
        "sha256",
        "full",
        "deep",
        "template",
        "mmproj",
        "lora",
        "draft",
        "chat_template_file",
        "expect_sha256",
    )
    given = [name for name in more if getattr(args, name)]
    if given:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise UsageError(f"{flags}: of a remote file only the header is read", hint="download it first")


def _checked_address(address: str) -> None:
    from urllib.parse import urlsplit

    from llamaops.errors import UsageError

    try:
        parts = urlsplit(address)
        good = bool(parts.hostname) and parts.username is None and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good or not address.isascii() or not address.isprintable() or " " in address:
        raise UsageError("the address cannot be asked for", hint="write it as https://HOST/PATH/FILE.gguf")


def _digest(text: str) -> str:
    from llamaops.errors import UsageError
    from llamaops.facts.hub_place import is_sha256

    digest = text.strip().lower().removeprefix("sha256:")
    if not is_sha256(digest):
        raise UsageError(
            f"--expect-sha256 {text}: not 64 hex digits", hint="give a SHA-256 as sha256sum prints it"
        )
    return digest


def _program(args: argparse.Namespace, settings: Settings, machine: Machine) -> str | None:
    from llamaops.errors import UsageError
    from llamaops.operations.choose import NO_PROGRAM_HINT, choose_program

    if args.binary is not None:
        if not machine.access(args.binary, 0):
            raise UsageError(f"--binary {args.binary}: there is no such file", hint=NO_PROGRAM_HINT)
        return str(args.binary)
    if settings.bin_dir is None:
        return None
    for role in ("llama-server", "llama-completion", "llama-cli"):
        choice = choose_program(role, settings, machine)
        if choice is not None:
            return choice.path
    raise UsageError(f"there is no llama.cpp program in {settings.bin_dir}", hint=NO_PROGRAM_HINT)
