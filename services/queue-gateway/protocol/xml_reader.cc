// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/protocol/xml_reader.h"

#include <expat.h>

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/random.h"

namespace muster::queue_gateway::protocol {
namespace {

// Debian 13's Expat deprecates the function that Debian 12's has alone.
uint64_t LineOf(XML_Parser parser) {
#if XML_MAJOR_VERSION == 2 && XML_MINOR_VERSION < 9
  return XML_GetCurrentLineNumber(parser);
#else
  return XML_GetCurrentLineNumber64(parser);
#endif
}

// Builds the tree while expat reads. expat stops when `problem` is set.
class TreeBuilder {
 public:
  explicit TreeBuilder(XML_Parser parser) : parser_(parser) {
    XML_SetUserData(parser, this);
    XML_SetElementHandler(parser, OnStart, OnEnd);
    XML_SetCharacterDataHandler(parser, OnText);
    XML_SetStartDoctypeDeclHandler(parser, OnDoctype);
  }

  absl::StatusOr<XmlElement> Take() {
    if (!problem_.empty()) return absl::InvalidArgumentError(problem_);
    return std::move(root_);
  }

 private:
  static TreeBuilder& Of(void* self) { return *static_cast<TreeBuilder*>(self); }

  static void XMLCALL OnStart(void* self, const XML_Char* name, const XML_Char**) {
    Of(self).Start(name);
  }
  // expat may still call these once after it was stopped.
  static void XMLCALL OnEnd(void* self, const XML_Char*) {
    if (Of(self).problem_.empty()) Of(self).path_.pop_back();
  }
  static void XMLCALL OnText(void* self, const XML_Char* text, int bytes) {
    if (!Of(self).problem_.empty()) return;
    Of(self).path_.back()->text.append(text, static_cast<size_t>(bytes));
  }
  static void XMLCALL OnDoctype(void* self, const XML_Char*, const XML_Char*, const XML_Char*,
                                int) {
    Of(self).Stop("a document type is not accepted");
  }

  void Start(const XML_Char* name) {
    if (!problem_.empty()) return;
    if (path_.size() >= static_cast<size_t>(kMaxXmlDepth)) return Stop("it nests too deeply");
    if (++elements_ > kMaxXmlElements) return Stop("it has too many elements");
    // Elements of one parent may move when it grows, but none of them is open then.
    XmlElement* const element = path_.empty() ? &root_ : &path_.back()->children.emplace_back();
    element->name = name;
    path_.push_back(element);
  }

  void Stop(absl::string_view problem) {
    problem_ = std::string(problem);
    XML_StopParser(parser_, XML_FALSE);
  }

  const XML_Parser parser_;
  XmlElement root_;
  std::vector<XmlElement*> path_;  // from the root to the element that is open
  int elements_ = 0;
  std::string problem_;
};

}  // namespace

const XmlElement* XmlElement::Child(absl::string_view child) const {
  for (const XmlElement& element : children) {
    if (element.name == child) return &element;
  }
  return nullptr;
}

std::optional<std::string> XmlElement::TextOf(absl::string_view child) const {
  const XmlElement* const element = Child(child);
  if (element == nullptr) return std::nullopt;
  return element->text;
}

absl::StatusOr<XmlElement> ParseXml(absl::string_view document) {
  const std::unique_ptr<std::remove_pointer_t<XML_Parser>, decltype(&XML_ParserFree)> parser(
      XML_ParserCreate(nullptr), XML_ParserFree);
  if (parser == nullptr) return absl::ResourceExhaustedError("no memory for an XML parser");
  // What expat would ask the system for with each document.
  static const auto salt = static_cast<unsigned long>(base::RandomSeed() | 1);
  XML_SetHashSalt(parser.get(), salt);
  TreeBuilder tree(parser.get());
  if (XML_Parse(parser.get(), document.data(), static_cast<int>(document.size()), XML_TRUE) ==
      XML_STATUS_OK) {
    return tree.Take();
  }
  absl::StatusOr<XmlElement> stopped = tree.Take();
  if (!stopped.ok()) return stopped.status();
  return absl::InvalidArgumentError(absl::StrCat("line ", LineOf(parser.get()), ": ",
                                                 XML_ErrorString(XML_GetErrorCode(parser.get()))));
}

}  // namespace muster::queue_gateway::protocol
