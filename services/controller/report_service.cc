// SPDX-License-Identifier: Apache-2.0
#include "services/controller/report_service.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/failpoint.h"
#include "muster/base/log.h"
#include "muster/base/output_proto.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/report/output_page.h"
#include "muster/report/report_proto.h"
#include "muster/rpc/paging.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "services/controller/report_pages.h"

namespace muster::controller {

namespace {

// For how long a log line about batches that cannot be registered is not repeated.
constexpr absl::Duration kTellAgain = absl::Minutes(1);

constexpr int kMaxRejections = 1000;

// Parses group by group, so that the error can name the wrong field.
absl::StatusOr<report::BatchShape> ShapeIn(const v1::RegisterBatchRequest& request) {
  const v1::JobSchema& schema = request.schema();
  if (request.batch() == 0) return rpc::BadField("batch", "must not be 0");
  if (schema.job().empty()) return rpc::BadField("schema.job", "must not be empty");
  if (schema.revision().empty()) return rpc::BadField("schema.revision", "must not be empty");
  report::BatchShape shape{
      request.batch(), schema.job(), schema.revision(), {}, request.owner(), {}};
  shape.replaces.assign(request.replaces().begin(), request.replaces().end());
  absl::Status wrong = report::ValidateBatchShape(shape);
  if (!wrong.ok()) return rpc::BadField("batch", wrong.message());
  for (int i = 0; i < schema.groups_size(); ++i) {
    absl::StatusOr<report::GroupShape> group = report::FromProto(schema.groups(i));
    wrong = group.status();
    if (wrong.ok()) {
      shape.groups.push_back(*std::move(group));
      wrong = report::ValidateBatchShape(shape);
    }
    if (!wrong.ok()) return rpc::BadField(absl::StrCat("schema.groups[", i, "]"), wrong.message());
  }
  for (int i = 0; i < schema.outputs_size(); ++i) {
    absl::StatusOr<base::OutputColumn> column = base::FromProto(schema.outputs(i));
    wrong = column.status();
    if (wrong.ok()) {
      shape.outputs.push_back(*std::move(column));
      wrong = report::ValidateBatchShape(shape);
    }
    if (!wrong.ok()) return rpc::BadField(absl::StrCat("schema.outputs[", i, "]"), wrong.message());
  }
  return shape;
}

absl::Status CheckMax(int max) {
  if (max >= 1 && max <= kMaxRejections) return absl::OkStatus();
  return rpc::BadField("max", absl::StrCat("is ", max, ", must be within 1 to ", kMaxRejections));
}

absl::StatusOr<size_t> MaxItems(int max) {
  if (max >= 1 && static_cast<size_t>(max) <= report::kMaxReportItems) {
    return static_cast<size_t>(max);
  }
  return rpc::BadField("max",
                       absl::StrCat("is ", max, ", must be within 1 to ", report::kMaxReportItems));
}

}  // namespace

ReportService::ReportService(report::ReportStore* report,
                             std::function<absl::Status(uint64_t batch)> check_completion,
                             BeginCounting begin_counting, std::string spool_folder)
    : report_(report),
      report_client_(report, std::move(check_completion)),
      begin_counting_(std::move(begin_counting)),
      spool_folder_(std::move(spool_folder)) {}

grpc::Status ReportService::GetReport(grpc::ServerContext* context,
                                      const v1::GetReportRequest* request,
                                      grpc::ServerWriter<v1::GetReportResponse>* writer) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    if (request->max_rows() < 0) return rpc::BadField("max_rows", "must not be negative");
    MUSTER_ASSIGN_OR_RETURN(
        const std::unique_ptr<rpc::StreamLimiter::Place> place,
        readers_.Admit([context](const absl::Status& why) { rpc::EndCall(context, why); }));
    ReportSpool spool(spool_folder_);
    MUSTER_RETURN_IF_ERROR(Spool(*request, &spool));
    return spool.Send([&](const v1::GetReportResponse& response) {
      place->Waits();
      const bool written = writer->Write(response);
      place->Goes();
      return written;
    });
  });
}

