// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/call/record_form.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "muster/base/status.h"
#include "muster/input/byte_source.h"
#include "muster/input/content_kind.h"
#include "muster/input/json_members.h"
#include "muster/input/record_parser.h"
#include "muster/input/slice_reader.h"
#include "muster/rpc/status.h"

namespace muster::initiator::call {
namespace {

using Kind = input::InputFormat::Kind;

constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";

std::string SourceOf(const input::ColumnSource& column) {
  if (const int* position = std::get_if<int>(&column.source)) return absl::StrCat(*position);
  return std::get<std::string>(column.source);
}

std::vector<std::string> SourcesOf(const input::InputFormat& format) {
  std::vector<std::string> sources;
  if (format.kind == Kind::kCsv && !format.header) {
    int fields = 0;
    for (const input::ColumnSource& column : format.columns) {
      fields = std::max(fields, std::get<int>(column.source));
    }
    for (int position = 1; position <= fields; ++position)
      sources.push_back(absl::StrCat(position));
    return sources;
  }
  for (const input::ColumnSource& column : format.columns) {
    std::string source = SourceOf(column);
    if (std::find(sources.begin(), sources.end(), source) == sources.end()) {
      sources.push_back(std::move(source));
    }
  }
  return sources;
}

std::string CsvField(absl::string_view text, const input::InputFormat& format) {
  const std::string special = absl::StrCat("\"\r\n", std::string(1, format.delimiter));
  const bool is_plain = text.find_first_of(special) == absl::string_view::npos;
  if (is_plain || !format.quotes) return std::string(text);
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

std::string CsvLine(const std::vector<std::string>& fields, const input::InputFormat& format) {
  std::string line = absl::StrJoin(fields, std::string(1, format.delimiter),
                                   [&format](std::string* out, const std::string& field) {
                                     out->append(CsvField(field, format));
                                   });
  // Of one column, an empty line would be no record.
  return line.empty() && format.quotes ? "\"\"" : line;
}

std::string JsonText(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted.append({'\\', c});
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&quoted, "\\u%04x", static_cast<unsigned char>(c));
    } else {
      quoted.push_back(c);
    }
  }
  return quoted + "\"";
}

absl::Status BadRecord(absl::string_view why) { return rpc::BadField("record", why); }

}  // namespace

RecordForm::RecordForm(input::InputFormat format)
    : format_(std::move(format)), sources_(SourcesOf(format_)) {
  if (format_.kind == Kind::kCsv && format_.header) {
    header_ = CsvLine(sources_, format_) + "\n";
  }
}

// CheckMembers refuses an input whose first records all lack a member: one that lacks it alone is
// taken, and must be taken among others, too.
size_t RecordForm::max_records() const {
  if (format_.kind != Kind::kJsonl) return std::string().max_size();
  return static_cast<size_t>(input::kLookedAtRecords) - 1;
}

absl::StatusOr<std::string> RecordForm::RecordIn(const v1::CallRequest& request) const {
  if (!request.record().empty() && !request.fields().empty()) {
    return rpc::BadField("fields", "must be empty where there is a record");
  }
  std::string record(input::WithoutLineEnd(request.record()));
  if (request.record().empty()) {
    MUSTER_ASSIGN_OR_RETURN(record, Write(request.fields()));
  }
  MUSTER_RETURN_IF_ERROR(Check(record));
  return record;
}

absl::Status RecordForm::Check(absl::string_view record) const {
  const size_t limit = std::min(kMaxCallRecordBytes, format_.max_record_bytes);
  if (record.size() > limit) {
    return BadRecord(absl::StrCat("has ", record.size(), " bytes, and may have ", limit));
  }
  if (absl::StartsWith(record, kByteOrderMark)) return BadRecord("begins with a byte order mark");
  const std::string content = absl::StrCat(header_, record, "\n");
  const input::TextSource source(content);
  const absl::StatusOr<input::Header> header = input::ReadHeader(source, format_);
  if (!header.ok()) return BadRecord(header.status().message());
  input::SliceLimits limits{.transactions = 2, .read_bytes = content.size()};
  input::SliceReader slices(&source, format_, limits, header->data);
  MUSTER_ASSIGN_OR_RETURN(const std::optional<input::Slice> slice, slices.Next());
  if (!slice.has_value()) return BadRecord("is empty");
  input::ParsedRecords parsed;
  input::RecordParser(format_, *header).Parse(slice->data, slice->first_line, &parsed);
  if (!parsed.rejected.empty()) return BadRecord(parsed.rejected.front().reason);
  if (parsed.total() != 1 || slice->offset + slice->length != content.size()) {
    return BadRecord("must be one record, and has several lines");
  }
  // The batch that gathers it is held against the same.
  const absl::Status kind = input::CheckContentKind(source, format_);
  return kind.ok() ? absl::OkStatus() : BadRecord(kind.message());
}

absl::StatusOr<std::map<std::string, std::string>> RecordForm::TextsOf(const Fields& fields) const {
  std::map<std::string, std::string> texts;
  for (const auto& [name, text] : fields) {
    const auto column = std::find_if(format_.columns.begin(), format_.columns.end(),
                                     [&field = name](const auto& c) { return c.name == field; });
    if (column == format_.columns.end()) {
      return rpc::BadField(
          "fields",
          absl::StrCat("'", name, "' is no column of the job: it has ",
                       absl::StrJoin(format_.columns, ", ", [](std::string* out, const auto& c) {
                         out->append(c.name);
                       })));
    }
    const auto [there, is_new] = texts.try_emplace(SourceOf(*column), text);
    if (!is_new && there->second != text) {
      return rpc::BadField("fields", absl::StrCat("'", name,
                                                  "' and another column are the same "
                                                  "field of a record, and have two texts"));
    }
  }
  return texts;
}

absl::StatusOr<std::string> RecordForm::Write(const Fields& fields) const {
  MUSTER_ASSIGN_OR_RETURN(const auto texts, TextsOf(fields));
  std::vector<std::string> parts;
  for (const std::string& source : sources_) {
    const auto text = texts.find(source);
    if (text != texts.end() && !format_.quotes &&
        absl::StrContains(text->second, format_.delimiter)) {
      return rpc::BadField("fields", absl::StrCat("the field '", source,
                                                  "' holds the delimiter, and "
                                                  "the job's `input.quote` is none"));
    }
    if (format_.kind != Kind::kJsonl) {
      parts.push_back(text == texts.end() ? "" : text->second);
    } else if (text != texts.end()) {
      parts.push_back(absl::StrCat(JsonText(source), ":", JsonText(text->second)));
    }
  }
  switch (format_.kind) {
    case Kind::kCsv:
      return CsvLine(parts, format_);
    case Kind::kJsonl:
      return absl::StrCat("{", absl::StrJoin(parts, ","), "}");
    case Kind::kLines:
      return parts.empty() ? "" : parts.front();
  }
  return absl::InternalError("an input format of no kind");
}

}  // namespace muster::initiator::call
