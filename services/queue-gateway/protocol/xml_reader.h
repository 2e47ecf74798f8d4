// SPDX-License-Identifier: Apache-2.0

// Reads the XML documents that requests carry.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::queue_gateway::protocol {

// Bounds of a document; the largest that the API knows has five CORS rules.
inline constexpr int kMaxXmlDepth = 8;
inline constexpr int kMaxXmlElements = 200;

struct XmlElement {
  std::string name;
  std::string text;  // all of its own text, as it is; of an element with children, what is between
  std::vector<XmlElement> children;

  // The first child of that name; null: there is none.
  const XmlElement* Child(absl::string_view child) const;
  // Its text; nullopt: there is no such child.
  std::optional<std::string> TextOf(absl::string_view child) const;
};

// The root of a document in UTF-8 or UTF-16. InvalidArgument: it is not well-formed, breaks the
// bounds above, or has a document type: its entities could stand for gigabytes, or for a file.
absl::StatusOr<XmlElement> ParseXml(absl::string_view document);

}  // namespace muster::queue_gateway::protocol
