// SPDX-License-Identifier: Apache-2.0
#include "muster/input/key_groups.h"

#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "muster/base/check.h"
#include "muster/base/status.h"

namespace muster::input {
namespace {

// Reads no column but the key's.
RecordParser KeyParser(const InputFormat& format, const Header& header, int column) {
  InputFormat only = format;
  only.columns = {format.columns.at(static_cast<size_t>(column))};
  Header of_key = header;
  if (!header.positions.empty()) {
    of_key.positions = {header.positions.at(static_cast<size_t>(column))};
  }
  return RecordParser(only, of_key);
}

SliceLimits WindowLimits(size_t bytes) {
  return {std::numeric_limits<uint32_t>::max(), bytes, kWindowBytes};
}

}  // namespace

std::string KeyedWindow::TextOf(const KeyedSlice& slice) const {
  std::string all;
  all.reserve(slice.length);
  for (size_t i = slice.first; i < slice.first + slice.transactions; ++i) {
    all.append(text.data() + records[i].begin, records[i].end - records[i].begin);
  }
  return all;
}

std::vector<int64_t> KeyedWindow::LinesOf(const KeyedSlice& slice) const {
  std::vector<int64_t> lines;
  lines.reserve(slice.transactions);
  for (size_t i = slice.first; i < slice.first + slice.transactions; ++i) {
    lines.push_back(records[i].line);
  }
  return lines;
}

struct KeyGroupReader::Draft {
  std::optional<absl::string_view> key;
  uint32_t records = 0;
  uint64_t bytes = 0;
  size_t filled = 0;  // records that have their place
};

KeyGroupReader::KeyGroupReader(const ByteSource* source, const InputFormat& format,
                               const Header& header, int column, SliceLimits limits,
                               SliceStart start, size_t window_bytes)
    : is_csv_(format.kind == InputFormat::Kind::kCsv),
      limits_(limits),
      keys_(KeyParser(format, header, column)),
      windows_(source, format, WindowLimits(window_bytes), start) {}

absl::StatusOr<const KeyedWindow*> KeyGroupReader::Next() {
  MUSTER_ASSIGN_OR_RETURN(const std::optional<Slice> slice, windows_.Next());
  if (!slice.has_value()) return nullptr;
  window_ = KeyedWindow();
  window_.start = {slice->offset, slice->first_line};
  window_.next = slice->next;
  window_.multiline = slice->multiline;
  if (slice->oversized) {
    window_.slices.push_back({std::nullopt, slice->offset, slice->length, 0, 1, true});
  } else {
    Group(*slice);
  }
  return &window_;
}

void KeyGroupReader::Group(const Slice& slice) {
  window_.text = slice.data;
  FindRecords(slice);
  std::vector<Draft> drafts = DraftSlices();
  uint64_t offset = slice.offset;
  size_t first = 0;
  for (const Draft& draft : drafts) {
    window_.slices.push_back({draft.key, offset, draft.bytes, first, draft.records, false});
    offset += draft.bytes;
    first += draft.records;
  }
  window_.records.resize(in_order_.size());
  for (size_t i = 0; i < in_order_.size(); ++i) {
    const size_t place = window_.slices[draft_of_[i]].first + drafts[draft_of_[i]].filled++;
    window_.records[place] = in_order_[i];
  }
}

void KeyGroupReader::FindRecords(const Slice& slice) {
  keys_.Parse(slice.data, slice.first_line, &parsed_);
  MUSTER_CHECK(parsed_.total() == slice.transactions, "records ", parsed_.total(), " of ",
               slice.transactions);
  in_order_.assign(parsed_.total(), {});
  key_of_.assign(parsed_.total(), std::nullopt);
  for (size_t i = 0; i < parsed_.records.size(); ++i) {
    const auto ordinal = static_cast<size_t>(parsed_.records[i].ordinal);
    in_order_[ordinal].line = parsed_.records[i].line;
    key_of_[ordinal] = parsed_.Fields(i)[0];
  }
  for (const RejectedRecord& rejected : parsed_.rejected) {
    in_order_[static_cast<size_t>(rejected.ordinal)].line = rejected.line;
  }
  // A record reaches to the next one: empty lines between them are no records.
  size_t begin = 0;
  int64_t line = slice.first_line;
  for (size_t i = 0; i < in_order_.size(); ++i) {
    for (; line < in_order_[i].line; ++line) begin = slice.data.find('\n', begin) + 1;
    in_order_[i].begin = i == 0 ? 0 : begin;
    if (i > 0) in_order_[i - 1].end = begin;
  }
  if (!in_order_.empty()) in_order_.back().end = slice.data.size();
}

std::vector<KeyGroupReader::Draft> KeyGroupReader::DraftSlices() {
  std::vector<Draft> drafts;
  // The last draft of each key, and of the records without one.
  absl::flat_hash_map<std::pair<bool, absl::string_view>, uint32_t> last_of;
  draft_of_.resize(in_order_.size());
  for (size_t i = 0; i < in_order_.size(); ++i) {
    const uint64_t bytes = in_order_[i].end - in_order_[i].begin;
    const auto next = static_cast<uint32_t>(drafts.size());
    uint32_t of = next;
    if (key_of_[i].has_value() || !StandsAlone(in_order_[i])) {
      const auto [last, is_new] = last_of.try_emplace(
          {key_of_[i].has_value(), key_of_[i].value_or(absl::string_view())}, next);
      const bool fits = !is_new && drafts[last->second].records < limits_.transactions &&
                        drafts[last->second].bytes + bytes <= limits_.max_bytes;
      if (!fits) last->second = next;
      of = last->second;
    }
    if (of == next) drafts.push_back({key_of_[i]});
    ++drafts[of].records;
    drafts[of].bytes += bytes;
    draft_of_[i] = of;
  }
  return drafts;
}

bool KeyGroupReader::StandsAlone(const KeyedWindow::Record& record) const {
  const absl::string_view text = window_.text.substr(record.begin, record.end - record.begin);
  return is_csv_ && text.find('"') != absl::string_view::npos;
}

}  // namespace muster::input
