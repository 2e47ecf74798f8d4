// SPDX-License-Identifier: Apache-2.0
#include "cli/batch/failures.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "muster/base/status.h"

namespace muster::cli {
namespace {

// Dead letters that are asked for at a time: each has many transactions.
constexpr int kDeadAtATime = 100;

using Place = std::pair<uint64_t, int64_t>;  // item and line

// A request for the records of the failures.
v1::ReadRecordsRequest RequestFor(uint64_t batch, const std::vector<FailedTransaction>& failures) {
  v1::ReadRecordsRequest request;
  request.set_batch(batch);
  for (const FailedTransaction& failure : failures) {
    v1::ItemLines* item =
        request.items().empty() ? nullptr : request.mutable_items(request.items_size() - 1);
    if (item == nullptr || item->item() != failure.item) {
      item = request.add_items();
      item->set_item(failure.item);
    }
    item->add_lines(failure.line);
  }
  return request;
}

// Moves it: it is not held twice.
std::optional<std::string> TakeRecord(v1::SubmittedRecord* record) {
  if (record->oversized()) return std::nullopt;
  return std::move(*record->mutable_record());
}

// Whether asking again would not help: rows without records are better than no rows.
bool IsLasting(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsNotFound(status) ||
         absl::IsDataLoss(status) || absl::IsUnimplemented(status) ||
         absl::IsPermissionDenied(status);
}

}  // namespace

absl::StatusOr<std::vector<FailedTransaction>> FailureReader::Next(size_t max) {
  max = std::clamp<size_t>(max, 1, kMaxFailurePage);
  return kind_ == FailureKind::kRejected ? NextRejected(max) : NextDeadLettered(max);
}

absl::StatusOr<std::optional<v1::ReadRecordsResponse>> FailureReader::Read(
    const v1::ReadRecordsRequest& request) {
  if (!records_problem_.ok()) return std::optional<v1::ReadRecordsResponse>();
  absl::StatusOr<v1::ReadRecordsResponse> response = admin_->ReadRecords(request);
  if (IsLasting(response.status())) {
    records_problem_ = response.status();
    return std::optional<v1::ReadRecordsResponse>();
  }
  MUSTER_RETURN_IF_ERROR(response.status());
  if (response->more() && response->records().empty()) {
    return absl::InternalError("the server answers no record, and says that there are more");
  }
  header_ = response->header();
  return std::optional<v1::ReadRecordsResponse>(*std::move(response));
}

absl::StatusOr<std::vector<FailedTransaction>> FailureReader::NextRejected(size_t max) {
  if (rejected_.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<report::RejectionRow> rows,
                            admin_->RejectionsAfter(batch_, after_, static_cast<int>(max)));
    rejected_.assign(rows.begin(), rows.end());
  }
  std::vector<FailedTransaction> failures;
  for (const report::RejectionRow& row : rejected_) {
    if (failures.size() == max) break;
    failures.push_back(
        {row.item, row.line, row.reason, std::nullopt, row.retried_in, row.retry_of_line});
  }
  if (failures.empty()) return failures;
  MUSTER_RETURN_IF_ERROR(AddRecords(&failures));
  rejected_.erase(rejected_.begin(),
                  rejected_.begin() + static_cast<std::ptrdiff_t>(failures.size()));
  after_ = {failures.back().item, failures.back().line};
  return failures;
}

absl::Status FailureReader::AddRecords(std::vector<FailedTransaction>* failures) {
  MUSTER_ASSIGN_OR_RETURN(std::optional<v1::ReadRecordsResponse> response,
                          Read(RequestFor(batch_, *failures)));
  if (!response.has_value()) return absl::OkStatus();
  std::map<Place, v1::SubmittedRecord*> records;
  for (v1::SubmittedRecord& record : *response->mutable_records()) {
    records[{record.item(), record.line()}] = &record;
  }
  // The records come in the order of the failures: what is missing at the end comes next.
  size_t end = 0;
  for (size_t i = 0; i < failures->size(); ++i) {
    const auto found = records.find({(*failures)[i].item, (*failures)[i].line});
    if (found == records.end()) continue;
    (*failures)[i].record = TakeRecord(found->second);
    (*failures)[i].open_quote = found->second->open_quote();
    end = i + 1;
  }
  if (!response->more()) return absl::OkStatus();
  if (end == 0) return absl::InternalError("the server answers other records");
  failures->resize(end);
  return absl::OkStatus();
}

// One item gives as many as an answer has; more of them together would be held at once.
absl::StatusOr<std::vector<FailedTransaction>> FailureReader::NextDeadLettered(size_t max) {
  std::vector<FailedTransaction> failures;
  while (failures.empty()) {
    if (dead_.empty()) {
      MUSTER_ASSIGN_OR_RETURN(const std::vector<report::ItemRow> dead,
                              admin_->DeadLetters(batch_, after_.item, kDeadAtATime));
      if (dead.empty()) return failures;
      dead_.assign(dead.begin(), dead.end());
    }
    MUSTER_RETURN_IF_ERROR(TakeDead(max, &failures));
  }
  return failures;
}

absl::Status FailureReader::TakeDead(size_t max, std::vector<FailedTransaction>* failures) {
  const report::ItemRow& item = dead_.front();
  if (after_.item != item.index) after_ = {item.index, 0};
  v1::ReadRecordsRequest request;
  request.set_batch(batch_);
  request.add_items()->set_item(item.index);
  request.mutable_items(0)->set_after_line(after_.line);
  MUSTER_ASSIGN_OR_RETURN(std::optional<v1::ReadRecordsResponse> response, Read(request));
  bool done = true;
  if (!response.has_value()) {
    failures->push_back({item.index, 0, item.cause, std::nullopt, item.retried_in});
  } else {
    done = !response->more();
    for (v1::SubmittedRecord& record : *response->mutable_records()) {
      if (failures->size() == max) {
        done = false;
        break;
      }
      failures->push_back(
          {item.index, record.line(), item.cause, TakeRecord(&record), item.retried_in});
      failures->back().open_quote = record.open_quote();
      after_.line = record.line();
    }
  }
  if (!done) return absl::OkStatus();
  after_ = {item.index + 1, 0};
  dead_.pop_front();
  return absl::OkStatus();
}

}  // namespace muster::cli
