// Problems: the mistakes of one job file.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster::job {

// Where something stands in a file; both from 1.
struct Place {
  int line = 1;
  int column = 1;
};

// Not thread-safe.
class Problems {
 public:
  explicit Problems(absl::string_view file) : file_(file) {}

  // A message is one line: what is not printable UTF-8 in it becomes "?", and a long one is cut.
  // Keys of the file, and what the YAML reader says, come as they are.
  void Add(Place place, absl::string_view message);
  bool empty() const { return problems_.empty(); }

  // OK, or InvalidArgument with all of them in the order of the file.
  absl::Status ToStatus() const;

 private:
  struct Problem {
    Place place;
    std::string message;
  };

  const std::string file_;
  std::vector<Problem> problems_;
};

}  // namespace muster::job
