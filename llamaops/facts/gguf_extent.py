"""Whether the tensor data that a header announces is in the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llamaops.facts.gguf_header import INT64_MAX, Header

if TYPE_CHECKING:  # see gguf_walk
    from llamaops.system.ports import OpenFile

SAMPLE_BYTES = 512
SMALLEST_HOLE = 4096
LARGEST_UNSEEN_HOLE = 16 * 2**20
SAMPLES = 16


def check_extent(file: OpenFile, header: Header) -> None:
    """Add what is wrong with the length of a file and with the end of its data.

    Raises: OSError when the file cannot be read.
    """
    expected = header.expected_bytes
    start = header.data_start
    if start is None or expected is None:
        if start is not None and header.tensors:
            _check_starts(header, start)
        return
    if header.file_bytes < expected:
        _report_truncated(header, start, expected)
        return
    if header.tensors:
        _check_zeros(file, header, start, expected)
    _check_trailing(file, header, expected)


def _check_starts(header: Header, start: int) -> None:
    """Hold at least the start of each tensor against the length, where a size is not known."""
    beyond = [tensor for tensor in header.tensors if start + tensor.offset > header.file_bytes]
    if beyond:
        header.add(
            "data-truncated",
            f"the file ends after {header.file_bytes} bytes,"
            f" before {len(beyond)} of {len(header.tensors)} tensors begin",
        )


def _report_truncated(header: Header, start: int, expected: int) -> None:
    cut = [
        tensor
        for tensor in header.tensors
        if start + tensor.offset + (tensor.size_bytes or 0) > header.file_bytes
    ]
    header.add(
        "data-truncated",
        f"the file has {header.file_bytes} bytes and its header needs {expected}"
        f" ({100 * header.file_bytes / expected:.1f} % is there): {len(cut)} of {len(header.tensors)} tensors"
        f" are not whole, first {cut[0].name[:64]!r}",
    )


def _check_zeros(file: OpenFile, header: Header, start: int, end: int) -> None:
    """Look for a hole of zeros at the end, which a download leaves that reserved its space first."""
    hole = _zeros_before(file, start, end)
    length = end - start
    if hole >= length and _is_zero(file, start, end):
        header.add("data-all-zeros", f"every sample of the {length} bytes of tensor data is zeros")
        return
    if hole >= max(SMALLEST_HOLE, min(length // 100, LARGEST_UNSEEN_HOLE)):
        header.add(
            "zeros-at-end",
            f"the last {min(hole, length)} of {length} bytes of tensor data are zeros in every sample,"
            " as in a download that has not ended",
        )


def _zeros_before(file: OpenFile, start: int, end: int) -> int:
    """Return how far back from the end samples are zeros; steps double."""
    hole, step = 0, SAMPLE_BYTES
    while True:
        at = max(start, end - step)
        if any(file.read_at(at, min(SAMPLE_BYTES, end - at))):
            return hole
        hole = end - at
        if at == start:
            return hole
        step *= 2


def _is_zero(file: OpenFile, start: int, end: int) -> bool:
    """Say whether samples over all of the data are zeros."""
    places = {start + (end - start) * part // SAMPLES for part in range(SAMPLES)}
    return not any(any(file.read_at(at, min(SAMPLE_BYTES, end - at))) for at in sorted(places))


def _check_trailing(file: OpenFile, header: Header, expected: int) -> None:
    alignment = header.alignment or 1
    padded = (expected + alignment - 1) // alignment * alignment
    if not header.tensors or header.file_bytes <= padded or padded > INT64_MAX:
        return
    if any(file.read_at(at, 4) == b"GGUF" for at in (expected, padded)):
        header.add("shards-joined", f"another GGUF file begins at byte {padded}: parts joined byte by byte")
    else:
        header.add(
            "trailing-bytes",
            f"{header.file_bytes - padded} bytes follow the last tensor, which ends at {expected}",
        )
