// SPDX-License-Identifier: Apache-2.0
#include "muster/yaml/yaml_value.h"

#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <sstream>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "muster/base/quantity.h"
#include "muster/base/text.h"

namespace muster::yaml {

namespace {

Place PlaceOf(const YAML::Node& node) {
  const YAML::Mark mark = node.Mark();
  return mark.is_null() ? Place{} : Place{mark.line + 1, mark.column + 1};
}

std::string Join(const std::string& path, const std::string& key) {
  return path.empty() ? key : absl::StrCat(path, ".", key);
}

bool LooksLikeNumber(const std::string& text) {
  double number;
  return !text.empty() && (absl::ascii_isdigit(text[0]) || absl::StrContains("+-.", text[0])) &&
         absl::SimpleAtod(text, &number);
}

// What YAML's readers, old and new ones, take for null or a truth value when it is not quoted.
bool LooksLikeWord(const std::string& text) {
  const std::vector<std::string> words = {"",    "~",  "null", "true", "false",
                                          "yes", "no", "on",   "off"};
  return std::find(words.begin(), words.end(), absl::AsciiStrToLower(text)) != words.end();
}

bool IsPrintable(absl::string_view text) {
  while (!text.empty()) {
    const size_t bytes = text[0] == '\t' ? 1 : base::PrintableUtf8Prefix(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

// "1 to 16 entries", "2 entries".
std::string EntriesInWords(size_t min, size_t max) {
  if (min == max) return absl::StrCat(min, min == 1 ? " entry" : " entries");
  return absl::StrCat(min, " to ", max, " entries");
}

bool IsName(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes && absl::ascii_islower(text[0]) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_' || c == '-';
         });
}

}  // namespace

YamlValue::YamlValue(const YAML::Node& node, std::string path, Problems* problems)
    : node_(node), path_(std::move(path)), problems_(problems), present_(true) {}

YamlValue YamlValue::AbsentEntry(const std::string& key) const {
  YamlValue value(YAML::Node(), Join(path_, key), problems_);
  value.present_ = false;
  return value;
}

bool YamlValue::IsPlain() const { return node_.IsScalar() && node_.Tag() == "?"; }
bool YamlValue::IsNumber() const { return present_ && IsPlain() && LooksLikeNumber(Raw()); }
std::string YamlValue::Raw() const { return node_.IsScalar() ? node_.Scalar() : ""; }

std::string YamlValue::Shown() const {
  if (node_.IsMap()) return absl::StrCat("a map of ", node_.size());
  if (node_.IsSequence()) return absl::StrCat("a list of ", node_.size());
  return node_.IsNull() || Raw().empty() ? "empty" : base::Quoted(Raw());
}

void YamlValue::Problem(absl::string_view message) const {
  BareProblem(path_.empty() ? std::string(message) : absl::StrCat(path_, ": ", message));
}

Place YamlValue::place() const { return PlaceOf(node_); }

void YamlValue::BareProblem(absl::string_view message) const { problems_->Add(place(), message); }

void YamlValue::MustBe(absl::string_view what) const {
  Problem(absl::StrCat("must be ", what, ", not ", Shown()));
}

bool YamlValue::ReadText(std::string* out) const {
  if (!present_) return false;
  if (!node_.IsScalar() || Raw().empty()) {
    MustBe("text");
    return false;
  }
  if (IsPlain() && (LooksLikeNumber(Raw()) || LooksLikeWord(Raw()))) {
    Problem(absl::StrCat("must be text; write it in quotes: \"", Raw(), "\""));
    return false;
  }
  if (Raw().size() > kMaxTextBytes || !IsPrintable(Raw())) {
    MustBe(absl::StrCat("at most ", kMaxTextBytes, " bytes of printable text"));
    return false;
  }
  *out = Raw();
  return true;
}

bool YamlValue::ReadTextOrEmpty(std::string* out) const {
  if (present_ && node_.IsNull()) {
    Problem("must be text; an empty one is written \"\"");
    return false;
  }
  if (!present_ || !node_.IsScalar() || !Raw().empty()) return ReadText(out);
  out->clear();
  return true;
}

bool YamlValue::ReadName(std::string* out) const {
  if (!present_) return false;
  if (IsPlain() && IsName(Raw()) && LooksLikeWord(Raw())) {
    Problem(absl::StrCat("must be a name; write it in quotes: \"", Raw(), "\""));
    return false;
  }
  if (!node_.IsScalar() || !IsName(Raw())) {
    MustBe(absl::StrCat("a name: a lower-case letter, then letters, digits, '_' or '-', ",
                        kMaxNameBytes, " at most"));
    return false;
  }
  *out = Raw();
  return true;
}

bool YamlValue::ReadBool(bool* out) const {
  if (!present_) return false;
  if (!IsPlain() || (Raw() != "true" && Raw() != "false")) {
    MustBe("true or false");
    return false;
  }
  *out = Raw() == "true";
  return true;
}

bool YamlValue::ReadInt(int64_t* out, int64_t min, int64_t max) const {
  if (!present_) return false;
  int64_t number;
  if (!IsNumber() || !absl::SimpleAtoi(Raw(), &number) || number < min || number > max) {
    MustBe(absl::StrCat("a whole number from ", min, " to ", max));
    return false;
  }
  *out = number;
  return true;
}

bool YamlValue::ReadInt(int* out, int64_t min, int64_t max) const {
  int64_t number;
  if (!ReadInt(&number, min, max)) return false;
  *out = static_cast<int>(number);
  return true;
}

std::optional<size_t> YamlValue::PlaceAmong(const std::vector<std::string>& words) const {
  if (!present_) return std::nullopt;
  const auto found = std::find(words.begin(), words.end(), Raw());
  if (found != words.end()) return static_cast<size_t>(found - words.begin());
  MustBe(absl::StrCat("one of ", absl::StrJoin(words, ", ")));
  return std::nullopt;
}

bool YamlValue::ReadBytes(int64_t* out, int64_t min, int64_t max) const {
  if (!present_) return false;
  const absl::StatusOr<int64_t> bytes = base::ParseBytes(Raw());
  if (!bytes.ok() || *bytes < min || *bytes > max) {
    MustBe(absl::StrCat("a size from ", base::BytesToString(min), " to ", base::BytesToString(max),
                        " such as 256KiB"));
    return false;
  }
  *out = *bytes;
  return true;
}

bool YamlValue::ReadDuration(absl::Duration* out, absl::Duration min, absl::Duration max) const {
  if (!present_) return false;
  const absl::StatusOr<absl::Duration> duration = base::ParseDuration(Raw());
  if (IsNumber() || !duration.ok() || *duration < min || *duration > max) {
    Problem(absl::StrCat("must be a duration from ", base::DurationToString(min), " to ",
                         base::DurationToString(max), " such as 30s, 5m or 1h30m, not ", Shown(),
                         IsNumber() ? absl::StrCat("; in seconds it is ", Raw(), "s") : ""));
    return false;
  }
  *out = *duration;
  return true;
}

std::vector<YamlValue> YamlValue::List(size_t min, size_t max) const {
  std::vector<YamlValue> list;
  if (!present_) return list;
  if (!node_.IsSequence() || node_.size() < min || node_.size() > max) {
    MustBe(absl::StrCat("a list of ", EntriesInWords(min, max)));
    return list;
  }
  for (const YAML::Node& entry : node_) {
    list.emplace_back(entry, absl::StrCat(path_, "[", list.size(), "]"), problems_);
  }
  return list;
}

std::vector<std::pair<YamlValue, YamlValue>> YamlValue::Entries(size_t min, size_t max) const {
  std::vector<std::pair<YamlValue, YamlValue>> entries;
  if (!present_) return entries;
  if (!node_.IsMap() || node_.size() < min || node_.size() > max) {
    MustBe(max == kAnyNumber ? "a map" : absl::StrCat("a map of ", EntriesInWords(min, max)));
    return entries;
  }
  absl::flat_hash_set<std::string> seen;
  for (const auto& entry : node_) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
    const YamlValue name(entry.first, path_, problems_);
    if (!seen.insert(key).second) {
      name.Problem(absl::StrCat("the key ", base::Quoted(key), " is there twice"));
      continue;
    }
    entries.emplace_back(name, YamlValue(entry.second, Join(path_, key), problems_));
  }
  return entries;
}

YamlMap::YamlMap(const YamlValue& value, const std::vector<std::string>& keys) : value_(value) {
  for (const auto& [name, content] : value.Entries(0, YamlValue::kAnyNumber)) {
    const std::string key = name.Raw();
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) {
      entries_.emplace_back(key, content);
      continue;
    }
    name.BareProblem(absl::StrCat("unknown key ", base::Quoted(key),
                                  value.path().empty() ? "" : absl::StrCat(" in ", value.path()),
                                  key == "<<" ? "; maps are not merged here: write the keys out"
                                              : base::DidYouMean(key, keys)));
  }
}

