// SPDX-License-Identifier: Apache-2.0

// Environment variables that look as if muster read them, and that no program of muster reads: a
// misspelt MUSTER_LEASES would have no effect, and nobody would be told.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace CLI {
class App;
}  // namespace CLI

namespace muster::host {

struct UnknownVariable {
  std::string name;
  std::string meant;  // the known one that is near; empty: none is
};

// Those of `environment`, which is of NAME=VALUE. All that any program of muster reads are known,
// since services share files of variables. Left out are those of Kubernetes, which tells each
// container of a Service muster-x as MUSTER_X_SERVICE_HOST, MUSTER_X_PORT and so on, and those of
// the tests.
std::vector<UnknownVariable> UnknownVariables(absl::Span<const absl::string_view> environment);

// The same of this process. No other thread may change its environment meanwhile.
std::vector<UnknownVariable> UnknownVariables();

// Logs each of this process: as a warning if a known one is near, and otherwise for debugging,
// since what runs beside muster may have variables of its own. What a service does at its start.
void WarnOfUnknownVariables();

// Stops the process if an option of `app` or of its commands has a variable that is not known here.
// In builds for tests only: no program can set it right.
void CheckVariablesAreKnown(const CLI::App& app);

}  // namespace muster::host
