// SPDX-License-Identifier: Apache-2.0

// Another NATS client (nats_tool.py, over nats-py), which shows that it can read muster's data and
// muster can read its data.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace muster::nats::testing {

// Returns the output of the tool without the line feed. MUSTER_PYTHON names the Python to run; the
// default is python3. Returns nullopt where that Python has no nats-py, which Debian does not
// package: the test then skips. Returns "failed" and the exit code when the tool failed; the reason
// is on stderr.
std::optional<std::string> RunNatsTool(const std::vector<std::string>& arguments);

}  // namespace muster::nats::testing
