// SPDX-License-Identifier: Apache-2.0

// XmlWriter: writes the XML documents of replies.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::queue_gateway::protocol {

// Whether an XML document can carry `text`: it is valid UTF-8 without the control characters that
// XML has no way to write, and without U+FFFE and U+FFFF.
bool FitsXml(absl::string_view text);

// `text` as the content of an element or an attribute. What XML cannot carry becomes U+FFFD, so
// that a document is well-formed with any content. A carriage return is written as a reference: a
// reader takes a plain one for a line feed.
std::string XmlEscape(absl::string_view text);

// Not thread-safe.
class XmlWriter {
 public:
  XmlWriter();

  using Attributes = std::vector<std::pair<std::string, std::string>>;
  // `name` is a name of XML.
  XmlWriter& Open(absl::string_view name, const Attributes& attributes = {});
  XmlWriter& Close();
  // An element with text alone; <name/> when it is empty.
  XmlWriter& Leaf(absl::string_view name, absl::string_view text);

  // The document. Every element is closed.
  std::string Finish() &&;

 private:
  void CloseTag();

  std::string out_;
  std::vector<std::string> open_;
  bool in_tag_ = false;  // the last open tag is not ended yet: it may be that of an empty element
};

}  // namespace muster::queue_gateway::protocol
