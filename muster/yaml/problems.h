// Problems: collects the mistakes of one file.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster::yaml {

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
  // `file` may be empty: a text that came from none.
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
