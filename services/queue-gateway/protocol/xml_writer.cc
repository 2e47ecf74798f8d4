// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/protocol/xml_writer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "muster/base/check.h"
#include "muster/base/text.h"

namespace muster::queue_gateway::protocol {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD

// Whether the `size` bytes at `at`, one character of UTF-8, may be in a document.
bool IsXmlCharacter(absl::string_view at, size_t size) {
  const char c = at.front();
  if (size == 1)
    return static_cast<unsigned char>(c) >= 0x20 || c == '\t' || c == '\n' || c == '\r';
  return at.substr(0, size) != "\xEF\xBF\xBE" && at.substr(0, size) != "\xEF\xBF\xBF";
}

// Most characters of most texts: ASCII that goes out as it is. They are taken in runs, since a get
// may have 2 MiB of them.
bool IsPlain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '&' && c != '<' && c != '>';
}

size_t PlainPrefix(absl::string_view text) {
  size_t size = 0;
  while (size < text.size() && IsPlain(text[size])) ++size;
  return size;
}

// Some clients take a character's number for text, so only the one that has no other form gets it:
// a carriage return as it is would be read as a line feed.
void AppendEscaped(absl::string_view character, std::string* out) {
  switch (character.front()) {
    case '&':
      return absl::StrAppend(out, "&amp;");
    case '<':
      return absl::StrAppend(out, "&lt;");
    case '>':
      return absl::StrAppend(out, "&gt;");
    case '\r':
      return absl::StrAppend(out, "&#xD;");
    default:
      return absl::StrAppend(out, character);
  }
}

}  // namespace

bool FitsXml(absl::string_view text) {
  for (text.remove_prefix(PlainPrefix(text)); !text.empty();
       text.remove_prefix(PlainPrefix(text))) {
    const size_t size = base::Utf8Prefix(text);
    if (size == 0 || !IsXmlCharacter(text, size)) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string XmlEscape(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (true) {
    const size_t plain = PlainPrefix(text);
    absl::StrAppend(&out, text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) return out;
    const size_t size = base::Utf8Prefix(text);
    if (size == 0 || !IsXmlCharacter(text, size)) {
      absl::StrAppend(&out, kReplacement);
      text.remove_prefix(size == 0 ? 1 : size);
      continue;
    }
    AppendEscaped(text.substr(0, size), &out);
    text.remove_prefix(size);
  }
}

XmlWriter::XmlWriter() : out_("<?xml version=\"1.0\" encoding=\"utf-8\"?>") {}

void XmlWriter::CloseTag() {
  if (in_tag_) out_ += '>';
  in_tag_ = false;
}

XmlWriter& XmlWriter::Open(absl::string_view name, const Attributes& attributes) {
  CloseTag();
  absl::StrAppend(&out_, "<", name);
  for (const auto& [key, value] : attributes) {
    absl::StrAppend(&out_, " ", key, "=\"",
                    absl::StrReplaceAll(XmlEscape(value), {{"\"", "&quot;"}}), "\"");
  }
  open_.emplace_back(name);
  in_tag_ = true;
  return *this;
}

XmlWriter& XmlWriter::Close() {
  MUSTER_CHECK(!open_.empty(), "no element is open after ", out_);
  if (in_tag_) {
    out_ += "/>";
  } else {
    absl::StrAppend(&out_, "</", open_.back(), ">");
  }
  in_tag_ = false;
  open_.pop_back();
  return *this;
}

XmlWriter& XmlWriter::Leaf(absl::string_view name, absl::string_view text) {
  Open(name);
  if (!text.empty()) {
    CloseTag();
    absl::StrAppend(&out_, XmlEscape(text));
  }
  return Close();
}

std::string XmlWriter::Finish() && {
  MUSTER_CHECK(open_.empty(), "an element is still open: ", open_.front());
  return std::move(out_);
}

}  // namespace muster::queue_gateway::protocol
