# SPDX-License-Identifier: Apache-2.0
"""Functions of a program that are called for work."""

from __future__ import annotations

import inspect


def check_done(returned: object) -> None:
    """TypeError: nothing was done. A function with `async def` or `yield` only begins when what it
    returns is run."""
    if inspect.iscoroutine(returned) or inspect.isgenerator(returned) or inspect.isasyncgen(returned):
        raise TypeError(f"a {type(returned).__name__} was returned, which does nothing by itself: "
                        "call asyncio.run() in a plain function, which does not yield")
