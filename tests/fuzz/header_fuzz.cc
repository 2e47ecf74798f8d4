// SPDX-License-Identifier: Apache-2.0

// The header of a CSV input. The first byte chooses the format, the rest is the input.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "muster/base/text.h"
#include "muster/input/slice_reader.h"
#include "tests/fuzz/property.h"

namespace muster::fuzz {
namespace {

using input::Header;
using input::InputFormat;

InputFormat FormatOf(uint8_t choice) {
  constexpr absl::string_view kDelimiters = ",;\t|";
  InputFormat format;
  format.kind = choice % 8 == 7 ? InputFormat::Kind::kJsonl : InputFormat::Kind::kCsv;
  format.header = (choice & 8) == 0;
  format.delimiter = kDelimiters[(choice >> 4) & 3];
  format.max_record_bytes = (choice & 64) != 0 ? 16 : 200;
  if (format.header) {
    format.columns = {{"a", "a"}, {"price", "Unit Price"}};
  } else {
    format.columns = {{"a", 1}, {"price", 3}};
  }
  return format;
}

void CheckRefusal(const absl::Status& status) {
  Must(absl::IsInvalidArgument(status), "a header that is refused is InvalidArgument");
  absl::string_view message = status.message();
  Must(!message.empty(), "a refusal has a reason");
  while (!message.empty()) {
    const size_t bytes = base::PrintableUtf8Prefix(message);
    Must(bytes > 0, "the reason can be printed");
    message.remove_prefix(bytes);
  }
}

void CheckColumns(const Header& header, const InputFormat& format) {
  Must(header.positions.size() == format.columns.size(), "each column has a position");
  for (size_t i = 0; i < header.positions.size() && format.header; ++i) {
    const auto position = static_cast<size_t>(header.positions[i]);
    Must(position < header.fields.size(), "a position is that of a field");
    Must(header.fields[position] == std::get<std::string>(format.columns[i].source),
         "a position is that of the column's own field");
  }
}

// The same names, quoted by the book, make the same header.
void ReadAgain(const Header& header, InputFormat format) {
  std::string text;
  for (const std::string& field : header.fields) {
    absl::StrAppend(&text, text.empty() ? "" : std::string(1, format.delimiter), "\"",
                    absl::StrReplaceAll(field, {{"\"", "\"\""}}), "\"");
  }
  format.max_record_bytes = text.size();
  const muster::input::TextSource source(text);
  const absl::StatusOr<Header> again = muster::input::ReadHeader(source, format);
  Must(again.ok() && again->fields == header.fields && again->positions == header.positions,
       "the names that were read make the same header again");
}

}  // namespace
}  // namespace muster::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::fuzz;
  if (size == 0) return 0;
  const auto format = FormatOf(data[0]);
  const absl::string_view text = Text(data + 1, size - 1);
  const muster::input::TextSource source(text);
  const absl::StatusOr<Header> header = muster::input::ReadHeader(source, format);
  if (!header.ok()) {
    CheckRefusal(header.status());
    return 0;
  }
  Must(header->data.offset <= text.size(), "the data begins inside the input");
  const absl::string_view before = text.substr(0, header->data.offset);
  const auto newlines = std::count(before.begin(), before.end(), '\n');
  Must(before.empty() || header->fields.empty() || before.back() != '\n' ||
           header->data.line == newlines + 1,
       "the data begins at the line that it is said to begin at");
  if (format.kind != InputFormat::Kind::kCsv) return 0;
  CheckColumns(*header, format);
  if (format.header) ReadAgain(*header, format);
  return 0;
}
