// Every bound of a file that a person writes in YAML, with its reason.
#pragma once

#include <cstddef>

namespace muster::yaml {

inline constexpr int kMaxProblems = 50;  // reported at once
// Of one problem: it may quote a key, which may be as long as the file.
inline constexpr size_t kMaxProblemBytes = 1024;

// Names become names of queues, tables and columns.
inline constexpr size_t kMaxNameBytes = 40;
// Header texts, member names, arguments: whatever a sane file holds.
inline constexpr size_t kMaxTextBytes = 4096;

}  // namespace muster::yaml
