"""Small real programs that answer as llama.cpp's do, or fail as they fail; made with the C compiler."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HONEST = r"""
#include <stdio.h>
#include <string.h>
int helper(void);
int main(int argc, char **argv) {
    const char *last = argc > 1 ? argv[argc - 1] : "";
    if (!strcmp(last, "--help")) {
        printf("----- common params -----\n\n");
        printf("-h,    --help, --usage                  print usage of this gguf reader\n");
        printf("-c,    --ctx-size N                     size of the prompt context (default: 0, 0 = all)\n");
        printf("                                        (env: LLAMA_ARG_CTX_SIZE)\n");
        for (int i = 0; i < FILLERS; i++)
            printf("--filler-%03d N                          an option that only makes the text long\n", i);
        return 0;
    }
    if (!strcmp(last, "--version")) {
        fprintf(stderr, "version: 0.9.1 (build 777, commit abcdef12)\nbuilt with GNU 12 for Linux x86_64\n");
        return 0;
    }
    if (!strcmp(last, "--list-devices")) {
        printf("Available devices:\n  Fake0: A Fake Card (2048 MiB, 1024 MiB free)\n");
        return 0;
    }
    fprintf(stderr, "error: invalid argument: %s\n", last);
    return HELPER;
}
"""


def compiler() -> str:
    """Return the C compiler; the test is skipped where there is none."""
    found = shutil.which("cc") or shutil.which("gcc")
    if found is None:
        pytest.skip("no C compiler")
    return found


def compile_c(source: str, to: Path, *flags: str) -> Path:
    to.parent.mkdir(parents=True, exist_ok=True)
    file = to.with_name(to.name + ".c")
    file.write_text(source)
    subprocess.run([compiler(), "-O1", "-o", str(to), str(file), *flags], check=True, capture_output=True)
    file.unlink()
    return to


def honest(to: Path, *, fillers: int = 100) -> Path:
    """Make a program that answers --help (8 KiB and more), --version and --list-devices."""
    return compile_c(HONEST, to, f"-DFILLERS={fillers}", "-DHELPER=1")


def with_library(to: Path, library: str) -> Path:
    """Make an honest program that needs a library which lies beside it."""
    to.parent.mkdir(parents=True, exist_ok=True)
    compile_c(
        "int helper(void) { return 1; }", to.parent / library, "-shared", "-fPIC", f"-Wl,-soname,{library}"
    )
    return compile_c(
        HONEST, to, "-DFILLERS=100", "-DHELPER=helper()", str(to.parent / library), "-Wl,-rpath,$ORIGIN"
    )


def script(to: Path, text: str) -> Path:
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(text)
    to.chmod(0o755)
    return to


def python_launcher(to: Path, body: str) -> Path:
    return script(to, f"#!{sys.executable} -IS\n{body}")
