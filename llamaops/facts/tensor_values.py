"""Read the values of all tensors once, in bounded pieces, and tell which are no weights.

Of each tensor so many values are dequantized as it takes to see two that differ; from then on only that they
are finite is open, which the scales of their blocks tell (`block_scales`). Where those leave it open, the
piece is dequantized too.

Needs the `gguf` package and numpy (the extra `llamaops[deep]`), which are imported here and only when asked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from llamaops.facts.block_scales import surely_finite
from llamaops.facts.ggml_types import BLOCKS, type_name
from llamaops.facts.gguf_header import Tensor
from llamaops.facts.observe import unknown_from_os_error
from llamaops.schema.fact import Fact, Source, Unknown, known
from llamaops.schema.shape import Shape

if TYPE_CHECKING:
    from llamaops.facts.gguf_probe import Probe
    from llamaops.system.ports import OpenFile, System

FIRST_ELEMENTS = 2**12
PIECE_ELEMENTS = 2**20
MOST_ODD = 64
THREADS = 4
_PLAIN = {0: "<f4", 1: "<f2", 24: "i1", 25: "<i2", 26: "<i4", 27: "<i8", 28: "<f8"}
BF16 = 30

Progress = Callable[[int, int], None]
"""Bytes done and bytes in all; called from other threads."""


class OddTensor(Shape, frozen=True, kw_only=True):
    """A tensor whose values are no weights."""

    name: str
    """Its name."""
    path: str
    """The file that it is in."""
    type: str
    """Its type."""
    elements: int
    """How many values it has."""
    nan: int
    """How many are not a number."""
    infinite: int
    """How many are infinite."""
    constant: float | None
    """The one value that all have; none where they differ."""
    matrix: bool
    """Whether it has more than one dimension."""


class TensorValuesFacts(Shape, frozen=True, kw_only=True):
    """What reading all tensor data showed."""

    tensors_read: int
    """Tensors whose values were read."""
    elements: int
    """Values that were read: dequantized, or known to be finite by the scale of their block."""
    bytes: int
    """Bytes of tensor data that were read."""
    odd: Fact[tuple[OddTensor, ...]]
    """Tensors with values that are not finite, or with one value throughout; at most 64."""
    odd_count: int
    """How many there are."""
    not_read: tuple[str, ...]
    """Types whose blocks the installed `gguf` package cannot read, and tensors beyond the end of the file."""
    reader: str
    """What read the blocks."""


class _Stats(msgspec.Struct):
    nan: int = 0
    infinite: int = 0
    elements: int = 0
    low: float = float("inf")
    high: float = float("-inf")

    @property
    def differ(self) -> bool:
        """Say whether two values were seen that differ."""
        return self.low < self.high


class _NotReadError(Exception):
    """The blocks of a type cannot be read, or are not there."""


class _Total(msgspec.Struct):
    done_bytes: int = 0
    tensors: int = 0
    elements: int = 0
    odd: list[OddTensor] = msgspec.field(default_factory=list)
    not_read: set[str] = msgspec.field(default_factory=set)


def collect_tensor_values(
    system: System, probe: Probe, *, progress: Progress | None = None
) -> TensorValuesFacts:
    """Read all tensor data once, in pieces of a million values.

    Units: memory of some ten megabytes for each of four threads. Raises: ImportError without `gguf`.
    """
    import gguf

    source = Source(kind="library", name=f"dequantized with gguf {_version()}, or finite by their scales")
    reader = _Reader(gguf, _all_bytes(probe), progress)
    failure: Unknown | None = None
    for part in probe.parts:
        header = part.header
        if header is None or header.data_start is None:
            reader.total.not_read.add(f"{part.path}: its header could not be read")
            continue
        try:
            with system.open_regular(part.path) as file:
                reader.read(file, part.path, header.tensors, header.data_start)
        except OSError as error:
            failure = unknown_from_os_error(Source(kind="file", name=part.path), error)
    total = reader.total
    odd = tuple(sorted(total.odd, key=lambda one: (-(one.nan + one.infinite), one.name)))
    return TensorValuesFacts(
        tensors_read=total.tensors,
        elements=total.elements,
        bytes=total.done_bytes,
        odd=failure or known(odd[:MOST_ODD], source),
        odd_count=len(odd),
        not_read=tuple(sorted(total.not_read)),
        reader=source.name,
    )


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("gguf")
    except PackageNotFoundError:
        return "of unknown version"


def _all_bytes(probe: Probe) -> int:
    parts = (part.header.tensors for part in probe.parts if part.header is not None)
    return sum(tensor.size_bytes or 0 for tensors in parts for tensor in tensors)


class _Reader:
    """Reads tensors side by side; numpy lets the threads run while it computes."""

    def __init__(self, gguf: Any, all_bytes: int, progress: Progress | None) -> None:  # noqa: ANN401 - a module
        self.total = _Total()
        self._gguf = gguf
        self._all_bytes = all_bytes
        self._progress = progress
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def read(self, file: OpenFile, path: str, tensors: Sequence[Tensor], start: int) -> None:
        """Read the tensors of one file; an interrupt stops all threads. Raises: OSError."""
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(THREADS) as pool:
            try:
                for _done in pool.map(lambda tensor: self._tensor(file, path, tensor, start), tensors):
                    pass
            except BaseException:
                self._stop.set()
                raise

    def _tensor(self, file: OpenFile, path: str, tensor: Tensor, start: int) -> None:
        stats = _Stats()
        try:
            for data, block in self._pieces(file, tensor, start + tensor.offset):
                if stats.differ and surely_finite(tensor.type_id, data, block[2]):
                    stats.elements += len(data) // block[2] * block[1]
                else:
                    self._add(stats, self._values(tensor.type_id, data, block[2]))
        except _NotReadError as error:
            with self._lock:
                self.total.not_read.add(str(error))
            return
        with self._lock:
            self.total.tensors += 1
            self.total.elements += stats.elements
            odd = _odd(path, tensor, stats)
            if odd is not None:
                self.total.odd.append(odd)

    def _pieces(
        self, file: OpenFile, tensor: Tensor, at: int
    ) -> Iterator[tuple[bytes, tuple[str, int, int]]]:
        """Yield the data of a tensor, a small piece first, and what its blocks are."""
        block = BLOCKS.get(tensor.type_id)
        if block is None or tensor.size_bytes is None:
            raise _NotReadError(f"{type_name(tensor.type_id)}: no size is known")
        _, elements, size = block
        done, piece = 0, FIRST_ELEMENTS
        while done < tensor.size_bytes:
            if self._stop.is_set():
                raise _NotReadError("interrupted")
            wanted = min(max(1, piece // elements) * size, tensor.size_bytes - done)
            data = file.read_at(at + done, wanted)
            if len(data) < wanted:
                raise _NotReadError(f"{tensor.name[:64]}: its data is not all there")
            self._tell(wanted)
            yield data, block
            done, piece = done + wanted, PIECE_ELEMENTS

    def _values(self, type_id: int, data: bytes, block_bytes: int) -> Any:  # noqa: ANN401 - an array
        import numpy as np

        if type_id in _PLAIN:
            return np.frombuffer(data, dtype=_PLAIN[type_id])
        if type_id == BF16:
            return (np.frombuffer(data, dtype="<u2").astype("<u4") << 16).view("<f4")
        try:
            kind = self._gguf.GGMLQuantizationType(type_id)
            blocks = np.frombuffer(data, dtype=np.uint8).reshape(-1, block_bytes)
            with np.errstate(all="ignore"):
                return self._gguf.quants.dequantize(blocks, kind)
        except (ValueError, NotImplementedError, KeyError) as error:
            raise _NotReadError(f"{type_name(type_id)}: gguf cannot read its blocks") from error

    def _add(self, stats: _Stats, values: Any) -> None:  # noqa: ANN401 - an array
        import numpy as np

        stats.elements += values.size
        if values.dtype.kind == "f":
            finite = np.isfinite(values)
            if not finite.all():
                nan = int(np.isnan(values).sum())
                stats.nan += nan
                stats.infinite += int(values.size - finite.sum()) - nan
                values = values[finite]
        if values.size:
            stats.low = min(stats.low, float(values.min()))
            stats.high = max(stats.high, float(values.max()))

    def _tell(self, count: int) -> None:
        with self._lock:
            self.total.done_bytes += count
            if self._progress is not None:
                self._progress(self.total.done_bytes, self._all_bytes)


def _odd(path: str, tensor: Tensor, stats: _Stats) -> OddTensor | None:
    constant = stats.low if stats.low == stats.high and stats.elements > 1 else None
    if not stats.nan and not stats.infinite and constant is None:
        return None
    return OddTensor(
        name=tensor.name[:64],
        path=path,
        type=type_name(tensor.type_id),
        elements=stats.elements,
        nan=stats.nan,
        infinite=stats.infinite,
        constant=constant,
        matrix=_is_matrix(tensor.dimensions),
    )


def _is_matrix(dimensions: Iterable[int]) -> bool:
    return sum(length > 1 for length in dimensions) > 1


__all__ = ["OddTensor", "TensorValuesFacts", "collect_tensor_values"]
