// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/remote/remote_event_stream_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/mutex.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/paging.h"
#include "muster/rpc/status.h"
#include "muster/stream/stream_proto.h"

namespace muster::stream::remote {
namespace {

// As StreamService has it.
constexpr int kMaxEvents = 1000;
constexpr absl::Duration kMaxWait = absl::Seconds(10);

}  // namespace

class RemoteEventStreamStore::Reader final : public PartitionReader {
 public:
  Reader(RemoteEventStreamStore* store, absl::string_view stream, int partition, int64_t offset)
      : store_(store) {
    request_.set_stream(std::string(stream));
    request_.set_partition(partition);
    request_.set_offset(offset);
  }

  absl::StatusOr<std::vector<Event>> Next(int max_events, absl::Duration wait) override {
    MUSTER_RETURN_IF_ERROR(ValidateRead(max_events));
    request_.set_max_events(std::min(max_events, kMaxEvents));
    const absl::Duration asked = std::clamp(wait, absl::ZeroDuration(), kMaxWait);
    *request_.mutable_wait() = base::ToProto(asked);
    rpc::CallContext context(asked + store_->timeout_);
    if (!Begin(&context)) return std::vector<Event>();
    v1::ReadEventsResponse response;
    const absl::Status status =
        rpc::FromGrpc(store_->stub_->ReadEvents(&context, request_, &response));
    if (End()) return std::vector<Event>();
    MUSTER_RETURN_IF_ERROR(status);
    std::vector<Event> events;
    for (v1::StreamEvent& event : *response.mutable_events()) {
      events.push_back(FromProto(std::move(event)));
    }
    if (!events.empty()) request_.set_offset(events.back().offset + 1);
    return events;
  }

  void Cancel() override {
    base::MutexLock lock(&mu_);
    cancelled_ = true;
    if (call_ != nullptr) call_->TryCancel();
  }

 private:
  // False: it is cancelled.
  bool Begin(grpc::ClientContext* context) {
    base::MutexLock lock(&mu_);
    if (!cancelled_) call_ = context;
    return !cancelled_;
  }
  // True: it is cancelled.
  bool End() {
    base::MutexLock lock(&mu_);
    call_ = nullptr;
    return cancelled_;
  }

  RemoteEventStreamStore* const store_;  // not owned
  v1::ReadEventsRequest request_;
  base::Mutex mu_;
  grpc::ClientContext* call_ ABSL_GUARDED_BY(mu_) = nullptr;  // that runs; not owned
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
};

RemoteEventStreamStore::RemoteEventStreamStore(const std::shared_ptr<grpc::Channel>& channel,
                                               absl::Duration timeout)
    : stub_(v1::StreamService::NewStub(channel)), timeout_(timeout) {}

absl::Status RemoteEventStreamStore::Create(absl::string_view stream,
                                            const StreamOptions& options) {
  v1::CreateStreamRequest request;
  request.set_stream(std::string(stream));
  *request.mutable_options() = ToProto(options);
  rpc::CallContext context(timeout_);
  v1::CreateStreamResponse response;
  return rpc::FromGrpc(stub_->CreateStream(&context, request, &response));
}

absl::Status RemoteEventStreamStore::Delete(absl::string_view stream) {
  v1::DeleteStreamRequest request;
  request.set_stream(std::string(stream));
  rpc::CallContext context(timeout_);
  v1::DeleteStreamResponse response;
  return rpc::FromGrpc(stub_->DeleteStream(&context, request, &response));
}

absl::StatusOr<std::vector<std::string>> RemoteEventStreamStore::List() {
  rpc::CallContext context(timeout_);
  v1::ListStreamsResponse response;
  MUSTER_RETURN_IF_ERROR(
      rpc::FromGrpc(stub_->ListStreams(&context, v1::ListStreamsRequest(), &response)));
  return std::vector<std::string>(response.streams().begin(), response.streams().end());
}

absl::StatusOr<v1::GetStreamResponse> RemoteEventStreamStore::GetStream(absl::string_view stream) {
  v1::GetStreamRequest request;
  request.set_stream(std::string(stream));
  rpc::CallContext context(timeout_);
  v1::GetStreamResponse response;
  MUSTER_RETURN_IF_ERROR(rpc::FromGrpc(stub_->GetStream(&context, request, &response)));
  return response;
}

absl::StatusOr<StreamOptions> RemoteEventStreamStore::Describe(absl::string_view stream) {
  MUSTER_ASSIGN_OR_RETURN(const v1::GetStreamResponse response, GetStream(stream));
  return FromProto(response.options());
}

absl::StatusOr<PartitionExtent> RemoteEventStreamStore::Extent(absl::string_view stream,
                                                               int partition) {
  MUSTER_ASSIGN_OR_RETURN(const v1::GetStreamResponse response, GetStream(stream));
  if (partition < 0 || partition >= response.partitions_size()) {
    return absl::NotFoundError(absl::StrCat("stream ", stream, " has no partition ", partition));
  }
  return FromProto(response.partitions(partition));
}

absl::StatusOr<int64_t> RemoteEventStreamStore::Append(absl::string_view stream, int partition,
                                                       absl::Span<const NewEvent> events) {
  MUSTER_RETURN_IF_ERROR(ValidateAppend(events));
  int64_t first = 0;
  for (size_t next = 0; next < events.size();) {
    v1::AppendEventsRequest request;
    request.set_stream(std::string(stream));
    request.set_partition(partition);
    rpc::AnswerRoom room;
    for (; next < events.size(); ++next) {
      v1::StreamEvent event = ToProto(events[next]);
      if (!room.Take(event)) break;
      *request.add_events() = std::move(event);
    }
    rpc::CallContext context(timeout_);
    v1::AppendEventsResponse response;
    MUSTER_RETURN_IF_ERROR(rpc::FromGrpc(stub_->AppendEvents(&context, request, &response)));
    if (first == 0 && response.places_size() > 0) first = response.places(0).offset();
  }
  return first;
}

absl::StatusOr<std::unique_ptr<PartitionReader>> RemoteEventStreamStore::OpenReader(
    absl::string_view stream, int partition, int64_t offset) {
  MUSTER_RETURN_IF_ERROR(ValidateOffset(offset));
  return std::make_unique<Reader>(this, stream, partition, offset);
}

}  // namespace muster::stream::remote
