"""`llamaops fit MODEL`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from llamaops.cli import options

if TYPE_CHECKING:
    from llamaops.operations.session import Session
    from llamaops.system.machine import Machine

SETTINGS = (
    "bin_dir", "ctx_size", "parallel", "kv_unified", "cache_type_k", "cache_type_v", "batch_size",
    "ubatch_size", "flash_attn", "n_gpu_layers",
)  # fmt: skip


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "fit",
        help="work out what a model will take in memory, before it is loaded",
        description="Work out from a model's header what a load will take: weights, caches, recurrent state, "
        "compute and output buffers, each with its formula, and whether that fits. Nothing is loaded.",
        allow_abbrev=False,
    )
    parser.add_argument("model", metavar="MODEL", help="GGUF file; any shard of a split model, or `embedded`")
    options.add_settings(parser, SETTINGS)
    group = parser.add_argument_group("estimate")
    group.add_argument("--n-cpu-moe", metavar="N", help="experts of the first N blocks stay on the host")
    group.add_argument("--cpu-moe", action="store_true", help="all experts stay on the host")
    group.add_argument("--no-kv-offload", action="store_true", help="caches stay on the host")
    group.add_argument("--swa-full", action="store_true", help="windowed layers get a full cache")
    group.add_argument("--mmproj", metavar="FILE", help="multimodal projector that is loaded with the model")
    group.add_argument("--embeddings", action="store_true", help="a server for embeddings")
    group.add_argument(
        "--front-end",
        choices=("server", "completion", "bench"),
        default="server",
        help="the program that loads it; others than the server reserve results for a whole batch",
    )
    group.add_argument(
        "--ask-engine", action="store_true", help="let the installed engine project it too, and show both"
    )
    group.add_argument("--plot", metavar="FILE.svg", help="draw memory by part against context")
    options.add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Work out the memory of a model."""
    import msgspec

    from llamaops.cli.session import perform, resolve
    from llamaops.errors import UsageError
    from llamaops.estimate.resolve import EVERY_LAYER
    from llamaops.launch.settings import plain_number, validate
    from llamaops.operations.choose import NO_PROGRAM_HINT, choose_model, choose_program
    from llamaops.operations.fit import FitRequest, fit
    from llamaops.operations.launching import engine_settings

    _only_local(args)
    picture = _picture(args.plot)
    settings, facts = resolve(args, ("model", *SETTINGS))
    layers = 0 if args.n_cpu_moe is None else plain_number("--n-cpu-moe", args.n_cpu_moe, low=0, high=100_000)

    def operation(session: Session, machine: Machine) -> str:
        choice = choose_model(settings, machine)
        path = choice.path if choice else args.model
        engine = None
        if args.ask_engine:
            # What the server does not do, llama-fit-params does: it reserves results for a whole batch.
            names = ["llama-server", "llama-fit-params"]
            names = names if args.front_end == "server" else names[::-1]
            program = next((one for name in names if (one := choose_program(name, settings, machine))), None)
            if program is None:
                raise UsageError("--ask-engine: no llama-server was found", hint=NO_PROGRAM_HINT)
            engine = program.path
        wanted = msgspec.structs.replace(engine_settings(settings, path, 0), embeddings=args.embeddings)
        request = FitRequest(
            model_path=path,
            settings=validate(wanted),
            front_end=args.front_end,
            cpu_moe_layers=EVERY_LAYER if args.cpu_moe else layers,
            offloads_cache=not args.no_kv_offload,
            full_window_cache=args.swa_full,
            mmproj=args.mmproj,
            engine=engine,
            picture=picture,
        )
        return fit(session, machine, request)

    return perform(args, settings, facts, operation)


def _only_local(args: argparse.Namespace) -> None:
    """Refuse what is no file of this machine.

    Raises: UsageError.
    """
    from llamaops.errors import UsageError

    for flag, name in (("MODEL", args.model), ("--mmproj", args.mmproj)):
        if name and (name.startswith("hf:") or "://" in name):
            raise UsageError(
                f"{flag} {name}: only a file on this machine can be worked out",
                hint="download it first (`llamaops fetch hf:OWNER/NAME/FILE@REVISION`); `llamaops inspect` "
                "reads the header of a remote file",
            )


def _picture(path: str | None) -> str | None:
    """Return the file to draw into; a name of another kind could be the model's own.

    Raises: UsageError.
    """
    import os

    from llamaops.errors import UsageError

    if path is not None and not path.lower().endswith(".svg"):
        raise UsageError(f"--plot {path}: the picture is an SVG", hint="name a file that ends in .svg")
    return None if path is None else os.path.expanduser(path)  # noqa: PTH111 - strings throughout
