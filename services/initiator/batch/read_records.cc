// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/batch/read_records.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/input/csv_record.h"
#include "muster/rpc/paging.h"
#include "muster/rpc/status.h"

namespace muster::initiator::batch {
namespace {

// Of the content, for one answer: a call takes no longer than it takes to read so much.
constexpr size_t kMaxReadForAnswer = size_t{128} << 20;

absl::Status Check(const v1::ReadRecordsRequest& request) {
  const auto bad = [](absl::string_view what) {
    return rpc::BadField("items", absl::StrCat("must name 1 to ", kMaxRecordsToRead, " ", what));
  };
  if (request.items().empty() || request.items_size() > kMaxRecordsToRead) return bad("items");
  int lines = 0;
  for (const v1::ItemLines& item : request.items()) {
    lines += item.lines_size();
    if (!std::is_sorted(item.lines().begin(), item.lines().end())) {
      return rpc::BadField("items.lines", "must be in rising order");
    }
  }
  return lines > kMaxRecordsToRead ? bad("lines at most") : absl::OkStatus();
}

// Fills the answer, record by record, until it is full.
class Answer {
 public:
  Answer(const input::InputFormat& format, v1::ReadRecordsResponse* response)
      : format_(format), response_(response) {}

  // Cancelled: the record does not fit, and the answer is done.
  absl::Status Add(uint64_t item, const SubmittedRecord& record) {
    v1::SubmittedRecord submitted;
    submitted.set_item(item);
    submitted.set_line(record.line);
    submitted.set_record(std::string(record.bytes));
    submitted.set_oversized(record.oversized);
    submitted.set_open_quote(!record.oversized && input::HasUnclosedQuote(record.bytes, format_));
    if (!room_.Take(submitted)) return absl::CancelledError("the answer is full");
    *response_->add_records() = std::move(submitted);
    return absl::OkStatus();
  }

 private:
  const input::InputFormat format_;
  v1::ReadRecordsResponse* const response_;  // not owned
  rpc::AnswerRoom room_;
};

absl::Status AddItem(const v1::ItemLines& wanted, RecordReader* reader, Answer* answer) {
  const std::vector<int64_t> lines(
      std::upper_bound(wanted.lines().begin(), wanted.lines().end(), wanted.after_line()),
      wanted.lines().end());
  if (!wanted.lines().empty() && lines.empty()) return absl::OkStatus();
  auto next = lines.begin();
  MUSTER_RETURN_IF_ERROR(
      reader->ForEach(wanted.item(), [&](const SubmittedRecord& record) -> absl::Status {
        if (record.line <= wanted.after_line()) return absl::OkStatus();
        if (wanted.lines().empty()) return answer->Add(wanted.item(), record);
        if (next == lines.end() || record.line != *next) return absl::OkStatus();
        while (next != lines.end() && *next == record.line) ++next;
        return answer->Add(wanted.item(), record);
      }));
  if (next == lines.end()) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("no record of item ", wanted.item(), " begins at line ", *next));
}

}  // namespace

absl::Status ReadRecords(const v1::ReadRecordsRequest& request, ledger::BatchLedger* ledger,
                         const RecordReader::OpenContent& open, v1::ReadRecordsResponse* response) {
  MUSTER_RETURN_IF_ERROR(Check(request));
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<RecordReader> reader,
                          RecordReader::Open(request.batch(), ledger, open));
  MUSTER_ASSIGN_OR_RETURN(*response->mutable_header(), reader->Header());
  Answer answer(reader->format(), response);
  for (const v1::ItemLines& item : request.items()) {
    if (reader->bytes_read() >= kMaxReadForAnswer && !response->records().empty()) {
      response->set_more(true);
      return absl::OkStatus();
    }
    const absl::Status added = AddItem(item, reader.get(), &answer);
    if (absl::IsCancelled(added)) {
      response->set_more(true);
      return absl::OkStatus();
    }
    MUSTER_RETURN_IF_ERROR(added);
  }
  return absl::OkStatus();
}

}  // namespace muster::initiator::batch
