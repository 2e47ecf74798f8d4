# SPDX-License-Identifier: Apache-2.0
"""A client of muster: submits batches, follows them, reads their reports, and serves handlers."""

from muster._amounts import Unfit
from muster._batch import Batch, BatchState, Flow
from muster._call import Answer, Record
from muster._content import json_lines
from muster._failures import FailedTransaction, RetriedBatch
from muster._output import OutputColumn, OutputRecord, Value
from muster._report import Group, Measure, Number, Receipt, ReportRow, Row
from muster._results import Results
from muster._schedule import CatchUp, Schedule
from muster._upload import SubmitProgress
from muster.client import Client, Job
from muster.errors import (Aborted, Cancelled, DataLoss, DeadLettered, DeadlineExceeded,
                           FailedPrecondition, FieldViolation, InvalidArgument, InvalidJob,
                           JobProblem, MusterError, NotAccepted, NotFound, OutOfRange,
                           PermissionDenied, Rejected, ResourceExhausted, Unavailable)
from muster.handler import (Dead, Defer, HandledJob, HandlerServer, Item, Retry, Transaction,
                            serve_handler)
from muster.streams import (Event, EventPlace, EventProcessor, EventProducer, PartitionContext,
                            ProcessorError)

__all__ = [
    "Aborted", "Answer", "Batch", "BatchState", "Cancelled", "CatchUp", "Client", "DataLoss",
    "Dead", "DeadLettered", "DeadlineExceeded", "Defer", "Event", "EventPlace", "EventProcessor",
    "EventProducer", "FailedPrecondition", "FailedTransaction", "FieldViolation", "Flow", "Group",
    "HandledJob", "HandlerServer", "InvalidArgument", "InvalidJob", "Item", "Job", "JobProblem",
    "Measure", "MusterError", "NotAccepted", "NotFound", "Number", "OutOfRange", "OutputColumn",
    "OutputRecord", "PartitionContext", "PermissionDenied", "ProcessorError", "Receipt", "Record",
    "Rejected", "ReportRow", "ResourceExhausted", "Results", "RetriedBatch", "Retry", "Row",
    "Schedule", "SubmitProgress", "Transaction", "Unavailable", "Unfit", "Value", "json_lines",
    "serve_handler",
]
