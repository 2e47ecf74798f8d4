// SPDX-License-Identifier: Apache-2.0
#include "muster/input/json_line.h"

#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/text.h"

namespace muster::input {
namespace {

using nlohmann::json;
using simdjson::error_code;
using simdjson::ondemand::json_type;
using Value = simdjson::ondemand::value;

// Bounds the stack; records do not nest so deeply.
constexpr int kMaxDepth = 1000;

constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";

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

std::string NotAnObject() { return "not a JSON object"; }

std::string Twice(absl::string_view member) {
  return absl::StrCat("the member ", base::Quoted(member), " is there twice");
}

// Finds the first thing that is wrong with a line, and its place, which simdjson does not tell.
// Slow: only for lines that are refused. Receives the events of nlohmann's parser.
class Explainer final : public nlohmann::json_sax<json> {
 public:
  explicit Explainer(const std::vector<std::string>& members) : missing_(members) {}

  const std::string& error() const { return error_; }

  bool null() override { return Scalar(); }
  bool boolean(bool) override { return Scalar(); }
  bool number_integer(int64_t) override { return Scalar(); }
  bool number_unsigned(uint64_t) override { return Scalar(); }
  bool number_float(double, const std::string&) override { return Scalar(); }
  bool string(std::string&) override { return Scalar(); }
  bool binary(json::binary_t&) override { return Scalar(); }
  bool start_object(size_t) override { return ++depth_ > 0; }
  bool end_object() override { return --depth_ >= 0; }
  bool start_array(size_t) override { return Scalar() && ++depth_ > 0; }
  bool end_array() override { return --depth_ >= 0; }

  bool key(std::string& name) override {
    if (depth_ > 1) return true;
    if (std::find(seen_.begin(), seen_.end(), name) != seen_.end()) return Refuse(Twice(name));
    const auto wanted = std::find(missing_.begin(), missing_.end(), name);
    if (wanted != missing_.end()) seen_.push_back(name);
    return true;
  }

  bool parse_error(size_t position, const std::string&, const json::exception& error) override {
    return Refuse(absl::StrCat("not JSON: byte ", position, ": ", WhatIsWrong(error.what())));
  }

 private:
  bool Scalar() { return depth_ > 0 || Refuse(NotAnObject()); }

  bool Refuse(std::string error) {
    error_ = std::move(error);
    return false;
  }

  const std::vector<std::string>& missing_;
  std::vector<std::string> seen_;
  int depth_ = 0;
  std::string error_;
};

}  // namespace

// Visits every value of a line, also what is not wanted: simdjson checks only what it is asked for.
class JsonLineParser::Reader {
 public:
  explicit Reader(const std::vector<std::string>* members)
      : members_(*members),
        has_paths_(std::any_of(members->begin(), members->end(),
                               [](const auto& member) { return absl::StrContains(member, '.'); })),
        seen_(members->size()) {}

  std::string Parse(absl::string_view line, absl::string_view* fields, char** room) {
    std::fill(seen_.begin(), seen_.end(), uint8_t{0});
    std::fill(fields, fields + members_.size(), absl::string_view(""));  // never null
    out_ = *room;
    depth_ = 0;
    const error_code error = ReadLine(line, fields);
    if (error != simdjson::SUCCESS) return Explain(line, error);
    *room = out_;
    return "";
  }

 private:
  static constexpr size_t kNotWanted = ~size_t{0};

  error_code ReadLine(absl::string_view line, absl::string_view* fields) {
    absl::ConsumePrefix(&line, kByteOrderMark);
    // simdjson reads behind the end of what it parses.
    if (padded_.size() < line.size() + simdjson::SIMDJSON_PADDING) {
      padded_.resize(2 * line.size() + simdjson::SIMDJSON_PADDING);
    }
    std::memcpy(padded_.data(), line.data(), line.size());
    simdjson::ondemand::document document;
    simdjson::ondemand::object object;
    if (const auto error =
            parser_.iterate(padded_.data(), line.size(), padded_.size()).get(document)) {
      return error;
    }
    if (const auto error = document.get_object().get(object)) return error;
    if (const auto error = ReadMembers(object, "", fields)) return error;
    const char* rest = nullptr;  // what follows the object; an error says that nothing does
    return document.current_location().get(rest) == simdjson::SUCCESS ? simdjson::TAPE_ERROR
                                                                      : simdjson::SUCCESS;
  }