// The transaction ends with the reader, before the first page is sent.
absl::Status ReportService::Spool(const v1::GetReportRequest& request, ReportSpool* spool) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<report::ReportReader> reader, report_->Read());
  return WriteReport(*reader, request,
                     [spool](const v1::GetReportResponse& page) { return spool->Add(page); });
}

grpc::Status ReportService::ListRejections(grpc::ServerContext* context,
                                           const v1::ListRejectionsRequest* request,
                                           v1::ListRejectionsResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    if (request->offset() < 0) return rpc::BadField("offset", "must not be negative");
    MUSTER_RETURN_IF_ERROR(CheckMax(request->max()));
    MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<report::ReportReader> reader, report_->Read());
    return FillRejections(*reader, *request, response);
  });
}

grpc::Status ReportService::ListDeadLetters(grpc::ServerContext* context,
                                            const v1::ListDeadLettersRequest* request,
                                            v1::ListDeadLettersResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_RETURN_IF_ERROR(CheckMax(request->max()));
    MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<report::ReportReader> reader, report_->Read());
    MUSTER_ASSIGN_OR_RETURN(const std::vector<report::ItemRow> items,
                            reader->DeadLetters(request->batch(), request->from(),
                                                static_cast<size_t>(request->max())));
    rpc::AnswerRoom room;
    for (const report::ItemRow& item : items) {
      v1::DeadLetter dead;
      dead.set_item(item.index);
      dead.set_transactions(item.transactions);
      dead.set_attempts(item.attempts);
      dead.set_cause(item.cause);
      dead.set_retried_in(item.retried_in);
      if (!room.Take(dead)) break;
      *response->add_items() = std::move(dead);
    }
    return absl::OkStatus();
  });
}

grpc::Status ReportService::GetOutput(grpc::ServerContext* context,
                                      const v1::GetOutputRequest* request,
                                      v1::GetOutputResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<report::ReportReader> reader, report_->Read());
    absl::StatusOr<report::OutputPage> page =
        report::ReadOutputPage(*reader, request->batch(), request->page_token());
    if (absl::IsInvalidArgument(page.status())) {
      return rpc::BadField("page_token", page.status().message());
    }
    MUSTER_RETURN_IF_ERROR(page.status());
    for (const base::OutputColumn& column : page->columns) {
      *response->add_columns() = base::ToProto(column);
    }
    for (base::OutputRecord& record : page->records) {
      v1::OutputRecord* const added = response->add_records();
      added->set_line(record.line);
      for (std::string& field : record.fields) added->add_fields(std::move(field));
    }
    response->set_next_page_token(std::move(page->next_page_token));
    return absl::OkStatus();
  });
}

grpc::Status ReportService::GetProgress(grpc::ServerContext* context,
                                        const v1::GetProgressRequest* request,
                                        v1::GetProgressResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const report::Progress progress,
                            report_client_.GetProgress(request->batch()));
    *response->mutable_progress() = report::ToProto(progress);
    return absl::OkStatus();
  });
}

grpc::Status ReportService::ListProgress(grpc::ServerContext* context,
                                         const v1::ListProgressRequest* request,
                                         v1::ListProgressResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const auto progress, report_client_.ListProgress(request->batches()));
    for (const auto& [batch, counted] : progress) {
      *response->add_progress() = report::ToProto(counted);
    }
    return absl::OkStatus();
  });
}

grpc::Status ReportService::GetHighestBatch(grpc::ServerContext* context,
                                            const v1::GetHighestBatchRequest*,
                                            v1::GetHighestBatchResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const uint64_t batch, report_client_.HighestBatch());
    response->set_batch(batch);
    return absl::OkStatus();
  });
}

