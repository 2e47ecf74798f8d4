// SPDX-License-Identifier: Apache-2.0
#include "muster/report/output_page.h"

#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/status.h"
#include "muster/report/receipt.h"

namespace muster::report {
namespace {

// "REVISION.ITEM.PIECE"; the revision is that of the receipt.
struct PageToken {
  int64_t revision = 0;
  OutputPosition at;
};

std::string ToText(const PageToken& token) {
  return absl::StrCat(token.revision, ".", token.at.item, ".", token.at.piece);
}

absl::StatusOr<PageToken> ParsePageToken(absl::string_view text) {
  PageToken token;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '.');
  if (parts.size() == 3 && absl::SimpleAtoi(parts[0], &token.revision) &&
      absl::SimpleAtoi(parts[1], &token.at.item) && absl::SimpleAtoi(parts[2], &token.at.piece) &&
      ToText(token) == text) {
    return token;
  }
  return absl::InvalidArgumentError("the page token is not one that an answer gave");
}

absl::Status NotWhole(uint64_t batch, absl::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat("batch ", batch, " ", why, "; its output is there when it is complete"));
}

// The revision of the receipt that proves what is counted now.
absl::StatusOr<int64_t> WholeRevision(ReportReader& reader, uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(const Progress progress, reader.GetProgress(batch));
  if (progress.cancelled.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("batch ", batch, " is cancelled, and has no output"));
  }
  if (progress.receipt_revision == 0) return NotWhole(batch, "is not complete");
  MUSTER_ASSIGN_OR_RETURN(const StoredReceipt stored, reader.GetReceipt(batch));
  MUSTER_ASSIGN_OR_RETURN(const Receipt receipt, ParseReceipt(stored.text));
  if (static_cast<uint64_t>(progress.items()) != receipt.items ||
      progress.items_dead != receipt.items_dead) {
    return NotWhole(batch, "is open again after a redrive");
  }
  return progress.receipt_revision;
}

}  // namespace

absl::StatusOr<OutputPage> ReadOutputPage(ReportReader& reader, uint64_t batch,
                                          absl::string_view page_token) {
  PageToken token;
  if (!page_token.empty()) {
    MUSTER_ASSIGN_OR_RETURN(token, ParsePageToken(page_token));
  }
  OutputPage page;
  MUSTER_ASSIGN_OR_RETURN(page.columns, reader.OutputColumns(batch));
  if (page.columns.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "the job of batch ", batch,
        " has no outputs; with `outputs` in its job file, its handler can return records"));
  }
  MUSTER_ASSIGN_OR_RETURN(const int64_t revision, WholeRevision(reader, batch));
  if (!page_token.empty() && token.revision != revision) {
    return absl::AbortedError(absl::StrCat("batch ", batch,
                                           " was redriven and is complete anew; read its output "
                                           "from its beginning"));
  }
  MUSTER_ASSIGN_OR_RETURN(
      const std::optional<OutputPosition> next,
      reader.ReadOutputs(batch, token.at, kOutputPageBytes, [&page](base::OutputRecord record) {
        page.records.push_back(std::move(record));
      }));
  if (next.has_value()) page.next_page_token = ToText({revision, *next});
  return page;
}

}  // namespace muster::report
