// SPDX-License-Identifier: Apache-2.0

// Problems: collects the mistakes of one YAML file; and the bounds of such files, each with its
// reason.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster::yaml {

inline constexpr int kMaxProblems = 50;  // reported at once
// Of one problem: it may quote a key, which may be as long as the file.
inline constexpr size_t kMaxProblemBytes = 1024;

// Names become names of queues, tables and columns.
inline constexpr size_t kMaxNameBytes = 40;
// Header texts, member names, arguments: more than any sane file holds.
inline constexpr size_t kMaxTextBytes = 4096;

// Problems: collects the mistakes of one file.

// Where something stands in a file; both from 1.
struct Place {
  int line = 1;
  int column = 1;
};

// A mistake in a file.
struct Problem {
  Place place;
  std::string message;  // one line
};

// Not thread-safe.
class Problems {
 public:
  // `file` may be empty: the text came from no file.
  explicit Problems(absl::string_view file) : file_(file) {}

  // A message is one line: what is not printable UTF-8 in it becomes "?", and a long one is cut.
  // Keys of the file, and what the YAML reader says, come as they are.
  void Add(Place place, absl::string_view message);
  bool empty() const { return problems_.empty(); }

  // In the order of the file, however many.
  std::vector<Problem> InOrder() const;
  // OK, or InvalidArgument with the first kMaxProblems of them, each after the file's name, if it
  // has one.
  absl::Status ToStatus() const;

 private:
  const std::string file_;
  std::vector<Problem> problems_;
};

}  // namespace muster::yaml