grpc::Status ReportService::GetStoredReceipt(grpc::ServerContext* context,
                                             const v1::GetStoredReceiptRequest* request,
                                             v1::GetStoredReceiptResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(report::StoredReceipt receipt,
                            report_client_.GetReceipt(request->batch()));
    response->set_text(std::move(receipt.text));
    response->set_checksum(std::move(receipt.checksum));
    return absl::OkStatus();
  });
}

grpc::Status ReportService::GetTally(grpc::ServerContext* context,
                                     const v1::GetTallyRequest* request,
                                     v1::GetTallyResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const report::Tally tally, report_client_.GetTally(request->batch()));
    *response = report::ToProto(tally);
    return absl::OkStatus();
  });
}

grpc::Status ReportService::ListUncountedItems(grpc::ServerContext* context,
                                               const v1::ListUncountedItemsRequest* request,
                                               v1::ListUncountedItemsResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const size_t max, MaxItems(request->max()));
    MUSTER_ASSIGN_OR_RETURN(const std::vector<uint64_t> indexes,
                            report_client_.UncountedItems(request->batch(), request->item_count(),
                                                          request->from(), max));
    response->mutable_indexes()->Add(indexes.begin(), indexes.end());
    return absl::OkStatus();
  });
}

grpc::Status ReportService::ListDeadLetteredItems(grpc::ServerContext* context,
                                                  const v1::ListDeadLetteredItemsRequest* request,
                                                  v1::ListDeadLetteredItemsResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const size_t max, MaxItems(request->max()));
    MUSTER_ASSIGN_OR_RETURN(
        const std::vector<uint64_t> indexes,
        report_client_.DeadLetteredItems(request->batch(), request->from(), max));
    response->mutable_indexes()->Add(indexes.begin(), indexes.end());
    return absl::OkStatus();
  });
}

void ReportService::TellUnregistered(uint64_t batch, const absl::Status& why) {
  const absl::Duration now = base::RealClock()->Monotonic();
  {
    base::MutexLock lock(&mu_);
    if (now < tell_at_) return;
    tell_at_ = now + kTellAgain;
  }
  base::Log(base::kWarning, "a batch cannot be registered; its initiator tries again",
            {{"batch", batch}, {"why", why.ToString(absl::StatusToStringMode::kWithNoExtraData)}});
}

grpc::Status ReportService::RegisterBatch(grpc::ServerContext* context,
                                          const v1::RegisterBatchRequest* request,
                                          v1::RegisterBatchResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const report::BatchShape shape, ShapeIn(*request));
    const absl::StatusOr<report::Progress> progress = report_client_.RegisterBatch(shape);
    if (!progress.ok()) {
      TellUnregistered(shape.batch, progress.status());
      return progress.status();
    }
    if (begin_counting_) MUSTER_RETURN_IF_ERROR(begin_counting_(shape.job, shape.batch));
    *response->mutable_progress() = report::ToProto(*progress);
    return absl::OkStatus();
  });
}

grpc::Status ReportService::CheckCompletion(grpc::ServerContext* context,
                                            const v1::CheckCompletionRequest* request,
                                            v1::CheckCompletionResponse*) {
  return rpc::Answer(*context, [&] { return report_client_.CheckCompletion(request->batch()); });
}

namespace {

// The items that a request names.
template <typename Request>
absl::StatusOr<absl::Span<const uint64_t>> IndexesOf(const Request& request) {
  const auto& indexes = request.indexes();
  if (static_cast<size_t>(indexes.size()) > report::kMaxReportItems) {
    return rpc::BadField("indexes", absl::StrCat("are ", indexes.size(), ", must be at most ",
                                                 report::kMaxReportItems));
  }
  return absl::MakeConstSpan(indexes.data(), static_cast<size_t>(indexes.size()));
}

}  // namespace

grpc::Status ReportService::ReopenDeadLettered(grpc::ServerContext* context,
                                               const v1::ReopenDeadLetteredRequest* request,
                                               v1::ReopenDeadLetteredResponse*) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const absl::Span<const uint64_t> items, IndexesOf(*request));
    return report_client_.ReopenDeadLettered(request->batch(), items);
  });
}

