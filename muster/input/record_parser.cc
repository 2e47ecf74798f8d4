#include "muster/input/record_parser.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "muster/base/text.h"
#include "muster/input/byte_scan.h"
#include "muster/input/csv.h"
#include "muster/input/format.h"

namespace muster::input {

// JsonLineParser: the jsonl part of RecordParser. Takes the wanted members out of one JSON object
// after the other. Not thread-safe.
class JsonLineParser {
 public:
  // `members` is not owned.
  explicit JsonLineParser(const std::vector<std::string>* members);
  ~JsonLineParser();

  // Writes one text per member to `fields`; what is not as it stands in `line` is written to
  // `*room`, which must have line.size() bytes left and is moved on. Answers "", or why `line` is
  // refused.
  std::string Parse(absl::string_view line, absl::string_view* fields, char** room);

 private:
  class Collector;
  const std::unique_ptr<Collector> collector_;
};

namespace {

using Json = nlohmann::json;

// From nlohmann's "[json.exception…] parse error at line 1, column 8: syntax error while parsing
// value - invalid literal; last read: '…'" the part that says what is wrong.
std::string WhatIsWrong(absl::string_view what) {
  const size_t dash = what.find(" - ");
  if (dash != absl::string_view::npos) what.remove_prefix(dash + 3);
  const size_t from = dash == absl::string_view::npos ? what.rfind("] ") : absl::string_view::npos;
  if (from != absl::string_view::npos) what.remove_prefix(from + 2);
  what = what.substr(0, what.find("; last read"));
  return std::string(what.substr(0, base::kMaxQuotedBytes));
}

}  // namespace

// Receives the events of nlohmann's parser (its SAX interface; the names are the library's).
class JsonLineParser::Collector {
 public:
  explicit Collector(const std::vector<std::string>* members)
      : members_(*members), seen_(members->size()) {}

  void Begin(absl::string_view* fields, char* room) {
    fields_ = fields;
    room_ = room;
    depth_ = 0;
    wanted_ = kNotWanted;
    comma_ = false;
    error_.clear();
    std::fill(seen_.begin(), seen_.end(), uint8_t{0});
    std::fill(fields, fields + members_.size(), absl::string_view(""));  // never null
  }
  char* room() const { return room_; }
  const std::string& error() const { return error_; }

  bool null() { return depth_ == 1 ? Scalar("") : Scalar("null"); }
  bool boolean(bool value) { return Scalar(value ? "true" : "false"); }
  bool number_integer(int64_t value) { return Scalar(absl::AlphaNum(value).Piece()); }
  bool number_unsigned(uint64_t value) { return Scalar(absl::AlphaNum(value).Piece()); }
  bool number_float(double /*value*/, const std::string& text) { return Scalar(text); }
  bool binary(Json::binary_t& /*value*/) { return true; }  // never in JSON text

  bool string(const std::string& value) {
    if (depth_ <= 1) return Scalar(value);
    if (!BeginValue()) return false;
    Escaped(value);
    return true;
  }

  bool start_object(size_t /*members*/) { return Open('{'); }
  bool end_object() { return Close('}'); }
  bool start_array(size_t /*elements*/) { return depth_ > 0 ? Open('[') : NotAnObject(); }
  bool end_array() { return Close(']'); }

  bool key(const std::string& name) {
    if (depth_ == 1) return Want(name);
    if (comma_) Write(",");
    Escaped(name);
    Write(":");
    comma_ = false;
    return true;
  }

  bool parse_error(size_t position, const std::string& /*token*/, const Json::exception& error) {
    error_ = absl::StrCat("not JSON: byte ", position, ": ", WhatIsWrong(error.what()));
    return false;
  }

 private:
  static constexpr size_t kNotWanted = ~size_t{0};

  bool NotAnObject() {
    error_ = "not a JSON object";
    return false;
  }

  bool Want(const std::string& name) {
    const auto found = std::find(members_.begin(), members_.end(), name);
    wanted_ = found == members_.end() ? kNotWanted : static_cast<size_t>(found - members_.begin());
    if (wanted_ == kNotWanted || !std::exchange(seen_[wanted_], uint8_t{1})) return true;
    error_ = absl::StrCat("the member ", base::Quoted(name), " is there twice");
    return false;
  }

  bool BeginValue() {
    if (depth_ == 0) return NotAnObject();
    if (depth_ == 1) value_ = room_;
    if (comma_) Write(",");
    comma_ = depth_ > 1;
    return true;
  }

  void EndValue() {
    if (depth_ != 1) return;
    comma_ = false;
    if (wanted_ == kNotWanted) return;
    fields_[wanted_] = absl::string_view(value_, static_cast<size_t>(room_ - value_));
  }

  bool Scalar(absl::string_view text) {
    if (!BeginValue()) return false;
    Write(text);
    EndValue();
    return true;
  }

  bool Open(char bracket) {
    if (depth_ > 0 && !BeginValue()) return false;
    if (depth_++ > 0) Write(absl::string_view(&bracket, 1));
    comma_ = false;
    return true;
  }

