"""A wrong file is named for what it is, whatever its name says."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import stat
import struct
import tarfile
import zipfile

import pytest

from llamaops.facts.file_sniff import partial_beside, partial_sign, path_state_of, sniff


def archive(name: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr(name, b"x")
    return buffer.getvalue()


def tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as file:
        file.addfile(tarfile.TarInfo("model.gguf"))
    return buffer.getvalue()


def safetensors() -> bytes:
    head = json.dumps({"weight": {"dtype": "F16", "shape": [1], "data_offsets": [0, 2]}}).encode()
    return struct.pack("<Q", len(head)) + head + b"\0\0"


LFS = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 98362432\n"
)
CASES = [
    (b"", "empty", "empty"),
    (bytes(5000), "zeros", "zeros"),
    (b"<!DOCTYPE html>\n<html><head><title>Sign in</title>", "html", "'Sign in'"),
    (b"\xef\xbb\xbf  <HTML><body>", "html", "HTML"),
    (b"<!-- saved -->\n<html>", "html", "HTML"),
    (b'<?xml version="1.0"?><Error><Message>Access Denied</Message></Error>', "xml", "'Access Denied'"),
    (b'{"error":"Invalid username or password."}', "json", "'Invalid username or password.'"),
    (b'{"detail": {"a": 1}}', "json", "JSON"),
    (LFS, "lfs_pointer", "98362432 bytes"),
    (b"Entry not found", "text", "'Entry not found'"),
    ("caf\u00e9 au lait\n".encode("latin-1"), "text", "text"),
    ("Entry not found".encode("utf-16"), "text", "'Entry not found'"),
    (safetensors(), "safetensors", "safetensors"),
    (archive("archive/data.pkl"), "pytorch_zip", "PyTorch"),
    (archive("readme"), "zip", "zip"),
    (pickle.dumps({"weight": [1, 2]}, protocol=2), "pickle", "pickle"),
    (pickle.dumps({"weight": [1, 2]}, protocol=4), "pickle", "pickle"),
    (gzip.compress(b"GGUF", mtime=0), "gzip", "gzip"),
    (b"\xfd7zXZ\x00\x00\x04", "xz", "xz"),
    (b"\x28\xb5\x2f\xfd\x04", "zstd", "zstd"),
    (tar(), "tar", "tar"),
    (b"lmgg\x00\x7d\x00\x00", "ggml_old", "ggml"),
    (b"fmgg\x01\x00\x00\x00", "ggml_old", "ggmf"),
    (b"tjgg\x03\x00\x00\x00", "ggml_old", "ggjt"),
    (b"algg\x01\x00\x00\x00", "ggml_old", "ggla"),
    (b"\x7fELF\x02\x01\x01", "executable", "ELF"),
    (b"MZ\x90\x00\x03", "executable", "Windows"),
    (b"#!/bin/sh\nexit 0\n", "executable", "script"),
    (b"%PDF-1.7\n", "pdf", "PDF"),
    (b"\x89HDF\r\n\x1a\n", "hdf5", "HDF5"),
    (b"\x93NUMPY\x01\x00", "numpy", "NumPy"),
    (b"\x89PNG\r\n\x1a\n", "image", "PNG"),
    (b"SQLite format 3\x00", "sqlite", "SQLite"),
    (bytes(range(1, 200)), "binary", "01 02 03 04"),
    (b"GG", "text", "text"),
]


@pytest.mark.parametrize(("data", "kind", "part"), CASES)
def test_the_kind_and_its_words(data: bytes, kind: str, part: str) -> None:
    found, words = sniff(data[:4096], len(data))
    assert found == kind
    assert part in words
    assert "\n" not in words


@pytest.mark.parametrize(
    "text",
    [
        "API_KEY=hunter2",
        "hunter",
        "correct horse battery 12",
        "-----BEGIN KEY-----\nabc",
        "a b\nsecret words",
    ],
)
def test_text_that_may_be_a_secret_is_not_repeated(text: str) -> None:
    assert sniff(text.encode(), len(text)) == ("text", "a text file")


@pytest.mark.parametrize(
    "name",
    [
        "m.gguf.part",
        "m.gguf.incomplete",
        "abc123.INCOMPLETE",
        "m.gguf.downloadInProgress",
        "m.gguf.crdownload",
    ],
)
def test_a_name_of_an_unfinished_download(name: str) -> None:
    assert partial_sign(f"/models/{name}", frozenset()) is not None


def test_a_control_file_beside_it() -> None:
    assert partial_sign("/models/m.gguf", frozenset({"m.gguf", "m.gguf.aria2"})) is not None
    assert partial_sign("/models/m.gguf", frozenset({"m.gguf", "other.gguf.aria2"})) is None


def test_an_unfinished_download_of_a_file_that_is_not_there() -> None:
    assert partial_beside("/models/m.gguf", frozenset({"m.gguf.part", "n.gguf.part"})) == "m.gguf.part"
    assert partial_beside("/models/m.gguf", frozenset({"m.gguf.sha256"})) is None


@pytest.mark.parametrize(
    ("mode", "state"),
    [
        (stat.S_IFREG, "regular"),
        (stat.S_IFDIR, "directory"),
        (stat.S_IFIFO, "fifo"),
        (stat.S_IFSOCK, "socket"),
        (stat.S_IFCHR, "character_device"),
        (stat.S_IFBLK, "block_device"),
    ],
)
def test_what_a_path_leads_to(mode: int, state: str) -> None:
    assert path_state_of(mode | 0o644) == state
