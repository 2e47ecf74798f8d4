// SPDX-License-Identifier: Apache-2.0

// A handler that writes down its calls, so that a test can tell in which order they were made.
#pragma once

#include "muster/handler/handler.h"

// Adds the linked handler "witness", for a job with the columns key and n, and one group by `all`.
//
// WITNESS_LOG names a file that all processes append to, a line for each beginning and end of a
// call: "B KEY FIRST_N LAST_N PID" and "E KEY FIRST_N LAST_N PID ok" or "… retry". WITNESS_FAILS:
// so many of 100 calls fail, but none of a last attempt. WITNESS_POISON names a file with lines
// "KEY N": calls that begin with that transaction fail while it has the line.
void RegisterWitness(muster::handler::HandlerRegistry& handlers);
