// SPDX-License-Identifier: Apache-2.0
#include "muster/ledger/remote/remote_batch_records.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/output_proto.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/ledger/batch_proto.h"
#include "muster/rpc/status.h"

namespace muster::ledger::remote {
namespace {

// Batches with a remembered initiator; for others, the initiators are asked again.
constexpr size_t kMaxHomes = 10'000;
constexpr size_t kMaxItemsOfCall = 4096;
// Any initiator may have the batch.
constexpr size_t kAll = std::numeric_limits<size_t>::max();

}  // namespace

RemoteBatchRecords::RemoteBatchRecords(rpc::InstanceAddresses initiators,
                                       rpc::ChannelOptions channel_options, absl::Duration timeout,
                                       base::Clock* clock)
    : initiators_("initiator", std::move(initiators), std::move(channel_options), clock),
      timeout_(timeout) {}

RemoteBatchRecords::~RemoteBatchRecords() = default;

absl::Status RemoteBatchRecords::CallHome(uint64_t batch,
                                          rpc::InstanceClient<v1::LedgerService>::Call call) {
  // First its last known initiator; then the others, because that one may have come back elsewhere,
  // with its ledger.
  rpc::AskOptions options{.first = HomeOf(batch), .most = kAll, .timeout = timeout_};
  absl::Status older;
  const auto judge = [&older](const absl::Status& answer) {
    if (absl::IsUnimplemented(answer)) older = answer;
    return rpc::Verdict{.ask_on = absl::IsNotFound(answer) || absl::IsUnimplemented(answer)};
  };
  MUSTER_ASSIGN_OR_RETURN(const rpc::Asked asked, initiators_.Ask(options, call, judge));
  if (asked.answer.has_value()) {
    RememberHome(batch, asked.address);
    return *asked.answer;
  }
  if (!asked.silence.ok()) return absl::UnavailableError(asked.silence.message());
  if (!older.ok()) {
    return absl::UnimplementedError(absl::StrCat(
        "batch ", batch, " may belong to an initiator of an older muster, which cannot do that"));
  }
  if (asked.instances > 0) return ledger::UnknownToAll(batch, asked.instances);
  return absl::UnavailableError(
      absl::StrCat("no initiator is known that could have batch ", batch));
}

template <typename Request, typename Response>
absl::StatusOr<Response> RemoteBatchRecords::Call(
    uint64_t batch, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
    const Request& request) {
  Response response;
  MUSTER_RETURN_IF_ERROR(CallHome(batch, [&](Stub& stub, absl::Duration timeout) {
    rpc::CallContext context(timeout);
    response.Clear();
    return rpc::FromGrpc((stub.*method)(&context, request, &response));
  }));
  return response;
}

absl::StatusOr<ledger::Batch> RemoteBatchRecords::Get(uint64_t number) {
  MUSTER_ASSIGN_OR_RETURN(ledger::BatchView view, View(number, 0));
  return std::move(view.batch);
}

absl::StatusOr<ledger::BatchView> RemoteBatchRecords::View(uint64_t number, size_t max_items) {
  v1::GetLedgerBatchRequest request;
  request.set_batch(number);
  request.set_max_items(static_cast<int>(std::min(max_items, kMaxItemsOfCall)));
  MUSTER_ASSIGN_OR_RETURN(const auto response, Call(number, &Stub::GetLedgerBatch, request));
  ledger::BatchView view;
  MUSTER_RETURN_IF_ERROR(ledger::Fill(response.record(), &view.batch));
  MUSTER_RETURN_IF_ERROR(ledger::Fill(response.progress(), &view.batch));
  MUSTER_ASSIGN_OR_RETURN(view.items, ledger::FromProtos(response.items()));
  view.wants_outcome = response.wants_outcome();
  return view;
}

absl::StatusOr<std::vector<ledger::ItemBoundary>> RemoteBatchRecords::Items(uint64_t batch,
                                                                            uint64_t first_index,
                                                                            size_t max_items) {
  v1::ListItemsRequest request;
  request.set_batch(batch);
  request.set_first_index(first_index);
  request.set_max_items(static_cast<int>(std::min(max_items, kMaxItemsOfCall)));
  MUSTER_ASSIGN_OR_RETURN(const auto response, Call(batch, &Stub::ListItems, request));
  return ledger::FromProtos(response.items());
}

absl::Status RemoteBatchRecords::MarkComplete(uint64_t batch, absl::Time when) {
  v1::MarkCompleteRequest request;
  request.set_batch(batch);
  *request.mutable_completed() = base::ToProto(when);
  return Call(batch, &Stub::MarkComplete, request).status();
}

absl::Status RemoteBatchRecords::MarkCompleteAndTell(uint64_t batch, absl::Time when,
                                                     const ledger::BatchOutcome& outcome) {
  v1::MarkCompleteRequest request;
  request.set_batch(batch);
  *request.mutable_completed() = base::ToProto(when);
  for (const base::OutputRecord& record : outcome.records) {
    *request.mutable_outcome()->add_records() = base::ToProto(record);
  }
  for (const ledger::BatchOutcome::Rejection& rejected : outcome.rejections) {
    v1::Rejection* const rejection = request.mutable_outcome()->add_rejections();
    rejection->set_line(rejected.line);
    rejection->set_reason(rejected.reason);
  }
  request.mutable_outcome();  // set, also where there is nothing to tell
  return Call(batch, &Stub::MarkComplete, request).status();
}

absl::StatusOr<std::map<uint64_t, std::string>> RemoteBatchRecords::ReopenItems(
    uint64_t batch, absl::Span<const uint64_t> items) {
  v1::ReopenItemsRequest request;
  request.set_batch(batch);
  request.mutable_items()->Add(items.begin(), items.end());
  MUSTER_ASSIGN_OR_RETURN(const auto response, Call(batch, &Stub::ReopenItems, request));
  std::map<uint64_t, std::string> refused;
  for (const v1::RefusedItem& item : response.refused()) refused[item.item()] = item.why();
  return refused;
}

absl::StatusOr<std::optional<uint64_t>> RemoteBatchRecords::FindOpenBatch(
    const std::string& job, const std::string& but_of_revision) {
  v1::FindOpenBatchRequest request;
  request.set_job(job);
  request.set_but_of_revision(but_of_revision);
  v1::FindOpenBatchResponse response;
  absl::Status unknown;
  const auto judge = [&unknown](const absl::Status& answer) {
    if (!answer.ok() && !absl::IsNotFound(answer)) unknown.Update(answer);
    return rpc::Verdict{.ask_on = !answer.ok()};
  };
  MUSTER_ASSIGN_OR_RETURN(const rpc::Asked asked,
                          initiators_.Ask({.most = kAll, .timeout = timeout_}, &Stub::FindOpenBatch,
                                          request, &response, judge));
  if (asked.answer.has_value() && asked.answer->ok()) return response.batch();
  if (!asked.silence.ok()) return absl::UnavailableError(asked.silence.message());
  MUSTER_RETURN_IF_ERROR(unknown);
  if (asked.instances == 0) return absl::UnavailableError("no initiator is known");
  return std::nullopt;
}

absl::StatusOr<v1::LocateContentResponse> RemoteBatchRecords::LocateContent(
    uint64_t batch, const std::string& owner, const std::string& boot_id) {
  v1::LocateContentRequest request;
  request.set_batch(batch);
  request.set_owner(owner);
  request.set_boot_id(boot_id);
  return Call(batch, &Stub::LocateContent, request);
}

absl::Status RemoteBatchRecords::ReadItems(
    const v1::ReadItemsRequest& request,
    absl::FunctionRef<void(const v1::ReadItemsResponse& piece)> take) {
  return CallHome(request.batch(), [&](Stub& stub, absl::Duration timeout) {
    rpc::CallContext context(timeout);
    const auto stream = stub.ReadItems(&context, request);
    v1::ReadItemsResponse piece;
    while (stream->Read(&piece)) take(piece);
    return rpc::FromGrpc(stream->Finish());
  });
}

std::string RemoteBatchRecords::HomeOf(uint64_t batch) {
  base::MutexLock lock(&mu_);
  const auto home = homes_.find(batch);
  return home == homes_.end() ? "" : home->second;
}

void RemoteBatchRecords::RememberHome(uint64_t batch, const std::string& address) {
  base::MutexLock lock(&mu_);
  if (homes_.size() >= kMaxHomes) homes_.clear();
  homes_[batch] = address;
}

}  // namespace muster::ledger::remote
