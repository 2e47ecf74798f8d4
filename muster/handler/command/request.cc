#include "muster/handler/command/request.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "muster/handler/foreign.h"

namespace muster::handler::command {
namespace {

bool NeedsEscape(char c) { return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\'; }

void AppendEscaped(char c, std::string* out) {
  constexpr char kHex[] = "0123456789abcdef";
  if (c == '"' || c == '\\') {
    *out += '\\';
    *out += c;
  } else {
    *out += "\\u00";
    *out += kHex[c >> 4];
    *out += kHex[c & 0xf];
  }
}

// `text` is UTF-8.
void AppendString(absl::string_view text, std::string* out) {
  *out += '"';
  while (!text.empty()) {
    const auto plain =
        static_cast<size_t>(std::find_if(text.begin(), text.end(), NeedsEscape) - text.begin());
    out->append(text.data(), plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    AppendEscaped(text[0], out);
    text.remove_prefix(1);
  }
  *out += '"';
}

template <typename Strings>
void AppendStrings(const Strings& strings, std::string* out) {
  *out += '[';
  bool first = true;
  for (const absl::string_view text : strings) {
    if (!first) *out += ',';
    first = false;
    AppendString(text, out);
  }
  *out += ']';
}

void AppendTransactions(const handler::JobSchema& schema, const handler::WorkItem& item,
                        handler::Results& results, std::string* out) {
  bool first = true;
  for (const handler::Transaction& transaction : item.transactions()) {
    if (handler::RejectUnlessUtf8(schema, transaction, results)) continue;
    absl::StrAppend(out, first ? "" : ",", "{\"line\":", transaction.line(), ",\"fields\":");
    first = false;
    AppendStrings(transaction.fields(), out);
    *out += '}';
  }
}

void AppendTrace(const base::TraceContext& trace, std::string* out) {
  *out += ",\"traceparent\":";
  AppendString(trace.ToTraceparent(), out);
  if (trace.state.empty()) return;
  *out += ",\"tracestate\":";
  AppendString(trace.state, out);
}

}  // namespace

std::string EncodeRequest(const handler::JobSchema& schema, const handler::WorkItem& item,
                          absl::Duration deadline, handler::Results& results) {
  std::string line = absl::StrCat("{\"muster\":", kProtocolVersion, ",\"job\":");
  AppendString(schema.job, &line);
  absl::StrAppend(&line, ",\"item\":\"", item.id(), "\",\"attempt\":", item.attempt(),
                  ",\"deadline_ms\":", absl::ToInt64Milliseconds(deadline));
  if (item.trace().has_value()) AppendTrace(*item.trace(), &line);
  line += ",\"columns\":";
  AppendStrings(schema.columns, &line);
  line += ",\"transactions\":[";
  AppendTransactions(schema, item, results, &line);
  line += "]}\n";
  return line;
}

}  // namespace muster::handler::command
