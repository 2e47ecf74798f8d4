#include "muster/report/digest.h"

#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "muster/base/status_macros.h"

namespace muster::report {

void RowDigest::Add(const ItemRow& item) {
  Number(static_cast<int64_t>(item.index));
  Field(ItemOutcomeName(item.outcome));
  for (int64_t count : {item.transactions, item.aggregated, item.rejected}) Number(count);
  Field(item.content.ToHex());
  Field(item.result.ToHex());
  Number(item.attempts);
  for (const std::string* text : {&item.handler_version, &item.worker, &item.cause}) Field(*text);
  Number(absl::ToUnixMicros(item.counted));
  EndRow();
}

void RowDigest::Add(absl::string_view group, const GroupRow& row) {
  Field(group);
  for (const std::string& key : row.keys) Field(key);
  for (const base::Decimal& measure : row.measures) Field(measure.ToString());
  EndRow();
}

void RowDigest::Add(const RejectionRow& rejection) {
  Number(static_cast<int64_t>(rejection.item));
  Number(rejection.line);
  Field(rejection.reason);
  EndRow();
}

void RowDigest::Field(absl::string_view text) {
  for (char c : text) {
    switch (c) {
      case '\\':
        line_ += "\\\\";
        break;
      case '\t':
        line_ += "\\t";
        break;
      case '\n':
        line_ += "\\n";
        break;
      case '\r':
        line_ += "\\r";
        break;
      default:
        line_ += c;
    }
  }
  line_ += '\t';
}

void RowDigest::Number(int64_t number) { absl::StrAppend(&line_, number, "\t"); }

void RowDigest::EndRow() {
  line_.back() = '\n';
  sha_.Update(line_);
  line_.clear();
}

absl::StatusOr<std::string> DigestRows(ReportReader& reader, uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<GroupShape> groups, reader.Groups(batch));
  RowDigest digest;
  for (const GroupShape& group : groups) {
    MUSTER_RETURN_IF_ERROR(reader.ForEachRow(
        batch, group.name, [&](const GroupRow& row) { digest.Add(group.name, row); }));
  }
  return digest.Hex();
}

absl::StatusOr<std::string> DigestRejections(ReportReader& reader, uint64_t batch,
                                             int64_t rejected) {
  RowDigest digest;
  int64_t rejections = 0;
  MUSTER_RETURN_IF_ERROR(reader.ForEachRejection(batch, 0, std::numeric_limits<int64_t>::max(),
                                                 [&](const RejectionRow& rejection) {
                                                   ++rejections;
                                                   digest.Add(rejection);
                                                 }));
  if (rejections == rejected) return digest.Hex();
  return absl::FailedPreconditionError(absl::StrCat(
      "batch ", batch, " has ", rejections, " rejections stored, its items say ", rejected));
}

}  // namespace muster::report
