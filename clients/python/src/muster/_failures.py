# SPDX-License-Identifier: Apache-2.0
"""The transactions of a batch that are not in its results, with their records."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Optional

import grpc

from muster._channel import BatchStub, ReportStub, ask
from muster.errors import (DataLoss, FailedPrecondition, MusterError, NotFound, PermissionDenied,
                           make_error)
from muster.v1 import batch_service_pb2, report_service_pb2

# Rejections are asked for a thousand at a time; a dead letter has many transactions.
_REJECTIONS_AT_A_TIME = 1000
_DEAD_LETTERS_AT_A_TIME = 100
_NAMED_AT_A_TIME = 1000

# Why records cannot be read, though the report says of which transactions: asking again is no use.
_NO_RECORDS = (FailedPrecondition, NotFound, DataLoss, PermissionDenied)


@dataclasses.dataclass(frozen=True)
class FailedTransaction:
    """A transaction that a batch rejected, or one of an item that was given up."""

    item: int
    line: int  # 1-based physical line of the input; 0: all of the item, whose content is deleted
    reason: str
    record: bytes | None  # as it was submitted; None: it is not there any more, or too long
    retried_in: int = 0  # the batch that retries it; 0: none
    retry_of_line: int = 0  # of a batch that is a retry: its line in the batch that it retries; 0: none


@dataclasses.dataclass(frozen=True)
class RetriedBatch:
    """A batch that retries transactions which another one rejected, or gave up."""

    batch: int
    transactions: int  # that it has of the other one
    is_new: bool  # it was submitted by this call


class FailureReader:
    """Reads one batch, page by page. Not thread-safe."""

    def __init__(self, batch: int, batches: BatchStub, report: ReportStub, timeout: float) -> None:
        self._batch = batch
        self._batches = batches
        self._report = report
        self._timeout = timeout
        self._has_records = True

    def rejections(self) -> Iterator[FailedTransaction]:
        request = report_service_pb2.ListRejectionsRequest(batch=self._batch,
                                                           max=_REJECTIONS_AT_A_TIME)
        while True:
            page = ask(self._report.ListRejections, request, self._timeout).rejections
            if not page:
                return
            begin = 0
            while begin < len(page):
                records, end = self._records_of([(row.item, row.line) for row in page], begin)
                for row in page[begin:end]:
                    yield FailedTransaction(row.item, row.line, row.reason,
                                            records.get((row.item, row.line)), row.retried_in,
                                            row.retry_of_line)
                begin = end
            request.after.item, request.after.line = page[-1].item, page[-1].line

    def dead_letters(self) -> Iterator[FailedTransaction]:
        request = report_service_pb2.ListDeadLettersRequest(batch=self._batch,
                                                            max=_DEAD_LETTERS_AT_A_TIME)
        while True:
            items = ask(self._report.ListDeadLetters, request, self._timeout).items
            if not items:
                return
            for item in items:
                yield from self._transactions_of(item)
                setattr(request, "from", item.item + 1)

    def _transactions_of(self, item: report_service_pb2.DeadLetter) -> Iterator[FailedTransaction]:
        wanted = batch_service_pb2.ItemLines(item=item.item)
        while True:
            response = self._read([wanted])
            if response is None:
                yield FailedTransaction(item.item, 0, item.cause, None, item.retried_in)
                return
            for record in response.records:
                yield FailedTransaction(item.item, record.line, item.cause, _bytes_of(record),
                                        item.retried_in)
                wanted.after_line = record.line
            if not response.more:
                return

    def _records_of(self, places: Sequence[tuple[int, int]],
                    begin: int) -> tuple[dict[tuple[int, int], bytes | None], int]:
        """The records from `begin` on, as many as fit into a message, and the end of these places. They come in
        the order of the places."""
        wanted: list[batch_service_pb2.ItemLines] = []
        for item, line in places[begin:]:
            if not wanted or wanted[-1].item != item:
                wanted.append(batch_service_pb2.ItemLines(item=item))
            wanted[-1].lines.append(line)
        response = self._read(wanted)
        if response is None:
            return {}, len(places)
        records = {(record.item, record.line): _bytes_of(record) for record in response.records}
        end = len(places)
        if response.more:
            while end > begin and places[end - 1] not in records:
                end -= 1
            if end == begin:
                raise make_error(grpc.StatusCode.INTERNAL,
                                 "the server answers other records than it was asked for")
        return records, end

    def _read(self, items: Sequence[batch_service_pb2.ItemLines]
              ) -> Optional[batch_service_pb2.ReadRecordsResponse]:
        if not self._has_records:
            return None
        request = batch_service_pb2.ReadRecordsRequest(batch=self._batch, items=items)
        try:
            return ask(self._batches.ReadRecords, request, self._timeout)
        except MusterError as error:
            # An initiator of an older muster does not know the call.
            if not isinstance(error, _NO_RECORDS) and error.code != grpc.StatusCode.UNIMPLEMENTED:
                raise
            self._has_records = False
            return None


def retry_rejections(batch: int, lines: Sequence[int] | None, items: Sequence[int] | None,
                     batches: BatchStub, timeout: float) -> list[RetriedBatch]:
    requests = _retry_requests(batch, list(lines or ()), list(items or ()))
    if not requests:
        if lines is not None or items is not None:
            raise ValueError("no line and no item to retry; None retries all")
        requests = [batch_service_pb2.RetryRejectionsRequest(batch=batch, all=True)]
    retried: list[RetriedBatch] = []
    try:
        for request in requests:
            more = True
            while more:
                response = ask(batches.RetryRejections, request, timeout)
                retried += [RetriedBatch(retry.batch, retry.transactions, retry.is_new)
                            for retry in response.retries]
                more = request.all and response.more
    except MusterError as error:
        error.retried = tuple(retried)
        raise
    return retried


def _retry_requests(batch: int, lines: list[int],
                    items: list[int]) -> list[batch_service_pb2.RetryRejectionsRequest]:
    """A call names lines or items."""
    step = _NAMED_AT_A_TIME
    return [batch_service_pb2.RetryRejectionsRequest(batch=batch, lines=lines[begin:begin + step])
            for begin in range(0, len(lines), step)] + [
        batch_service_pb2.RetryRejectionsRequest(batch=batch, items=items[begin:begin + step])
        for begin in range(0, len(items), step)]


def _bytes_of(record: batch_service_pb2.SubmittedRecord) -> bytes | None:
    return None if record.oversized else record.record
