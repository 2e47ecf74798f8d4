// SPDX-License-Identifier: Apache-2.0

// The body of a request to the queue gateway: any XML document, and a put's message in it.
#include <string>

#include "services/queue-gateway/operations/limits.h"
#include "services/queue-gateway/operations/message_text.h"
#include "services/queue-gateway/protocol/xml_reader.h"
#include "services/queue-gateway/protocol/xml_writer.h"
#include "tests/fuzz/property.h"

namespace muster::fuzz {
namespace {

using namespace queue_gateway;  // what is under test
using protocol::XmlElement;

void Measure(const XmlElement& element, int depth, int* elements) {
  Must(depth <= protocol::kMaxXmlDepth, "a document is not deep");
  Must(++*elements <= protocol::kMaxXmlElements, "a document has not many elements");
  Must(protocol::FitsXml(element.text), "what was read can be written");
  for (const XmlElement& child : element.children) Measure(child, depth + 1, elements);
}

std::string DocumentOf(absl::string_view text) {
  protocol::XmlWriter xml;
  xml.Open("QueueMessage").Leaf("MessageText", text).Close();
  return std::move(xml).Finish();
}

protocol::OrError<std::string> TextIn(absl::string_view body) {
  operations::Call call;
  call.http.method = "POST";
  call.http.body = std::string(body);
  return operations::TextOf(call);
}

// A message is shown as the text that was put.
void CheckMessage(absl::string_view body) {
  const auto text = TextIn(body);
  if (!text.ok()) return;
  Must(text->size() <= operations::kMaxTextBytes, "a text is bounded");
  Must(operations::ShownText(*text, false) == *text, "a text is shown as it is");
  const auto again = TextIn(DocumentOf(*text));
  Must(again.ok() && *again == *text, "a text comes back as it was put");
}

// A client of 2008 puts any bytes, and a document has to carry them.
void CheckBytes(absl::string_view bytes) {
  const auto shown = TextIn(DocumentOf(operations::ShownText(bytes, false)));
  Must(shown.ok(), "any bytes can be shown");
  const bool fits = protocol::FitsXml(bytes);
  Must(!fits || *shown == bytes, "bytes that are text are shown as text");
  Must(protocol::FitsXml(protocol::XmlEscape(bytes)), "what is escaped fits");
}

}  // namespace
}  // namespace muster::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::fuzz;
  const absl::string_view body = Text(data, size);
  const auto root = muster::queue_gateway::protocol::ParseXml(body);
  int elements = 0;
  if (root.ok()) Measure(*root, 1, &elements);
  CheckMessage(body);
  CheckBytes(body);
  return 0;
}