YamlValue YamlMap::Optional(const std::string& key) const {
  for (const auto& [name, content] : entries_) {
    if (name == key) return content;
  }
  return value_.AbsentEntry(key);
}

YamlValue YamlMap::Required(const std::string& key) const {
  YamlValue found = Optional(key);
  if (!found.present() && value_.IsMap()) {
    value_.Problem(absl::StrCat("the key '", key, "' is missing"));
  }
  return found;
}

namespace {

void RequireFewBytes(absl::string_view text, size_t max_bytes, Problems* problems) {
  if (text.size() <= max_bytes) return;
  problems->Add(
      {}, absl::StrCat(text.size(), " bytes are too many; at most ", max_bytes, " are allowed"));
}

// Counts lines up to the byte at which `text` stops being UTF-8.
void RequireUtf8(absl::string_view text, Problems* problems) {
  int line = 1;
  while (!text.empty()) {
    const size_t bytes = base::Utf8Prefix(text);
    if (bytes == 0) return problems->Add({.line = line}, "not UTF-8 text");
    if (text[0] == '\n') ++line;
    text.remove_prefix(bytes);
  }
}

// Ignores every event: for errors that only the parsing itself reveals.
class Ignore final : public YAML::EventHandler {
 public:
  using Text = const std::string&;
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, Text, YAML::anchor_t, Text) override {}
  void OnSequenceStart(const YAML::Mark&, Text, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, Text, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

// Whether `text` is more than one document. It does not ask how many: yaml-cpp finds empty
// documents without end before a comma that belongs to no list.
bool IsSeveralDocuments(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  Ignore ignore;
  return parser.HandleNextDocument(ignore) && parser.HandleNextDocument(ignore);
}

// The reader takes a tab in an indentation for text, and stumbles over what follows.
std::string HintOnTabs(absl::string_view text) {
  int line = 0;
  for (const absl::string_view content : absl::StrSplit(text, '\n')) {
    ++line;
    const size_t indentation = std::min(content.find_first_not_of(" \t"), content.size());
    if (content.substr(0, indentation).find('\t') == absl::string_view::npos) continue;
    return absl::StrCat("; line ", line, " is indented by a tab, where YAML takes spaces alone");
  }
  return "";
}

// What most likely led to an error of the reader, by its words.
std::string HintOn(absl::string_view error, absl::string_view text) {
  std::string tabs = HintOnTabs(text);
  if (!tabs.empty()) return tabs;
  if (error == YAML::ErrorMsg::MAP_VALUE) {
    return "; a key has one value, and a text with a colon and a space in it stands in quotes";
  }
  if (error == YAML::ErrorMsg::END_OF_MAP || error == YAML::ErrorMsg::END_OF_SEQ) {
    return "; the line is indented unlike those that it belongs to";
  }
  if (error == YAML::ErrorMsg::END_OF_MAP_FLOW) return "; a { before it has no }";
  if (error == YAML::ErrorMsg::END_OF_SEQ_FLOW) return "; a [ before it has no ]";
  return "";
}

// yaml-cpp reads all of a text before it counts how deep it is, and takes 150 bytes for each
// bracket.
bool IsTooDeep(absl::string_view text) {
  constexpr int kMaxOpen = 1000;
  int open = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') ++open;
    if ((c == ']' || c == '}') && open > 0) --open;
    if (open > kMaxOpen) return true;
  }
  return false;
}

// The one document of `text`, or problems. yaml-cpp throws; nothing of that leaves this function.
YAML::Node ParseYaml(const std::string& text, Problems* problems) {
  if (IsTooDeep(text)) {
    problems->Add({}, "not YAML: more than a thousand brackets are not closed");
    return {};
  }
  try {
    const bool is_several = IsSeveralDocuments(text);
    YAML::Node document = is_several ? YAML::Node() : YAML::Load(text);
    if (!document.IsNull()) return document;
    problems->Add({}, is_several ? "must be one YAML document, not several" : "the file is empty");
  } catch (const YAML::Exception& error) {
    const Place place =
        error.mark.is_null() ? Place{} : Place{error.mark.line + 1, error.mark.column + 1};
    problems->Add(place, absl::StrCat("not YAML: ", error.msg, HintOn(error.msg, text)));
  }
  return {};
}

}  // namespace

YAML::Node ReadDocument(absl::string_view text, size_t max_bytes, Problems* problems) {
  RequireFewBytes(text, max_bytes, problems);
  if (problems->empty()) RequireUtf8(text, problems);
  if (!problems->empty()) return {};
  return ParseYaml(std::string(text), problems);
}

Place PlaceIn(absl::string_view text, std::initializer_list<const char*> keys) {
  Problems ignored("");
  YAML::Node node = ReadDocument(text, text.size(), &ignored);
  for (const char* const key : keys) {
    if (!node.IsMap()) return {};
    const YAML::Node& map = node;  // that of a map that may change would get the key
    const YAML::Node found = map[key];
    if (!found.IsDefined()) return {};
    node.reset(found);
  }
  return PlaceOf(node);
}

}  // namespace muster::yaml
