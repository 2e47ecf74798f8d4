"""A client of muster: submits batches, follows them, reads their reports, and serves handlers."""

from muster._batch import Batch, BatchState, Flow
from muster._report import Group, Measure, Number, Receipt, ReportRow, Row
from muster._results import Results, Unfit
from muster._upload import SubmitProgress
from muster.client import Client, Job
from muster.errors import (Aborted, Cancelled, DataLoss, DeadlineExceeded, FailedPrecondition,
                           FieldViolation, InvalidArgument, InvalidJob, JobProblem, MusterError,
                           NotFound, OutOfRange, PermissionDenied, ResourceExhausted, Unavailable)
from muster.handler import (Dead, Defer, HandledJob, HandlerServer, Item, Retry, Transaction,
                            serve_handler)

__all__ = [
    "Aborted", "Batch", "BatchState", "Cancelled", "Client", "DataLoss", "Dead", "DeadlineExceeded",
    "Defer", "FailedPrecondition", "FieldViolation", "Flow", "Group", "HandledJob", "HandlerServer",
    "InvalidArgument", "InvalidJob", "Item", "Job", "JobProblem", "Measure", "MusterError",
    "NotFound", "Number", "OutOfRange", "PermissionDenied", "Receipt", "ReportRow", "ResourceExhausted",
    "Results", "Retry", "Row", "SubmitProgress", "Transaction", "Unavailable", "Unfit",
    "serve_handler",
]
