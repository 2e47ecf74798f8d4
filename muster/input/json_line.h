// SPDX-License-Identifier: Apache-2.0

// JsonLineParser: takes the wanted members out of one JSON object after the other, by simdjson.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::input {

// Not thread-safe.
class JsonLineParser {
 public:
  // `members` is not owned.
  explicit JsonLineParser(const std::vector<std::string>* members);
  ~JsonLineParser();

  // A member "address.city" is that of the line, if it has one of this very name, or else the
  // member city of the object that is its member address. Of two that one name fits, the line is
  // refused.
  //
  // Writes one text per member to `fields`: a string's text; a number, true or false as written; a
  // nested value as compact JSON; "" for null and for a member that is absent. The texts lie in
  // `*room`, which must have line.size() bytes left and is moved on. Returns "", or why `line` is
  // refused: it is not JSON, not an object, or has a wanted member twice.
  std::string Parse(absl::string_view line, absl::string_view* fields, char** room);

 private:
  class Reader;
  const std::unique_ptr<Reader> reader_;
};

}  // namespace muster::input
