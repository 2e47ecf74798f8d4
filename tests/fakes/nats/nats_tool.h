// Another client of NATS (nats_tool.py, over nats-py), to show that it reads what muster wrote, and
// the other way round.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace muster::nats::testing {

// What the tool printed, without the line feed. MUSTER_PYTHON says which Python runs it; python3.
// nullopt where that has no nats-py: Debian does not package it, so a test skips then. "failed" and
// its exit code, when it failed; it says why on stderr.
std::optional<std::string> RunNatsTool(const std::vector<std::string>& arguments);

}  // namespace muster::nats::testing
