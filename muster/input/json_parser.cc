#include "muster/input/json_parser.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "muster/base/nearest_name.h"

namespace muster::input {
namespace {

using Json = nlohmann::json;

// From nlohmann's "[json.exception…] parse error at line 1, column 8: syntax error while parsing
// value - invalid literal; last read: '…'" the part that says what is wrong.
std::string WhatIsWrong(absl::string_view what) {
  const size_t dash = what.find(" - ");
  if (dash != absl::string_view::npos) what.remove_prefix(dash + 3);
  const size_t from = dash == absl::string_view::npos ? what.rfind("] ") : absl::string_view::npos;
  if (from != absl::string_view::npos) what.remove_prefix(from + 2);
  what = what.substr(0, what.find("; last read"));
  return std::string(what.substr(0, base::kMaxQuotedBytes));
}

}  // namespace

// Receives the events of nlohmann's parser (its SAX interface; the names are the library's).
class JsonLineParser::Collector {
 public:
  explicit Collector(const std::vector<std::string>* members)
      : members_(*members), seen_(members->size()) {}

  void Begin(absl::string_view* fields, char* room) {
    fields_ = fields;
    room_ = room;
    depth_ = 0;
    wanted_ = kNotWanted;
    comma_ = false;
    error_.clear();
    std::fill(seen_.begin(), seen_.end(), uint8_t{0});
    std::fill(fields, fields + members_.size(), absl::string_view(""));  // never null
  }
  char* room() const { return room_; }
  const std::string& error() const { return error_; }

  bool null() { return depth_ == 1 ? Scalar("") : Scalar("null"); }
  bool boolean(bool value) { return Scalar(value ? "true" : "false"); }
  bool number_integer(int64_t value) { return Scalar(absl::AlphaNum(value).Piece()); }
  bool number_unsigned(uint64_t value) { return Scalar(absl::AlphaNum(value).Piece()); }
  bool number_float(double /*value*/, const std::string& text) { return Scalar(text); }
  bool binary(Json::binary_t& /*value*/) { return true; }  // never in JSON text

  bool string(const std::string& value) {
    if (depth_ <= 1) return Scalar(value);
    if (!BeginValue()) return false;
    Escaped(value);
    return true;
  }

  bool start_object(size_t /*members*/) { return Open('{'); }
  bool end_object() { return Close('}'); }
  bool start_array(size_t /*elements*/) { return depth_ > 0 ? Open('[') : NotAnObject(); }
  bool end_array() { return Close(']'); }

  bool key(const std::string& name) {
    if (depth_ == 1) return Want(name);
    if (comma_) Write(",");
    Escaped(name);
    Write(":");
    comma_ = false;
    return true;
  }

  bool parse_error(size_t position, const std::string& /*token*/, const Json::exception& error) {
    error_ = absl::StrCat("not JSON: byte ", position, ": ", WhatIsWrong(error.what()));
    return false;
  }

 private:
  static constexpr size_t kNotWanted = ~size_t{0};

  bool NotAnObject() {
    error_ = "not a JSON object";
    return false;
  }

  bool Want(const std::string& name) {
    const auto found = std::find(members_.begin(), members_.end(), name);
    wanted_ = found == members_.end() ? kNotWanted : static_cast<size_t>(found - members_.begin());
    if (wanted_ == kNotWanted || !std::exchange(seen_[wanted_], uint8_t{1})) return true;
    error_ = absl::StrCat("the member ", base::Quoted(name), " is there twice");
    return false;
  }

  bool BeginValue() {
    if (depth_ == 0) return NotAnObject();
    if (depth_ == 1) value_ = room_;
    if (comma_) Write(",");
    comma_ = depth_ > 1;
    return true;
  }

  void EndValue() {
    if (depth_ != 1) return;
    comma_ = false;
    if (wanted_ == kNotWanted) return;
    fields_[wanted_] = absl::string_view(value_, static_cast<size_t>(room_ - value_));
  }

  bool Scalar(absl::string_view text) {
    if (!BeginValue()) return false;
    Write(text);
    EndValue();
    return true;
  }

  bool Open(char bracket) {
    if (depth_ > 0 && !BeginValue()) return false;
    if (depth_++ > 0) Write(absl::string_view(&bracket, 1));
    comma_ = false;
    return true;
  }

  bool Close(char bracket) {
    if (--depth_ == 0) return true;
    Write(absl::string_view(&bracket, 1));
    comma_ = true;
    EndValue();
    return true;
  }

  void Write(absl::string_view text) {
    if (wanted_ == kNotWanted || text.empty()) return;
    std::memcpy(room_, text.data(), text.size());
    room_ += text.size();
  }

  // Only what JSON demands: whatever is escaped here was escaped at least as long in the input.
  void Escaped(absl::string_view text) {
    Write("\"");
    for (const char& c : text) {
      static constexpr absl::string_view kShort = "\b\f\n\r\t\"\\";
      static constexpr absl::string_view kLetter = "bfnrt\"\\";
      const size_t found = kShort.find(c);
      if (found != absl::string_view::npos) {
        const char escape[] = {'\\', kLetter[found]};
        Write(absl::string_view(escape, 2));
      } else if (static_cast<uint8_t>(c) < 0x20) {
        Write(absl::StrCat("\\u", absl::Hex(c, absl::kZeroPad4)));
      } else {
        Write(absl::string_view(&c, 1));
      }
    }
    Write("\"");
  }

  const std::vector<std::string>& members_;
  std::vector<uint8_t> seen_;  // by member
  absl::string_view* fields_ = nullptr;
  char* room_ = nullptr;
  char* value_ = nullptr;  // where the wanted member's text begins
  int depth_ = 0;
  size_t wanted_ = kNotWanted;
  bool comma_ = false;  // due before the next element or key of a nested value
  std::string error_;
};

JsonLineParser::JsonLineParser(const std::vector<std::string>* members)
    : collector_(std::make_unique<Collector>(members)) {}

JsonLineParser::~JsonLineParser() = default;

std::string JsonLineParser::Parse(absl::string_view line, absl::string_view* fields, char** room) {
  collector_->Begin(fields, *room);
  if (!Json::sax_parse(line.data(), line.data() + line.size(), collector_.get())) {
    return collector_->error().empty() ? "not JSON" : collector_->error();
  }
  *room = collector_->room();
  return "";
}

}  // namespace muster::input
