from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from llamaops.errors import ParseError
from llamaops.facts.capabilities import Capabilities, Option, parse_help

DATA = Path(__file__).parents[2] / "data" / "engines"

# The other reader ends these at the first space or behind the next option's parenthesis.
CUT_DIFFERENTLY = {"--spec-draft-device", "-mmdev", "-rea", "--kv-unified-per-slot"}


def read(name: str) -> Capabilities:
    return parse_help((DATA / f"{name}.help.stdout.txt").read_text())


@pytest.mark.parametrize(("build", "options", "spellings"), [("b10434", 248, 405), ("b11669", 258, 415)])
def test_every_option_of_a_server_is_read_as_an_independent_reader_did(
    build: str, options: int, spellings: int
) -> None:
    found = read(f"{build}/llama-server")
    expected: list[dict[str, Any]] = json.loads((DATA / build / "llama-server.flags.json").read_text())
    assert found.grammar == "common"
    assert len(found.options) == options == len(expected)
    assert sum(len(option.spellings) for option in found.options) == spellings
    for option, other in zip(found.options, expected, strict=True):
        assert list(option.spellings) == other["flags"]
        assert (" ".join(option.value_hints) or None) == other["value_hint"], option.spellings
        assert option.section == other["section"]
        assert option.env == other["env"], option.spellings
        assert option.removed == other["removed"], option.spellings
        assert option.deprecated == other["deprecated"], option.spellings
        if other["allowed_line"]:
            assert ", ".join(option.allowed_values) == other["allowed_line"]
        if other["default_text"] is None:
            assert option.default is None, option.spellings
        else:
            assert option.default is not None
            note = option.default if option.default_note is None else option.default_note
            if option.aliases[0] in CUT_DIFFERENTLY:
                assert other["default_text"].split(")")[0].startswith(option.default.split()[0])
            else:
                assert note.strip("'") == other["default_text"], option.spellings
                assert option.default == re.split(r"[,;] ", other["default_text"])[0], option.spellings


def option(name: str, flag: str) -> Option:
    found = read(name).find(flag)
    assert found is not None
    return found


def test_defaults_are_display_text_up_to_the_first_comma() -> None:
    server = "b11669/llama-server"
    assert option(server, "--ctx-size").default == "0"
    assert option(server, "--ctx-size").default_note == "0, 0 = loaded from model"
    assert option(server, "-fa").default == "auto"
    assert option(server, "--threads-batch").default == "same as --threads"
    assert option(server, "--port").default == "9931"
    assert option("b10434/llama-server", "--port").default == "8080"


def test_allowed_values_in_every_spelling() -> None:
    server = read("b11669/llama-server")

    def values(flag: str) -> tuple[str, ...]:
        found = server.find(flag)
        assert found is not None
        return found.allowed_values

    assert values("-ctk")[:2] == ("f32", "f16")
    assert values("--rope-scaling") == ("none", "linear", "yarn")
    assert values("-fa") == ("on", "off", "auto")
    assert values("--cpu-strict") == ("0", "1")
    assert values("--load-mode") == ("auto", "none", "mmap", "mlock", "mmap+mlock", "dio")
    assert values("--spec-type")[:2] == ("none", "draft-simple")
    assert values("--poll") == ()  # a range
    assert values("--device") == ()  # a form
    assert values("--ctx-size") == ()


def test_negated_spellings_are_told_apart() -> None:
    server = read("b11669/llama-server")
    for flag, negated in (
        ("--repack", ("-nr", "--no-repack")),
        ("-kvu", ("-no-kvu", "--no-kv-unified")),
        ("--mmproj-auto", ("--no-mmproj", "--no-mmproj-auto")),
        ("--no-host", ()),
        ("--n-predict", ()),
    ):
        found = server.find(flag)
        assert found is not None
        assert found.negated == negated
    assert server.takes_value("--no-repack") is False
    assert server.takes_value("--n-predict") is True
    assert server.takes_value("--metrics") is False
    assert server.takes_value("--no-such-option") is None


def test_a_removed_option_is_listed_and_not_had() -> None:
    server = read("b11669/llama-server")
    assert server.find("--draft-max") is not None
    assert not server.has("--draft-max")
    assert server.nearest("--draft-max") == "--spec-draft-n-max"
    assert server.has("--ctx_size")
    assert not server.has("--mlock")
    assert read("b10434/llama-server").has("--mlock")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("--ctxsize", "--ctx-size"), ("--n_gpu_layer", "--n-gpu-layers"), ("--flash", "--slots")],
)
def test_the_nearest_flag(wrong: str, right: str) -> None:
    nearest = read("b11669/llama-server").nearest(wrong)
    if right == "--slots":
        assert nearest != right
    else:
        assert nearest == right
    assert read("b11669/llama-server").nearest("--zzzzzzzzzz") is None


def test_environment_names() -> None:
    names = read("b11669/llama-server").env_names()
    assert len(names) == 152
    assert "LLAMA_ARG_CTX_SIZE" in names


def test_two_hints_and_a_hint_with_spaces() -> None:
    server = "b11669/llama-server"
    assert option(server, "--control-vector-layer-range").value_hints == ("START", "END")
    assert option(server, "-ot").value_hints == ("<tensor name pattern>=<buffer type>,...",)