  bool Close(char bracket) {
    if (--depth_ == 0) return true;
    Write(absl::string_view(&bracket, 1));
    comma_ = true;
    EndValue();
    return true;
  }

  void Write(absl::string_view text) {
    if (wanted_ == kNotWanted || text.empty()) return;
    std::memcpy(room_, text.data(), text.size());
    room_ += text.size();
  }

  // Only what JSON demands: whatever is escaped here was escaped at least as long in the input.
  void Escaped(absl::string_view text) {
    Write("\"");
    for (const char& c : text) {
      static constexpr absl::string_view kShort = "\b\f\n\r\t\"\\";
      static constexpr absl::string_view kLetter = "bfnrt\"\\";
      const size_t found = kShort.find(c);
      if (found != absl::string_view::npos) {
        const char escape[] = {'\\', kLetter[found]};
        Write(absl::string_view(escape, 2));
      } else if (static_cast<uint8_t>(c) < 0x20) {
        Write(absl::StrCat("\\u", absl::Hex(c, absl::kZeroPad4)));
      } else {
        Write(absl::string_view(&c, 1));
      }
    }
    Write("\"");
  }

  const std::vector<std::string>& members_;
  std::vector<uint8_t> seen_;  // by member
  absl::string_view* fields_ = nullptr;
  char* room_ = nullptr;
  char* value_ = nullptr;  // where the wanted member's text begins
  int depth_ = 0;
  size_t wanted_ = kNotWanted;
  bool comma_ = false;  // due before the next element or key of a nested value
  std::string error_;
};

JsonLineParser::JsonLineParser(const std::vector<std::string>* members)
    : collector_(std::make_unique<Collector>(members)) {}

JsonLineParser::~JsonLineParser() = default;

std::string JsonLineParser::Parse(absl::string_view line, absl::string_view* fields, char** room) {
  collector_->Begin(fields, *room);
  if (!Json::sax_parse(line.data(), line.data() + line.size(), collector_.get())) {
    return collector_->error().empty() ? "not JSON" : collector_->error();
  }
  *room = collector_->room();
  return "";
}

void ParsedRecords::Reset(int width, size_t bytes) {
  columns = width;
  fields.clear();
  records.clear();
  rejected.clear();
  if (room_bytes < bytes) {
    room.reset(new char[bytes]);
    room_bytes = bytes;
  }
}

namespace {

size_t LeastFields(const CsvShape& shape) {
  int least = shape.fields;
  for (const int position : shape.positions) least = std::max(least, position + 1);
  return static_cast<size_t>(least);
}

}  // namespace

CsvParser::CsvParser(const CsvShape* shape, absl::string_view slice, int64_t first_line,
                     ParsedRecords* out)
    : shape_(*shape),
      slice_(slice),
      ascii_(IsAscii(slice)),
      least_fields_(LeastFields(*shape)),
      line_(first_line),
      plain_(least_fields_),
      room_(out->room.get()),
      out_(out) {}

void CsvParser::Parse() {
  ByteScan<3> scan(slice_, {'\n', '"', shape_.delimiter});
  size_t field_begin = 0;
  size_t count = 0;
  while (begin_ < slice_.size()) {
    const size_t at = std::min(scan.Next(), slice_.size());
    if (at < slice_.size() && slice_[at] == '"') {
      begin_ += TakeQuotedRecord();
      scan.Seek(begin_);
      field_begin = begin_;
      count = 0;
      continue;
    }
    const bool in_record = at < slice_.size() && slice_[at] == shape_.delimiter;
    absl::string_view field = slice_.substr(field_begin, at - field_begin);
    if (!in_record && !field.empty() && field.back() == '\r') field.remove_suffix(1);
    if (count < plain_.size()) plain_[count] = field;
    ++count;
    field_begin = at + 1;
    if (in_record) continue;
    const absl::string_view record = slice_.substr(begin_, at - begin_);
    if (count > 1 || !field.empty()) Take(record, plain_.data(), count);
    begin_ = field_begin;
    count = 0;
    ++line_;
  }
}

size_t CsvParser::TakeQuotedRecord() {
  const absl::string_view rest = slice_.substr(begin_);
  CsvRecord record = MeasureCsvRecord(rest, shape_.delimiter, shape_.max_record_bytes);
  if (record.fault == CsvRecord::Fault::kTooLong) {
    record.bytes = std::min(rest.find('\n'), rest.size() - 1) + 1;
  }
  if (record.fault != CsvRecord::Fault::kNone) {
    Reject(FaultReason(record));
  } else {
    quoted_.clear();
    const absl::string_view text = rest.substr(0, record.text);
    SplitCsvFields(text, shape_.delimiter, &room_, &quoted_);
    Take(text, quoted_.data(), quoted_.size());
  }
  line_ += record.lines;
  return record.bytes;
}

void CsvParser::Take(absl::string_view record, const absl::string_view* fields, size_t count) {
  if (!shape_.refusal.empty()) return Reject(shape_.refusal);
  if (!ascii_) {
    const size_t bad = FirstInvalidUtf8(record);
    if (bad != record.size())
      return Reject(absl::StrCat("not UTF-8: byte ", bad + 1, " of the row"));
  }
  if (shape_.fields != 0 && count != least_fields_) {
    return Reject(absl::StrCat("row has ", count, " fields, the header has ", shape_.fields));
  }
  if (count < least_fields_) {
    return Reject(absl::StrCat("row has ", count, " fields, the job reads field ", least_fields_));
  }
  out_->records.push_back({static_cast<int>(out_->total()), line_});
  for (int position : shape_.positions) {
    out_->fields.push_back(fields[static_cast<size_t>(position)]);
  }
}

void CsvParser::Reject(std::string reason) {
  out_->rejected.push_back({static_cast<int>(out_->total()), line_, std::move(reason)});
}

namespace {

std::vector<std::string> Members(const InputFormat& format) {
  std::vector<std::string> members;
  for (const ColumnSource& column : format.columns) {
    const std::string* member = std::get_if<std::string>(&column.source);
    members.push_back(member != nullptr ? *member : column.name);
  }
  return members;
}

CsvShape ShapeOf(const InputFormat& format, std::vector<int> positions, int header_fields) {
  CsvShape shape{format.delimiter, {}, 0, format.max_record_bytes};
  const absl::Status sound = RecordParser::CheckPositions(format, positions, header_fields);
  if (sound.ok()) {
    shape.positions = std::move(positions);
    shape.fields = header_fields;
  } else {
    shape.refusal = std::string(sound.message());
  }
  return shape;
}

// Gives `take` each line of `slice` that is not empty, without its line end.
template <typename Take>
void ForEachLine(absl::string_view slice, int64_t line, Take take) {
  for (; !slice.empty(); ++line) {
    const size_t bytes = std::min(slice.find('\n'), slice.size() - 1) + 1;
    const absl::string_view text = WithoutLineEnd(slice.substr(0, bytes));
    if (!text.empty()) take(text, line);
    slice.remove_prefix(bytes);
  }
}

}  // namespace

RecordParser::RecordParser(InputFormat format, std::vector<int> positions, int header_fields)
    : format_(std::move(format)),
      csv_(ShapeOf(format_, std::move(positions), header_fields)),
      members_(Members(format_)) {}

RecordParser::RecordParser(InputFormat format, const Header& header)
    : RecordParser(std::move(format), header.positions, static_cast<int>(header.fields.size())) {}

absl::Status RecordParser::CheckPositions(const InputFormat& format,
                                          const std::vector<int>& positions, int header_fields) {
  if (format.kind != InputFormat::Kind::kCsv) return absl::OkStatus();
  if (positions.size() != format.columns.size()) {
    return absl::DataLossError(absl::StrCat("the item names ", positions.size(),
                                            " fields, the job has ", format.columns.size(),
                                            " columns"));
  }
  for (const int position : positions) {
    if (position < 0 || position == std::numeric_limits<int>::max() ||
        (header_fields != 0 && position >= header_fields)) {
      return absl::DataLossError(
          absl::StrCat("the item names field ", position, " from 0, which no record has"));
    }
  }
  return absl::OkStatus();
}

void RecordParser::Parse(absl::string_view slice, int64_t first_line, ParsedRecords* out) const {
  out->Reset(static_cast<int>(format_.columns.size()), slice.size());
  if (format_.kind == InputFormat::Kind::kCsv) {
    CsvParser(&csv_, slice, first_line, out).Parse();
  } else {
    ParseLines(slice, first_line, out);
  }
}

void RecordParser::ParseLines(absl::string_view slice, int64_t first_line,
                              ParsedRecords* out) const {
  JsonLineParser json(&members_);
  char* room = out->room.get();
  ForEachLine(slice, first_line, [&](absl::string_view text, int64_t line) {
    const size_t first_field = out->fields.size();
    out->fields.resize(first_field + format_.columns.size());
    absl::string_view* fields = out->fields.data() + first_field;
    std::string refusal;
    if (const size_t bad = FirstInvalidUtf8(text); bad != text.size()) {
      refusal = absl::StrCat("not UTF-8: byte ", bad + 1, " of the line");
    } else if (format_.kind == InputFormat::Kind::kJsonl) {
      refusal = json.Parse(text, fields, &room);
    } else {
      std::fill(fields, out->fields.data() + out->fields.size(), text);
    }
    const int ordinal = static_cast<int>(out->total());
    if (refusal.empty()) {
      out->records.push_back({ordinal, line});
    } else {
      out->fields.resize(first_field);
      out->rejected.push_back({ordinal, line, std::move(refusal)});
    }
  });
}

std::string OversizedReason(uint64_t record_bytes, uint64_t limit_bytes) {
  return absl::StrCat("the record has ", record_bytes, " bytes; at most ", limit_bytes,
                      " are allowed");
}

}  // namespace muster::input
