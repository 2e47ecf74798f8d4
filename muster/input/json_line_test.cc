// SPDX-License-Identifier: Apache-2.0

// What JsonLineParser reads is what nlohmann's parser reads, and what it refuses is refused for the
// same reason.
#include "muster/input/json_line.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/text.h"

namespace muster::input {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

// The same by nlohmann's parser, which muster used before: receives its events.
class Oracle {
 public:
  explicit Oracle(const std::vector<std::string>* members)
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
  bool binary(json::binary_t& /*value*/) { return true; }  // never in JSON text

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

  bool parse_error(size_t position, const std::string& /*token*/, const json::exception& error) {
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

  // Escapes only what JSON demands, so the text is never longer than it was in the input.
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

// A line as it was read: the fields, or only why it is refused.
struct Reading {
  std::string refusal;
  std::vector<std::string> fields;

  friend bool operator==(const Reading&, const Reading&) = default;
};

class JsonLineTest : public ::testing::Test {
 protected:
  Reading Read(absl::string_view line) {
    std::vector<absl::string_view> fields(members_.size());
    std::vector<char> room(line.size() + 1);
    char* at = room.data();
    Reading reading{parser_.Parse(line, fields.data(), &at), {}};
    EXPECT_LE(at, room.data() + line.size());
    if (!reading.refusal.empty()) return reading;
    for (const absl::string_view field : fields) reading.fields.emplace_back(field);
    return reading;
  }

  Reading ReadByOracle(absl::string_view line) {
    std::vector<absl::string_view> fields(members_.size());
    std::vector<char> room(line.size() + 1);
    Oracle oracle(&members_);
    oracle.Begin(fields.data(), room.data());
    Reading reading;
    if (json::sax_parse(line.data(), line.data() + line.size(), &oracle)) {
      for (const absl::string_view field : fields) reading.fields.emplace_back(field);
    } else {
      reading.refusal = oracle.error();
    }
    return reading;
  }

  void ExpectTheSame(const std::string& line) {
    const Reading read = Read(line), expected = ReadByOracle(line);
    EXPECT_EQ(read.refusal, expected.refusal) << line;
    EXPECT_EQ(read.fields, expected.fields) << line;
  }

  const std::vector<std::string> members_ = {"a", "b", "ab"};
  JsonLineParser parser_{&members_};
};

TEST_F(JsonLineTest, KeepsNumbersAsTheyAreWritten) {
  EXPECT_THAT(Read(R"({"a": 0.10, "b": 123456789012345678901234567890, "ab": -1e-7 })").fields,
              ElementsAre("0.10", "123456789012345678901234567890", "-1e-7"));
}

TEST_F(JsonLineTest, ReadsTheSameAsNlohmannWhateverTheLineIs) {
  for (const char* line : {
           R"({})",
           R"({"a":"x","b":1,"ab":true})",
           R"( { "a" : null , "b" : [ null ] } )",
           R"({"a":{"k":[1,2.50,"\u00e9\n",{"x":false}]},"b":"\u0000\u001f\"","ab":-0})",
           R"({"other":{"a":1},"a":"\ud83d\ude00"})",
           R"({"a":1,"a":2})",
           R"({"x":1,"x":2})",
           R"({"a":tru})",
           R"({"x":tru})",
           R"({"x":nul})",
           R"({"a":01})",
           R"({"x":1.})",
           R"({"a":1e999})",
           R"({"x":-})",
           R"({"a":1 2})",
           R"({"a":1}})",
           R"({"a":1},)",
           R"({"a":1)",
           R"({"a")",
           R"({"a":"x)",
           R"({"a":"\ud800"})",
           R"({"a":"\x"})",
           R"({a:1})",
           R"({"a":1,})",
           R"([1])",
           R"([tru])",
           R"(12)",
           R"("a")",
           R"(null)",
           R"(nul)",
           R"()",
           R"( )",
           R"(hello)",
           R"({"a":"tab	tab"})",
           R"({"a":[1,]})",
           R"({"a":[}})",
           R"({"x":[[[1,2],[]],{}]})",
           "\xef\xbb\xbf{\"a\":1}",
           R"({"a":1,"a":)",
           R"({"a":[{"b":1,"b":2}]})",
       }) {
    ExpectTheSame(line);
  }
}

