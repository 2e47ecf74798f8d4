# SPDX-License-Identifier: Apache-2.0
"""The content of an upload, read once from front to back, and kept until it is durable elsewhere."""

from __future__ import annotations

import collections
import contextlib
import io
import os
import pathlib
import threading
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Union, cast

import grpc
import xxhash

from muster._json import to_json
from muster.errors import DataLoss

# As BatchService.Submit takes them.
CHUNK_BYTES = 1 << 20

Source = Union[str, "os.PathLike[str]", bytes, BinaryIO, Iterable[bytes]]


def json_lines(records: Iterable[Any]) -> bytes:
    """A line of JSON for each record: content for jobs whose format is jsonl. Decimals are written as they
    are, floats in the shortest text that means them: 0.1 + 0.2 as 0.30000000000000004. TypeError: a
    value is none of JSON's, such as NaN."""
    return b"".join(to_json(record, floats=True).encode() + b"\n" for record in records)


class Content:
    """Thread-safe, but for `forget`, which one thread at a time may call.

          0        durable      end
          │ forgotten │  kept    │ not read yet
    """

    def __init__(self, pieces: Iterator[bytes]) -> None:
        """`pieces` have any size, and are joined or cut as they are read."""
        self._pieces = pieces
        self._reading = threading.Lock()
        self._kept: collections.deque[tuple[int, bytes]] = collections.deque()
        self._left = memoryview(b"")  # of the last piece
        self._hash = xxhash.xxh3_128()
        self._durable = 0
        self._end = 0
        self._whole = False

    def forget(self, below: int) -> None:
        """What is before this offset will not be taken again."""
        self._durable = max(self._durable, below)

    def take(self, offset: int) -> bytes:
        """Up to CHUNK_BYTES from `offset` on; empty: the content ends before."""
        with self._reading:
            self._drop_durable()
            while self._end <= offset and not self._whole:
                self._read(keep_from=offset)
            for begin, chunk in self._kept:
                if begin <= offset < begin + len(chunk):
                    return chunk[offset - begin:]
            if offset < self._end:
                raise DataLoss(grpc.StatusCode.DATA_LOSS,
                               f"the initiator lacks byte {offset}, which it called durable")
            return b""

    def sole_chunk(self) -> bytes | None:
        """All of it, if one chunk holds it."""
        chunk = self.take(0)
        return None if self.take(len(chunk)) else chunk

    def size(self) -> int:
        """Of all of it. Only when it is read to its end."""
        return self._end

    def digest(self) -> bytes:
        """XXH3-128, big-endian. Only when it is read to its end."""
        return self._hash.digest()

    def _drop_durable(self) -> None:
        while self._kept and self._kept[0][0] + len(self._kept[0][1]) <= self._durable:
            self._kept.popleft()

    def _read(self, keep_from: int) -> None:
        chunk = self._next_chunk()
        self._hash.update(chunk)
        if self._end + len(chunk) > keep_from:
            self._kept.append((self._end, chunk))
        self._end += len(chunk)
        self._whole = not chunk

    def _next_chunk(self) -> bytes:
        chunk = bytearray()
        while len(chunk) < CHUNK_BYTES:
            if not self._left:
                piece = next(self._pieces, None)
                if piece is None:
                    break
                if not isinstance(piece, (bytes, bytearray, memoryview)):
                    raise TypeError(f"the content must be bytes, not {type(piece).__name__}")
                self._left = memoryview(bytes(piece))
            taken = self._left[:CHUNK_BYTES - len(chunk)]
            chunk += taken
            self._left = self._left[len(taken):]
        return bytes(chunk)


def _pieces_of(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(CHUNK_BYTES):
        yield piece
    if piece is None:  # of a file that does not block: this is not its end
        raise BlockingIOError("the content is not there yet: submit a file that blocks")


class Opened:
    """Content that is about to be read, from where its file stands."""

    def __init__(self, file: BinaryIO | None, pieces: Iterator[bytes]) -> None:
        self.pieces = pieces
        self._file = file if file is not None and file.seekable() else None

    def size(self) -> int | None:
        """Of what is still to be read; None: nobody knows."""
        if self._file is None:
            return None
        begin = self._file.tell()
        size = self._file.seek(0, io.SEEK_END) - begin
        self._file.seek(begin)
        return size

    def digest(self) -> str | None:
        """The hash of what is still to be read; None: it cannot be read twice."""
        if self._file is None:
            return None
        begin = self._file.tell()
        whole = xxhash.xxh3_128()
        for piece in _pieces_of(self._file):
            whole.update(piece)
        self._file.seek(begin)
        return whole.hexdigest()


@contextlib.contextmanager
def opened(source: Source) -> Iterator[Opened]:
    """A path is opened, and closed at the end; what is open stays so."""
    if isinstance(source, (str, os.PathLike)):
        with pathlib.Path(source).open("rb") as file:
            yield Opened(file, _pieces_of(file))
    elif isinstance(source, bytes):
        memory = io.BytesIO(source)
        yield Opened(memory, _pieces_of(memory))
    elif isinstance(source, io.TextIOBase):
        raise TypeError("the content must be bytes: open the file with mode 'rb'")
    elif hasattr(source, "read"):
        stream = cast(BinaryIO, source)
        yield Opened(stream, _pieces_of(stream))
    else:
        yield Opened(None, iter(source))
