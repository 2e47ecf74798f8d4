#include "muster/yaml/document.h"

#include <yaml-cpp/eventhandler.h>

#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "muster/base/utf8.h"

namespace muster::yaml {
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

// Takes note of nothing: for what only the reading itself tells.
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

// The one document of `text`, or problems. yaml-cpp throws; nothing of that leaves this function.
YAML::Node ParseYaml(const std::string& text, Problems* problems) {
  try {
    const bool is_several = IsSeveralDocuments(text);
    YAML::Node document = is_several ? YAML::Node() : YAML::Load(text);
    if (!document.IsNull()) return document;
    problems->Add({}, is_several ? "must be one YAML document, not several" : "the file is empty");
  } catch (const YAML::Exception& error) {
    const Place place =
        error.mark.is_null() ? Place{} : Place{error.mark.line + 1, error.mark.column + 1};
    problems->Add(place, absl::StrCat("not YAML: ", error.msg));
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

}  // namespace muster::yaml