grpc::Status ReportService::ListRetriedItems(grpc::ServerContext* context,
                                             const v1::ListRetriedItemsRequest* request,
                                             v1::ListRetriedItemsResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const absl::Span<const uint64_t> items, IndexesOf(*request));
    MUSTER_ASSIGN_OR_RETURN(const auto retried,
                            report_client_.RetriedItems(request->batch(), items));
    for (const auto& [item, retried_in] : retried) {
      v1::RetriedItem* const added = response->add_items();
      added->set_item(item);
      added->set_retried_in(retried_in);
    }
    return absl::OkStatus();
  });
}

grpc::Status ReportService::ClaimRejections(grpc::ServerContext* context,
                                            const v1::ClaimRejectionsRequest* request,
                                            v1::ClaimRejectionsResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    report::RetrySelection which;
    which.lines.assign(request->lines().begin(), request->lines().end());
    which.items.assign(request->items().begin(), request->items().end());
    which.rejections_only = !request->dead_letters();
    MUSTER_ASSIGN_OR_RETURN(
        const report::RetryClaims claimed,
        report_client_.ClaimRejections(request->batch(), which, request->max()));
    MUSTER_FAILPOINT("controller.after_rejections_claimed");
    for (const report::RetryClaim& claim : claimed.claims) {
      *response->add_claims() = report::ToProto(claim);
    }
    response->set_more(claimed.more);
    return absl::OkStatus();
  });
}

grpc::Status ReportService::ListClaimedRejections(grpc::ServerContext* context,
                                                  const v1::ListClaimedRejectionsRequest* request,
                                                  v1::ListClaimedRejectionsResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const size_t max, MaxItems(request->max()));
    report::RejectionPosition after = report::kBeforeAllClaimed;
    if (request->has_after()) after = {request->after().item(), request->after().line()};
    MUSTER_ASSIGN_OR_RETURN(
        const std::vector<report::RejectionPosition> positions,
        report_client_.ClaimedRejections(request->batch(), request->retry(), after, max));
    for (const report::RejectionPosition& position : positions) {
      v1::RejectionPosition* const added = response->add_rejections();
      added->set_item(position.item);
      added->set_line(position.line);
    }
    return absl::OkStatus();
  });
}

grpc::Status ReportService::RecordRetry(grpc::ServerContext* context,
                                        const v1::RecordRetryRequest* request,
                                        v1::RecordRetryResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    std::vector<report::RetriedTransaction> transactions;
    transactions.reserve(static_cast<size_t>(request->transactions_size()));
    for (const v1::RetriedTransaction& one : request->transactions()) {
      transactions.push_back({one.item(), one.line(), one.retried_line()});
    }
    MUSTER_ASSIGN_OR_RETURN(const int64_t left,
                            report_client_.RecordRetry(request->batch(), request->retry(),
                                                       transactions, request->retried_in()));
    MUSTER_FAILPOINT("controller.after_retry_recorded");
    response->set_transactions(left);
    return absl::OkStatus();
  });
}

grpc::Status ReportService::RecordCancellation(grpc::ServerContext* context,
                                               const v1::RecordCancellationRequest* request,
                                               v1::RecordCancellationResponse*) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    if (request->batch() == 0) return rpc::BadField("batch", "must not be 0");
    return report_client_.CancelBatch(request->batch(), {base::FromProto(request->cancelled()),
                                                         request->reason(), request->owner()});
  });
}

grpc::Status ReportService::ForgetBatch(grpc::ServerContext* context,
                                        const v1::ForgetBatchRequest* request,
                                        v1::ForgetBatchResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const bool done, report_client_.ForgetBatch(request->batch()));
    response->set_done(done);
    return absl::OkStatus();
  });
}

}  // namespace muster::controller