  // `path` leads to the object, with a dot behind it; empty: it is the line itself.
  error_code ReadMembers(simdjson::ondemand::object object, std::string_view path,
                         absl::string_view* fields) {
    for (auto member : object) {
      std::string_view name;
      if (const auto error = member.unescaped_key().get(name)) return error;
      Value value;
      if (const auto error = member.value().get(value)) return error;
      std::string nested;
      if (!path.empty()) {
        nested.append(path).append(name);
        name = nested;
      }
      if (const auto error = ReadMemberAt(name, value, fields)) return error;
    }
    return simdjson::SUCCESS;
  }

  error_code ReadMemberAt(std::string_view name, Value value, absl::string_view* fields) {
    const size_t index = IndexOf(name);
    if (index != kNotWanted && std::exchange(seen_[index], uint8_t{1})) {
      twice_ = name;
      return kTwice;
    }
    if (index == kNotWanted && LeadsToWanted(name)) {
      json_type type;
      if (const auto error = value.type().get(type)) return error;
      simdjson::ondemand::object inner;
      if (type == json_type::object) {
        if (const auto error = value.get_object().get(inner)) return error;
        return ReadMembers(inner, std::string(name) + ".", fields);
      }
    }
    writes_ = index != kNotWanted;
    const char* const begin = out_;
    if (const auto error = ReadMember(value)) return error;
    if (writes_) fields[index] = absl::string_view(begin, static_cast<size_t>(out_ - begin));
    return simdjson::SUCCESS;
  }

  // Some wanted member lies within the one with this name.
  bool LeadsToWanted(std::string_view name) const {
    return has_paths_ && std::any_of(members_.begin(), members_.end(), [&](const auto& wanted) {
             return wanted.size() > name.size() && wanted[name.size()] == '.' &&
                    absl::StartsWith(wanted, absl::string_view(name.data(), name.size()));
           });
  }

  size_t IndexOf(std::string_view name) const {
    const auto found = std::find(members_.begin(), members_.end(), name);
    return found == members_.end() ? kNotWanted : static_cast<size_t>(found - members_.begin());
  }

  // The value of a member of the line's object: a string is its text, and null is "".
  error_code ReadMember(Value value) {
    json_type type;
    if (const auto error = value.type().get(type)) return error;
    if (type == json_type::string) {
      std::string_view text;
      if (const auto error = value.get_string().get(text)) return error;
      Write(text);
      return simdjson::SUCCESS;
    }
    const bool is_written = writes_;
    if (type == json_type::null) writes_ = false;
    const error_code error = ReadValue(value, type);
    writes_ = is_written;
    return error;
  }

  error_code ReadValue(Value value) {
    json_type type;
    if (const auto error = value.type().get(type)) return error;
    return ReadValue(value, type);
  }

  error_code ReadValue(Value value, json_type type) {
    switch (type) {
      case json_type::object:
      case json_type::array: {
        if (depth_ == kMaxDepth) return simdjson::DEPTH_ERROR;
        ++depth_;
        const error_code error = type == json_type::object ? ReadObject(value) : ReadArray(value);
        --depth_;
        return error;
      }
      case json_type::string:
        return ReadString(value);
      case json_type::number:
        return ReadNumber(value);
      case json_type::boolean:
        return ReadBoolean(value);
      case json_type::null:
        return ReadNull(value);
      default:  // newer releases of simdjson have a type for what is no JSON
        return simdjson::TAPE_ERROR;
    }
  }

  error_code ReadObject(Value value) {
    simdjson::ondemand::object object;
    if (const auto error = value.get_object().get(object)) return error;
    Write("{");
    bool first = true;
    for (auto member : object) {
      std::string_view name;
      if (const auto error = member.unescaped_key().get(name)) return error;
      Write(std::exchange(first, false) ? "" : ",");
      WriteEscaped(name);
      Write(":");
      Value inner;
      if (const auto error = member.value().get(inner)) return error;
      if (const auto error = ReadValue(inner)) return error;
    }
    Write("}");
    return simdjson::SUCCESS;
  }

