// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/call/call_outcomes.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/rpc/status.h"

namespace muster::initiator::call {
namespace {

constexpr int kPage = 1000;

absl::Status TooLarge(uint64_t batch, int64_t line) {
  return rpc::WithReason(
      absl::FailedPreconditionError(absl::StrCat(
          "the record is counted, but its output records are larger than ", kMaxCallOutputBytes,
          " bytes: read them from the output of batch ", batch, ", line ", line)),
      {"OUTPUT_TOO_LARGE", {{"batch", absl::StrCat(batch)}, {"line", absl::StrCat(line)}}});
}

// Puts the records of one line after the other together.
class LineByLine {
 public:
  LineByLine(uint64_t batch, const VisitOutcome* visit) : batch_(batch), visit_(*visit) {}

  void SetColumns(const google::protobuf::RepeatedPtrField<v1::OutputColumn>& columns) {
    if (nothing_.columns().empty()) *nothing_.mutable_columns() = columns;
  }

  void Take(const google::protobuf::RepeatedPtrField<v1::OutputRecord>& records) {
    for (const v1::OutputRecord& record : records) {
      if (record.line() != line_) Finish();
      if (line_ == 0) Begin(record.line());
      bytes_ += record.ByteSizeLong();
      if (bytes_ <= kMaxCallOutputBytes) *accepted_.add_records() = record;
    }
  }

  // Visits the last line.
  v1::CallAccepted Finish() {
    if (line_ != 0 && bytes_ > kMaxCallOutputBytes) visit_(line_, TooLarge(batch_, line_));
    if (line_ != 0 && bytes_ <= kMaxCallOutputBytes) {
      v1::CallResponse response;
      *response.mutable_accepted() = std::move(accepted_);
      visit_(line_, std::move(response));
    }
    line_ = 0;
    return nothing_;
  }

 private:
  void Begin(int64_t line) {
    line_ = line;
    bytes_ = 0;
    accepted_ = nothing_;
  }

  const uint64_t batch_;
  const VisitOutcome& visit_;
  v1::CallAccepted nothing_;  // of a record without output records
  v1::CallAccepted accepted_;
  int64_t line_ = 0;
  size_t bytes_ = 0;
};

}  // namespace

v1::CallAccepted VisitOutcomes(uint64_t batch, const v1::BatchOutcome& outcome,
                               const v1::CallAccepted& bare, const VisitOutcome& visit) {
  for (const v1::Rejection& rejection : outcome.rejections()) {
    v1::CallResponse response;
    response.mutable_rejected()->set_reason(rejection.reason());
    visit(rejection.line(), std::move(response));
  }
  LineByLine lines(batch, &visit);
  lines.SetColumns(bare.columns());
  lines.Take(outcome.records());
  return lines.Finish();
}

CallOutcomes::CallOutcomes(rpc::InstanceAddresses controllers, rpc::ChannelOptions channel_options,
                           absl::Duration timeout, ledger::BatchLedger* ledger,
                           batch::RecordReader::OpenContent open_content)
    : controllers_("controller", std::move(controllers), std::move(channel_options)),
      timeout_(timeout),
      ledger_(ledger),
      open_content_(std::move(open_content)) {}

absl::StatusOr<v1::CallAccepted> CallOutcomes::Read(uint64_t batch, const VisitOutcome& visit) {
  v1::GetProgressRequest request;
  request.set_batch(batch);
  v1::GetProgressResponse counted;
  MUSTER_RETURN_IF_ERROR(Ask(&Stub::GetProgress, request, &counted));
  if (counted.progress().rejected() > 0) MUSTER_RETURN_IF_ERROR(ReadRejections(batch, visit));
  if (counted.progress().items_dead() > 0) MUSTER_RETURN_IF_ERROR(ReadDeadLetters(batch, visit));
  return ReadOutputs(batch, visit);
}

template <typename Request, typename Response>
absl::Status CallOutcomes::Ask(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                            Response*),
                               const Request& request, Response* response) {
  MUSTER_ASSIGN_OR_RETURN(
      const rpc::Asked asked,
      controllers_.Ask({.most = 1, .timeout = timeout_}, method, request, response,
                       [](const absl::Status&) { return rpc::Verdict(); }));
  if (asked.instances == 0) return absl::UnavailableError("no controller is known here");
  return asked.answer.value_or(asked.silence);
}

absl::Status CallOutcomes::ReadRejections(uint64_t batch, const VisitOutcome& visit) {
  v1::ListRejectionsRequest request;
  request.set_batch(batch);
  request.set_max(kPage);
  for (;;) {
    v1::ListRejectionsResponse page;
    MUSTER_RETURN_IF_ERROR(Ask(&Stub::ListRejections, request, &page));
    if (page.rejections().empty()) return absl::OkStatus();
    for (const v1::RejectedTransaction& rejection : page.rejections()) {
      v1::CallResponse response;
      response.mutable_rejected()->set_reason(rejection.reason());
      visit(rejection.line(), std::move(response));
      request.mutable_after()->set_item(rejection.item());
      request.mutable_after()->set_line(rejection.line());
    }
  }
}

absl::Status CallOutcomes::ReadDeadLetters(uint64_t batch, const VisitOutcome& visit) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<batch::RecordReader> records,
                          batch::RecordReader::Open(batch, ledger_, open_content_));
  v1::ListDeadLettersRequest request;
  request.set_batch(batch);
  request.set_max(kPage);
  for (;;) {
    v1::ListDeadLettersResponse page;
    MUSTER_RETURN_IF_ERROR(Ask(&Stub::ListDeadLetters, request, &page));
    if (page.items().empty()) return absl::OkStatus();
    for (const v1::DeadLetter& item : page.items()) {
      v1::CallResponse response;
      response.mutable_dead_lettered()->set_cause(item.cause());
      MUSTER_RETURN_IF_ERROR(
          records->ForEach(item.item(), [&](const batch::SubmittedRecord& record) {
            visit(record.line, response);
            return absl::OkStatus();
          }));
      request.set_from(item.item() + 1);
    }
  }
}

absl::StatusOr<v1::CallAccepted> CallOutcomes::ReadOutputs(uint64_t batch,
                                                           const VisitOutcome& visit) {
  LineByLine lines(batch, &visit);
  v1::GetOutputRequest request;
  request.set_batch(batch);
  do {
    v1::GetOutputResponse page;
    const absl::Status read = Ask(&Stub::GetOutput, request, &page);
    // The job has no outputs.
    if (absl::IsNotFound(read) && request.page_token().empty()) return v1::CallAccepted();
    MUSTER_RETURN_IF_ERROR(read);
    lines.SetColumns(page.columns());
    lines.Take(page.records());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return lines.Finish();
}

}  // namespace muster::initiator::call
