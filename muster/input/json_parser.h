// JsonLineParser: the jsonl part of RecordParser.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::input {

// Takes the wanted members out of one JSON object after the other. Not thread-safe.
class JsonLineParser {
 public:
  // `members` is not owned.
  explicit JsonLineParser(const std::vector<std::string>* members);
  ~JsonLineParser();

  // Writes one text per member to `fields`; what is not as it stands in `line` is written to
  // `*room`, which must have line.size() bytes left and is moved on. Answers "", or why `line` is
  // refused.
  std::string Parse(absl::string_view line, absl::string_view* fields, char** room);

 private:
  class Collector;
  const std::unique_ptr<Collector> collector_;
};

}  // namespace muster::input
