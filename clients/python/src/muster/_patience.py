# SPDX-License-Identifier: Apache-2.0
"""How long a call that can be gone on with goes on trying while nobody answers."""

from __future__ import annotations

import logging
import time

import grpc

from muster.errors import Cancelled, DeadlineExceeded, MusterError, Unavailable

_MIN_WAIT_SECONDS = 0.1
_MAX_WAIT_SECONDS = 2.0

log = logging.getLogger("muster")


def may_pass(trouble: MusterError) -> bool:
    """A server that ends cancels what still runs there, and then gives no reason."""
    return isinstance(trouble, Unavailable) or (
        isinstance(trouble, Cancelled) and trouble.reason is None)


class Patience:
    """Not thread-safe."""

    def __init__(self, seconds: float, deadline: float | None = None) -> None:
        """`deadline`, by time.monotonic(), ends it early."""
        self._seconds = seconds
        self._deadline = deadline
        self._failures = 0
        self._began = 0.0

    def refresh(self) -> None:
        """There was news: trouble begins anew after it."""
        self._failures = 0

    def wait_after(self, trouble: MusterError, what: str) -> None:
        """Waits a while before the next try. Raises what will not pass, or has lasted too long."""
        now = time.monotonic()
        if self._failures == 0:
            self._began = now
        if not may_pass(trouble) or now - self._began > self._seconds:
            raise trouble
        if self._failures == 0:
            log.warning("%s; %s goes on when it answers", trouble, what)
        wait = min(_MIN_WAIT_SECONDS * 2 ** min(self._failures, 10), _MAX_WAIT_SECONDS)
        self._failures += 1
        time.sleep(wait if self._deadline is None else max(0.0, min(wait, self._deadline - now)))

    def remaining(self) -> float | None:
        """Seconds until the deadline, for a call. DeadlineExceeded when it is over."""
        if self._deadline is None:
            return None
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise out_of_time()
        return left


def out_of_time() -> DeadlineExceeded:
    return DeadlineExceeded(grpc.StatusCode.DEADLINE_EXCEEDED, "the time to wait is over")