def test_llama_bench() -> None:
    bench = read("b11669/llama-bench")
    assert bench.grammar == "indented"
    assert len(bench.options) == 46
    overrides = option("b11669/llama-bench", "-ot")
    assert overrides.aliases == ("-ot", "--override-tensor")
    assert overrides.value_hints == ("<tensor name pattern>=<buffer type>;...",)
    mode = option("b11669/llama-bench", "-lm")  # its head runs into the help column
    assert mode.allowed_values == ("auto", "none", "mmap", "mlock", "mmap+mlock", "dio")
    assert mode.default == "auto"
    assert option("b11669/llama-bench", "--delay").value_hints == ("<0...N>",)
    assert option("b11669/llama-bench", "--hf-file").help.startswith("Hugging Face model file. If specified")
    assert {o.section for o in bench.options} == {"options", "test parameters"}


def test_llama_quantize_and_gguf_split() -> None:
    quantize = read("b11669/llama-quantize")
    assert [o.aliases[0] for o in quantize.options][:3] == [
        "--allow-requantize", "--leave-output-tensor", "--pure",
    ]  # fmt: skip
    assert len(quantize.options) == 15
    assert option("b11669/llama-quantize", "--override-kv").value_hints == ("KEY=TYPE:VALUE",)
    assert option("b11669/llama-quantize", "--max-buffer-size").default == "8192"
    assert quantize.takes_value("--pure") is None  # this grammar leaves hints out
    split = read("b11669/llama-gguf-split")
    assert len(split.options) == 9
    size = option("b11669/llama-gguf-split", "--split-max-size")  # one space before the help text
    assert size.value_hints == ("N(M|G)",)
    assert size.help == "max size per split"


OLD = """\
usage: ./server [options]

options:
  -h, --help                show this help message and exit
  -t N,  --threads N        number of threads (default: 4)
  --host                    address to listen on (default: 127.0.0.1)
  -c N,  --ctx-size N       size of the prompt context (default: 512, 0 = model)
  -ub N, --ubatch-size N physical batch (default: 512)
  --rope-scaling {none,linear,yarn}
                            scaling method
  -r PROMPT, --reverse-prompt PROMPT
                            stop at PROMPT
                              - may be repeated
  -ngl N, --n-gpu-layers N
                            layers on the GPU
      --version             show the build
  --color               colours

samplers:
  --samplers            order, for example: "top_k;temp"
"""


def test_the_help_text_of_2024() -> None:
    old = parse_help(OLD)
    assert old.grammar == "indented"
    assert [o.spellings for o in old.options] == [
        ("-h", "--help"),
        ("-t", "--threads"),
        ("--host",),
        ("-c", "--ctx-size"),
        ("-ub", "--ubatch-size"),
        ("--rope-scaling",),
        ("-r", "--reverse-prompt"),
        ("-ngl", "--n-gpu-layers"),
        ("--version",),
        ("--color",),
        ("--samplers",),
    ]
    size = old.find("-c")
    assert size is not None
    assert (size.value_hints, size.default, size.section) == (("N",), "512", "options")
    batch = old.find("-ub")
    assert batch is not None
    assert (batch.value_hints, batch.help) == (("N",), "physical batch (default: 512)")
    scaling = old.find("--rope-scaling")
    assert scaling is not None
    assert (scaling.allowed_values, scaling.help) == (("none", "linear", "yarn"), "scaling method")
    prompt = old.find("-r")
    assert prompt is not None
    assert prompt.help == "stop at PROMPT - may be repeated"
    assert old.takes_value("--host") is None


def test_the_help_text_of_the_summer_of_2024() -> None:
    text = "general:\n\n  -h,    --help, --usage          print usage and exit\n"
    text += "         --version                show version\n"
    text += "  -c,    --ctx-size N             size (default: 0)\n"
    text += (
        "\nsampling:\n\n         --samplers SAMPLERS      order\n                                  by `;`\n"
    )
    found = parse_help(text)
    assert [o.spellings for o in found.options] == [
        ("-h", "--help", "--usage"),
        ("--version",),
        ("-c", "--ctx-size"),
        ("--samplers",),
    ]
    assert found.options[-1].section == "sampling"
    assert found.options[-1].help == "order by `;`"


def test_the_quantize_text_with_colons() -> None:
    found = parse_help(
        "usage: ./quantize [--help] model type\n\n  --allow-requantize: Allows it\n"
        "  --imatrix file_name: use data in file_name\n  --override-kv KEY=TYPE:VALUE\n      Advanced\n"
    )
    assert [(o.aliases[0], o.value_hints) for o in found.options] == [
        ("--allow-requantize", ()),
        ("--imatrix", ("file_name",)),
        ("--override-kv", ("KEY=TYPE:VALUE",)),
    ]
    assert found.options[1].help == "use data in file_name"


@pytest.mark.parametrize("text", ["", "Segmentation fault\n", "usage: llama <command>\n\n  serve   start\n"])
def test_a_text_without_options_is_no_help_text(text: str) -> None:
    with pytest.raises(ParseError):
        parse_help(text)


def test_carriage_returns_do_not_disturb() -> None:
    text = (DATA / "b11669/llama-server.help.stdout.txt").read_text()
    assert parse_help(text.replace("\n", "\r\n")) == parse_help(text)


def test_a_record_keeps_only_the_prose_that_names_a_replacement() -> None:
    whole = read("b11669/llama-server")
    short = whole.without_prose()
    assert short.nearest("--draft-max") == "--spec-draft-n-max"
    assert [o.spellings for o in short.options] == [o.spellings for o in whole.options]
    size = short.find("-c")
    assert size is not None
    assert (size.help, size.default, size.env) == ("", "0", "LLAMA_ARG_CTX_SIZE")