TEST_F(JsonLineTest, ReadsTheSameAsNlohmannOfLinesThatWereDamaged) {
  const std::string whole =
      R"({"a":"caf\u00e9","x":[1,-2.5e3,{"b":null}],"b":{"k":[true,"q\"",""]},"ab":12})";
  constexpr absl::string_view kBytes = "{}[]\",:\\ 0123-.eEtrufalsn\t";
  for (uint32_t seed = 0; seed < 20'000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    std::string line = whole;
    for (uint32_t damages = 1 + random() % 3; damages > 0 && !line.empty(); --damages) {
      const size_t at = random() % line.size();
      switch (random() % 4) {
        case 0:
          line.erase(at, 1 + random() % 4);
          break;
        case 1:
          line.insert(at, 1, kBytes[random() % kBytes.size()]);
          break;
        case 2:
          line[at] = kBytes[random() % kBytes.size()];
          break;
        default:
          line.insert(at, line.substr(random() % line.size(), random() % 12));
      }
    }
    ExpectTheSame(line);
    if (HasFailure()) break;
  }
}

// Else a line of brackets would exhaust the stack of a worker.
// Parses `line` for members "id", "address.city" and "address.geo.lat".
struct Nested {
  std::vector<absl::string_view> fields = std::vector<absl::string_view>(3);
  std::string refusal;
  std::string room;

  explicit Nested(absl::string_view line) : room(line.size(), ' ') {
    const std::vector<std::string> members = {"id", "address.city", "address.geo.lat"};
    char* at = room.data();
    refusal = JsonLineParser(&members).Parse(line, fields.data(), &at);
  }
};

TEST(JsonPathTest, ReadsMembersWithinMembers) {
  const Nested nested(
      R"({"address": {"city": "Ulm", "geo": {"lat": 48.40, "lon": 1}, "zip": [1]}, "id": 7})");
  EXPECT_EQ(nested.refusal, "");
  EXPECT_THAT(nested.fields, ElementsAre("7", "Ulm", "48.40"));
}

TEST(JsonPathTest, IsEmptyWhereAMemberOfThePathIsMissingOrNoObject) {
  EXPECT_THAT(Nested(R"({"id": 7, "address": {"geo": null}})").fields, ElementsAre("7", "", ""));
  EXPECT_THAT(Nested(R"({"id": 7, "address": "Ulm"})").fields, ElementsAre("7", "", ""));
  EXPECT_THAT(Nested(R"({"id": 7, "address": [{"city": "Ulm"}]})").fields,
              ElementsAre("7", "", ""));
}

TEST(JsonPathTest, AMemberWithThatVeryNameCounts) {
  EXPECT_THAT(Nested(R"({"address.city": "Ulm", "address": {"zip": 1}})").fields,
              ElementsAre("", "Ulm", ""));
}

TEST(JsonPathTest, RefusesALineThatHasTwoOfThem) {
  EXPECT_EQ(Nested(R"({"address.city": "Ulm", "address": {"city": "Bern"}})").refusal,
            "the member 'address.city' is there twice");
  EXPECT_EQ(Nested(R"({"address": {"city": "Ulm"}, "address": {"city": "Bern"}})").refusal,
            "the member 'address.city' is there twice");
}

TEST(JsonPathTest, RefusesWhatIsNoJsonWithinAPath) {
  EXPECT_NE(Nested(R"({"address": {"city": Ulm}})").refusal, "");
  EXPECT_NE(Nested(R"({"address": {"zip": tru}})").refusal, "");
  EXPECT_NE(Nested(R"({"address": {"city": "Ulm")").refusal, "");
}

TEST_F(JsonLineTest, RefusesNestingThatNoRecordHas) {
  const std::string deep =
      absl::StrCat("{\"a\":", std::string(5'000'000, '['), std::string(5'000'000, ']'), "}");
  EXPECT_THAT(Read(deep).refusal, HasSubstr("brackets nest deeper than 1000"));
  EXPECT_EQ(Read(R"({"a":[[1]]})").fields[0], "[[1]]") << "the next line is read";
}

}  // namespace
}  // namespace muster::input
