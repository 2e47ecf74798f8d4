// SPDX-License-Identifier: Apache-2.0
#include "cli/output/record_writer.h"

#include <cstddef>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/output/format.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

std::string JsonText(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string JsonField(const base::OutputColumn& column, const std::string& field) {
  if (column.type == base::OutputColumn::Type::kText) return JsonText(field);
  if (field.empty()) return "null";
  return column.type == base::OutputColumn::Type::kInt ? field : JsonText(field);
}

}  // namespace

RecordWriter::RecordWriter(std::vector<base::OutputColumn> columns, OutputFormat format,
                           std::ostream* out)
    : columns_(std::move(columns)), format_(format), out_(out) {
  for (const base::OutputColumn& column : columns_) {
    members_.push_back(absl::StrCat(JsonText(column.name), ":"));
  }
}

void RecordWriter::Begin() {
  if (format_ != OutputFormat::kCsv) return;
  base::OutputRecord header;
  for (const base::OutputColumn& column : columns_) header.fields.push_back(column.name);
  AddCsv(header);
}

void RecordWriter::Add(const base::OutputRecord& record) {
  if (format_ == OutputFormat::kCsv) {
    AddCsv(record);
  } else {
    AddJson(record);
  }
}

void RecordWriter::AddCsv(const base::OutputRecord& record) {
  line_.clear();
  for (size_t i = 0; i < record.fields.size(); ++i) {
    absl::StrAppend(&line_, i > 0 ? "," : "", CsvField(record.fields[i]));
  }
  // A line of nothing would be no record.
  if (line_.empty()) line_ = "\"\"";
  line_ += '\n';
  out_->write(line_.data(), static_cast<std::streamsize>(line_.size()));
}

void RecordWriter::AddJson(const base::OutputRecord& record) {
  line_ = "{";
  for (size_t i = 0; i < record.fields.size(); ++i) {
    absl::StrAppend(&line_, i > 0 ? "," : "", members_[i],
                    JsonField(columns_[i], record.fields[i]));
  }
  line_ += "}\n";
  out_->write(line_.data(), static_cast<std::streamsize>(line_.size()));
}

}  // namespace muster::cli
