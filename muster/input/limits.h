// Every bound of reading input, with its reason.
#pragma once

#include <cstddef>

namespace muster::input {

// A transaction is a record of some hundred bytes; one of a mebibyte is a mistake (a file without
// line ends, a quote that swallows the rest). It also bounds how far a reader looks ahead.
inline constexpr size_t kMaxRecordBytes = size_t{1} << 20;
// Read at once, at least: large enough that system calls vanish, small enough for a core's cache.
inline constexpr size_t kWindowBytes = size_t{1} << 20;

}  // namespace muster::input
