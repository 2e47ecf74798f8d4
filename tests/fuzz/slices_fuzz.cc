// SPDX-License-Identifier: Apache-2.0

// An input, cut into slices twice with different limits. Four bytes choose format and limits, the
// rest is the input.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/text.h"
#include "muster/input/record_parser.h"
#include "muster/input/slice_reader.h"
#include "tests/fakes/input/reference_reader.h"
#include "tests/fuzz/property.h"

namespace muster::fuzz {
namespace {

using input::InputFormat;
using input::Slice;
using input::SliceLimits;

using Records = std::vector<std::string>;  // by number: line, and fields or refusal

InputFormat FormatOf(uint8_t choice, uint8_t max_record_bytes) {
  constexpr absl::string_view kDelimiters = ",;\t|";
  InputFormat format;
  format.kind = static_cast<InputFormat::Kind>(choice % 3);
  format.header = false;
  format.delimiter = kDelimiters[(choice >> 2) & 3];
  format.columns = {{"a", "a"}, {"b", "b"}};
  format.max_record_bytes = size_t{1} + max_record_bytes;
  return format;
}

void AppendRecords(const Slice& slice, const input::RecordParser& parser,
                   input::ParsedRecords* parsed, Records* records) {
  if (slice.oversized) {
    Must(slice.transactions == 1 && slice.data.empty(), "an oversized slice is one transaction");
    records->push_back(absl::StrCat(slice.first_line, " oversized"));
    return;
  }
  // A copy of exactly its size, so that a sanitizer sees every step beyond it.
  const std::vector<char> exact(slice.data.begin(), slice.data.end());
  parser.Parse({exact.data(), exact.size()}, slice.first_line, parsed);
  Must(parsed->total() == slice.transactions, "splitter and parser count the same transactions");
  const size_t first = records->size();
  records->resize(first + parsed->total());
  for (const input::RejectedRecord& r : parsed->rejected) {
    (*records)[first + static_cast<size_t>(r.ordinal)] = absl::StrCat(r.line, " refused");
    Must(!r.reason.empty(), "a refusal has a reason");
  }
  for (size_t i = 0; i < parsed->records.size(); ++i) {
    (*records)[first + static_cast<size_t>(parsed->records[i].ordinal)] =
        absl::StrCat(parsed->records[i].line, ": ", absl::StrJoin(parsed->Fields(i), "\x1f"));
  }
}

Records ReadInSlices(absl::string_view text, const InputFormat& format, SliceLimits limits) {
  const input::TextSource source(text);
  const input::RecordParser parser(format, {0, 1}, 2);
  input::SliceReader reader(&source, format, limits, {});
  Records records;
  input::ParsedRecords parsed;
  uint64_t end = 0;
  for (auto slice = *reader.Next(); slice.has_value(); slice = *reader.Next()) {
    const absl::string_view gap = text.substr(end, slice->offset - end);
    Must(slice->offset >= end && gap.find_first_not_of("\r\n") == absl::string_view::npos,
         "between slices lie only empty lines");
    Must(slice->transactions >= 1 && slice->transactions <= limits.transactions,
         "a slice has at most as many transactions as are asked for");
    Must(slice->oversized || slice->data == text.substr(slice->offset, slice->length),
         "a slice holds the bytes of the input");
    end = slice->offset + slice->length;
    Must(slice->next.offset == end, "a slice ends where the next may begin");
    AppendRecords(*slice, parser, &parsed, &records);
  }
  Must(text.substr(end).find_first_not_of("\r\n") == absl::string_view::npos,
       "the slices put together are the whole input");
  return records;
}

// The reference reader does not cover text that is not UTF-8, nor JSON.
void CompareWithReference(const std::string& text, const InputFormat& format,
                          const Records& records) {
  if (format.kind != InputFormat::Kind::kCsv || !base::IsValidUtf8(text)) return;
  Records expected;
  for (const input::ReferenceRecord& r : input::ReadByReference(text, format)) {
    const bool sound = !r.oversized && !r.broken && !r.suspicious && r.fields.size() == 2;
    expected.push_back(sound ? absl::StrCat(r.line, ": ", absl::StrJoin(r.fields, "\x1f"))
                             : absl::StrCat(r.line, r.oversized ? " oversized" : " refused"));
  }
  Must(records == expected, "the records are those of the reference reader");
}

}  // namespace
}  // namespace muster::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::fuzz;
  if (size < 4) return 0;
  const InputFormat format = FormatOf(data[0], data[1]);
  const SliceLimits few{1 + uint32_t{data[2]} % 8, data[3], size_t{1} + data[2]};
  const SliceLimits many{500, 1 << 12, 1 << 12};
  const std::string text(Text(data + 4, size - 4));
  const Records records = ReadInSlices(text, format, few);
  Must(records == ReadInSlices(text, format, many), "the limits do not decide the records");
  CompareWithReference(text, format, records);
  return 0;
}
