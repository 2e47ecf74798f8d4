// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/api/process_call.h"

#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/rpc/status.h"
#include "muster/stream/stream_proto.h"

namespace muster::initiator::api {
namespace {

using stream::processor::CloseReason;
using stream::processor::EventProcessor;
using stream::processor::PartitionContext;
using stream::processor::ProcessorError;
using stream::processor::ProcessorOptions;
using Request = v1::ProcessEventsRequest;
using Response = v1::ProcessEventsResponse;

constexpr int64_t kFromLatest = -1;
constexpr int kLeaseIntervals = 4;

absl::StatusOr<ProcessorOptions> Parse(const Request& first) {
  if (!first.has_start()) return rpc::BadField("start", "must come first");
  const v1::ProcessEventsStart& start = first.start();
  ProcessorOptions options{
      .stream = start.stream(), .group = start.group(), .member = start.member()};
  if (start.begin_at() < kFromLatest) return rpc::BadField("start.begin_at", "is -1 at least");
  if (start.begin_at() == kFromLatest)
    options.begin.kind = stream::processor::BeginAt::Kind::kLatest;
  if (start.begin_at() > 0) {
    options.begin = {stream::processor::BeginAt::Kind::kOffset, start.begin_at()};
  }
  if (start.has_interval()) {
    options.interval = base::FromProto(start.interval());
    options.lease = kLeaseIntervals * options.interval;
    options.grace = options.interval;
  }
  return options;
}

v1::PartitionCloseReason ToProto(CloseReason reason) {
  switch (reason) {
    case CloseReason::kHandedOver:
      return v1::PARTITION_CLOSE_REASON_HANDED_OVER;
    case CloseReason::kShutdown:
      return v1::PARTITION_CLOSE_REASON_SHUTDOWN;
    case CloseReason::kReplayed:
      return v1::PARTITION_CLOSE_REASON_REPLAYED;
    case CloseReason::kLost:
      break;
  }
  return v1::PARTITION_CLOSE_REASON_LOST;
}

}  // namespace

absl::Status ProcessCall::Run() {
  Request first;
  place_->Waits();
  if (!call_->Read(&first)) return absl::CancelledError("the caller has gone");
  place_->Goes();
  MUSTER_ASSIGN_OR_RETURN(const ProcessorOptions options, Parse(first));
  first = Request();  // the call lasts for long
  MUSTER_ASSIGN_OR_RETURN(const ProcessedStreams::ProcessorPtr processor,
                          EventProcessor::Start(options, stores_, this, clock_));
  processed_->Add(processor);
  Response started;
  started.set_member(processor->member());
  Send(started);
  std::thread ending([this, &processor] { TellEnd(processor->Wait()); });
  const absl::Status heard = Hear(processor.get());
  HangUp();
  processor->RequestStop();
  ending.join();
  processed_->Remove(processor);
  return heard;
}

absl::Status ProcessCall::Hear(EventProcessor* processor) {
  for (Request request; call_->Read(&request); request.Clear()) {
    if (request.has_stop()) {
      processor->RequestStop();
    } else {
      MUSTER_RETURN_IF_ERROR(Deliver(std::move(request)));
    }
  }
  return absl::OkStatus();
}

void ProcessCall::TellEnd(const absl::Status& status) {
  Response response;
  response.mutable_ended()->set_code(static_cast<int>(status.code()));
  response.mutable_ended()->set_message(std::string(status.message()));
  Send(response);
}

absl::Status ProcessCall::Deliver(Request request) {
  if (!request.has_handled() && !request.has_checkpoint()) {
    return rpc::BadField("message", "must be handled or checkpoint");
  }
  const int partition =
      request.has_handled() ? request.handled().partition() : request.checkpoint().partition();
  base::MutexLock lock(&mu_);
  std::deque<Request>& waiting = waiting_[partition];
  if (waiting.size() >= kMaxWaiting || waiting_.size() > stream::kMaxPartitions) {
    return rpc::BadField("partition", absl::StrCat(partition, " has too many messages waiting"));
  }
  waiting.push_back(std::move(request));
  changed_.NotifyAll();
  return absl::OkStatus();
}

std::optional<Request> ProcessCall::Await(int partition) {
  base::MutexLock lock(&mu_);
  std::deque<Request>& waiting = waiting_[partition];
  while (waiting.empty() && !gone_) changed_.Wait(&mu_);
  if (gone_) return std::nullopt;
  Request request = std::move(waiting.front());
  waiting.pop_front();
  return request;
}

absl::Status ProcessCall::AwaitHandled(PartitionContext& partition) {
  while (const std::optional<Request> request = Await(partition.partition())) {
    if (request->has_checkpoint()) {
      SaveCheckpoint(partition, request->checkpoint().offset());
      continue;
    }
    const std::string& error = request->handled().error();
    return error.empty() ? absl::OkStatus() : absl::UnknownError(error);
  }
  return absl::UnavailableError("the caller has gone");
}

void ProcessCall::SaveCheckpoint(PartitionContext& partition, int64_t offset) {
  const absl::Status saved = partition.UpdateCheckpoint({.offset = offset});
  Response response;
  response.mutable_saved()->set_partition(partition.partition());
  response.mutable_saved()->set_code(static_cast<int>(saved.code()));
  response.mutable_saved()->set_message(std::string(saved.message()));
  Send(response);
}

// A write to a caller that has gone fails; Read notices, too.
void ProcessCall::Send(const Response& response) {
  base::MutexLock lock(&write_mu_);
  call_->Write(response);
}

void ProcessCall::HangUp() {
  base::MutexLock lock(&mu_);
  gone_ = true;
  changed_.NotifyAll();
}

absl::Status ProcessCall::OnEvent(PartitionContext& partition, const stream::Event* event) {
  Response response;
  response.mutable_event()->set_partition(partition.partition());
  *response.mutable_event()->mutable_event() = stream::ToProto(*event);
  Send(response);
  return AwaitHandled(partition);
}

void ProcessCall::OnError(const ProcessorError& error) {
  Response response;
  response.mutable_error()->set_partition(error.partition);
  response.mutable_error()->set_operation(std::string(OperationName(error.operation)));
  response.mutable_error()->set_code(static_cast<int>(error.status.code()));
  response.mutable_error()->set_message(std::string(error.status.message()));
  response.mutable_error()->set_events_lost(error.events_lost);
  Send(response);
}

void ProcessCall::OnPartitionInitializing(PartitionContext& partition) {
  Response response;
  response.mutable_opened()->set_partition(partition.partition());
  response.mutable_opened()->set_epoch(partition.epoch());
  response.mutable_opened()->set_begins_at(partition.begins_at());
  Send(response);
}

void ProcessCall::OnPartitionClosing(PartitionContext& partition, CloseReason reason) {
  Response response;
  response.mutable_closing()->set_partition(partition.partition());
  response.mutable_closing()->set_reason(ToProto(reason));
  Send(response);
  AwaitHandled(partition).IgnoreError();
}

}  // namespace muster::initiator::api