  error_code ReadArray(Value value) {
    simdjson::ondemand::array array;
    if (const auto error = value.get_array().get(array)) return error;
    Write("[");
    bool first = true;
    for (auto element : array) {
      Write(std::exchange(first, false) ? "" : ",");
      Value inner;
      if (const auto error = element.get(inner)) return error;
      if (const auto error = ReadValue(inner)) return error;
    }
    Write("]");
    return simdjson::SUCCESS;
  }

  error_code ReadString(Value value) {
    std::string_view text;
    if (const auto error = value.get_string().get(text)) return error;
    WriteEscaped(text);
    return simdjson::SUCCESS;
  }

  // The number as it is written: a double would lose decimals.
  error_code ReadNumber(Value value) {
    std::string_view text = value.raw_json_token();
    text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
    double unused;
    if (const auto error = value.get_double().get(unused)) return error;
    Write(text == "-0" ? "0" : text);
    return simdjson::SUCCESS;
  }

  error_code ReadBoolean(Value value) {
    bool is_true = false;
    if (const auto error = value.get_bool().get(is_true)) return error;
    Write(is_true ? "true" : "false");
    return simdjson::SUCCESS;
  }

  error_code ReadNull(Value value) {
    std::string_view text = value.raw_json_token();
    text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
    if (text != "null") return simdjson::N_ATOM_ERROR;
    Write(text);
    return simdjson::SUCCESS;
  }

  void Write(std::string_view text) {
    if (!writes_ || text.empty()) return;
    std::memcpy(out_, text.data(), text.size());
    out_ += text.size();
  }

  // Escapes only what JSON demands, so the text is never longer than it was in the input.
  void WriteEscaped(std::string_view text) {
    if (!writes_) return;
    Write("\"");
    for (const char& c : text) {
      static constexpr absl::string_view kShort = "\b\f\n\r\t\"\\";
      static constexpr absl::string_view kLetter = "bfnrt\"\\";
      const size_t found = kShort.find(c);
      if (found != absl::string_view::npos) {
        const char escape[] = {'\\', kLetter[found]};
        Write(std::string_view(escape, 2));
      } else if (static_cast<uint8_t>(c) < 0x20) {
        Write(absl::StrCat("\\u", absl::Hex(c, absl::kZeroPad4)));
      } else {
        Write(std::string_view(&c, 1));
      }
    }
    Write("\"");
  }

  std::string Explain(absl::string_view line, error_code error) const {
    Explainer explainer(members_);
    json::sax_parse(line.data(), line.data() + line.size(), &explainer);
    if (!explainer.error().empty()) return explainer.error();
    if (error == kTwice) return Twice(twice_);
    if (error == simdjson::DEPTH_ERROR) {
      return absl::StrCat("brackets nest deeper than ", kMaxDepth);
    }
    return absl::StrCat("not JSON: ", simdjson::error_message(error));
  }

  // Tells ReadLine's caller to explain the line: the code itself is never shown.
  static constexpr error_code kTwice = simdjson::UNEXPECTED_ERROR;

  const std::vector<std::string>& members_;
  const bool has_paths_;       // some may lie within others
  std::vector<uint8_t> seen_;  // by member
  std::string twice_;          // the member of the last kTwice
  simdjson::ondemand::parser parser_;
  std::string padded_;   // a copy of the line
  bool writes_ = false;  // the member that is being read is wanted
  int depth_ = 0;        // of the value that is being read
  char* out_ = nullptr;
};

JsonLineParser::JsonLineParser(const std::vector<std::string>* members)
    : reader_(std::make_unique<Reader>(members)) {}

JsonLineParser::~JsonLineParser() = default;

std::string JsonLineParser::Parse(absl::string_view line, absl::string_view* fields, char** room) {
  return reader_->Parse(line, fields, room);
}

}  // namespace muster::input
