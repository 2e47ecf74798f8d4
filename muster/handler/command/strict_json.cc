// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/command/strict_json.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/text.h"

namespace muster::handler::command {

namespace {

using nlohmann::json;

constexpr size_t kShownNameBytes = 64;

constexpr size_t kShownAround = 24;  // bytes before a wrong place, and from it on

// "at `REST` behind `TEXT BEFORE`", each cut: the author of a program knows its answer by the
// words, not by the numbers of bytes.
std::string Surroundings(absl::string_view text, size_t place) {
  size_t begin = place - std::min(place, kShownAround);
  while (begin < place && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) ++begin;
  const absl::string_view rest = text.substr(place);
  std::string shown = rest.empty() ? "where it ends"
                                   : absl::StrCat("at `", base::Printable(rest, kShownAround),
                                                  rest.size() > kShownAround ? "…`" : "`");
  if (place == 0) return shown;
  return absl::StrCat(shown, " behind `", begin > 0 ? "…" : "",
                      base::Printable(text.substr(begin, place - begin), kShownAround), "`");
}

// What people mean who write `token`, which is where JSON ends.
absl::string_view HintOn(absl::string_view token) {
  if (!token.empty() && token.back() == '\'') {
    return ", a single quote, as when Python prints a dict: print json.dumps(answer)";
  }
  for (const absl::string_view word : {"Tr", "Fa", "No", "Na"}) {  // True, False, None, NaN
    if (absl::EndsWith(token, word.substr(0, 1)) || absl::EndsWith(token, word)) {
      return ", a word that JSON does not have: it has true, false and null, and no NaN";
    }
  }
  return "";
}

// Builds the value as the parser goes along. The parser's own builders will not do: one keeps the
// last of two members of the same name, and the one that asks a callback searches a whole array
// for discarded elements each time that an element ends.
class StrictReader final : public nlohmann::json_sax<json> {
 public:
  // `text` is what is read, and has to outlive this.
  StrictReader(absl::string_view text, int max_depth)
      : text_(text), max_depth_(static_cast<size_t>(max_depth)) {}

  bool null() override { return Add(json(nullptr)); }
  bool boolean(bool value) override { return Add(json(value)); }
  bool number_integer(json::number_integer_t value) override { return Add(json(value)); }
  bool number_unsigned(json::number_unsigned_t value) override { return Add(json(value)); }
  bool number_float(json::number_float_t value, const std::string&) override {
    return Add(json(value));
  }
  bool string(std::string& value) override { return Add(json(std::move(value))); }
  bool binary(json::binary_t&) override { return Refuse("binary"); }

  bool start_object(size_t) override { return Open(json::object()); }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(json::array()); }
  bool end_array() override { return Close(); }

  bool key(std::string& name) override {
    const auto [member, is_new] = open_.back()->emplace(name, nullptr);
    member_ = &*member;
    return is_new || Refuse(absl::StrCat("member \"", base::Printable(name, kShownNameBytes),
                                         "\" is there twice"));
  }

  bool parse_error(size_t position, const std::string& token, const json::exception&) override {
    // From 1, and one beyond the text where that ends too soon.
    const size_t place = std::min(position - std::min<size_t>(position, 1), text_.size());
    return Refuse(absl::StrCat("not JSON in UTF-8: byte ", place + 1, ", ",
                               Surroundings(text_, place), HintOn(token)));
  }

  json TakeValue() { return std::move(root_); }
  const std::string& problem() const { return problem_; }

 private:
  bool Add(json value) {
    Place(std::move(value));
    return true;
  }

  bool Open(json container) {
    if (open_.size() == max_depth_) return Refuse("brackets nest too deeply");
    open_.push_back(Place(std::move(container)));
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  // Pointers into arrays stay good while they are on the stack: a sibling comes only after Close.
  json* Place(json value) {
    json* place = &root_;
    if (!open_.empty() && open_.back()->is_array()) {
      open_.back()->push_back(nullptr);
      place = &open_.back()->back();
    } else if (!open_.empty()) {
      place = member_;
    }
    *place = std::move(value);
    return place;
  }

  bool Refuse(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  const absl::string_view text_;
  const size_t max_depth_;
  json root_;
  std::vector<json*> open_;  // objects and arrays, the innermost last
  json* member_ = nullptr;   // of the innermost object: where its next value goes
  std::string problem_;
};

}  // namespace

absl::StatusOr<json> ParseStrictJson(absl::string_view text, int max_depth) {
  StrictReader reader(text, max_depth);
  if (!json::sax_parse(text.begin(), text.end(), &reader)) {
    return absl::InvalidArgumentError(reader.problem());
  }
  return reader.TakeValue();
}

}  // namespace muster::handler::command
