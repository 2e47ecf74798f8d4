// SPDX-License-Identifier: Apache-2.0

// StreamService: parses each request, then asks the stream store. An unsound request is
// InvalidArgument, with a BadRequest that names the field.

#include "services/initiator/api/stream_service.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/rpc/paging.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "muster/stream/event_producer.h"
#include "muster/stream/processor/replay.h"
#include "muster/stream/stream_proto.h"
#include "services/initiator/api/process_call.h"

namespace muster::initiator::api {
namespace {

constexpr absl::Duration kMaxWait = absl::Seconds(10);
// How soon a read that waits notices that its client has left.
constexpr absl::Duration kWaitStep = absl::Milliseconds(250);

absl::Status CheckStream(const std::string& stream) {
  const absl::Status valid = stream::ValidateStreamName(stream);
  return valid.ok() ? valid : rpc::BadField("stream", valid.message());
}

// Waits until an event is there, the wait is over, or the client has left.
absl::StatusOr<std::vector<stream::Event>> AwaitEvents(stream::PartitionReader* reader, int max,
                                                       absl::Duration deadline, base::Clock* clock,
                                                       const grpc::ServerContext& context) {
  for (;;) {
    const absl::Duration left = deadline - clock->Monotonic();
    MUSTER_ASSIGN_OR_RETURN(std::vector<stream::Event> events,
                            reader->Next(max, std::clamp(left, absl::ZeroDuration(), kWaitStep)));
    if (!events.empty() || left <= absl::ZeroDuration() || context.IsCancelled()) return events;
  }
}

}  // namespace

grpc::Status StreamService::CreateStream(grpc::ServerContext* context,
                                         const v1::CreateStreamRequest* request,
                                         v1::CreateStreamResponse*) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_RETURN_IF_ERROR(CheckStream(request->stream()));
    const absl::StatusOr<stream::StreamOptions> options = stream::FromProto(request->options());
    if (!options.ok()) return rpc::BadField("options", options.status().message());
    return streams_->Create(request->stream(), *options);
  });
}

grpc::Status StreamService::ListStreams(grpc::ServerContext* context, const v1::ListStreamsRequest*,
                                        v1::ListStreamsResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> names, streams_->List());
    response->mutable_streams()->Add(names.begin(), names.end());
    return absl::OkStatus();
  });
}

grpc::Status StreamService::GetStream(grpc::ServerContext* context,
                                      const v1::GetStreamRequest* request,
                                      v1::GetStreamResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_RETURN_IF_ERROR(CheckStream(request->stream()));
    MUSTER_ASSIGN_OR_RETURN(const stream::StreamOptions options,
                            streams_->Describe(request->stream()));
    *response->mutable_options() = stream::ToProto(options);
    for (int p = 0; p < options.partitions; ++p) {
      MUSTER_ASSIGN_OR_RETURN(const stream::PartitionExtent extent,
                              streams_->Extent(request->stream(), p));
      *response->add_partitions() = stream::ToProto(extent);
    }
    return absl::OkStatus();
  });
}

grpc::Status StreamService::DeleteStream(grpc::ServerContext* context,
                                         const v1::DeleteStreamRequest* request,
                                         v1::DeleteStreamResponse*) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_RETURN_IF_ERROR(CheckStream(request->stream()));
    return streams_->Delete(request->stream());
  });
}

// The client tries again what failed, so the producer here does not.
grpc::Status StreamService::AppendEvents(grpc::ServerContext* context,
                                         const v1::AppendEventsRequest* request,
                                         v1::AppendEventsResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_RETURN_IF_ERROR(CheckStream(request->stream()));
    if (request->events_size() > static_cast<int>(stream::kMaxAppendEvents)) {
      return rpc::BadField("events", absl::StrCat("are ", request->events_size(),
                                                  ", must be at most ", stream::kMaxAppendEvents));
    }
    std::vector<stream::NewEvent> events;
    for (const v1::StreamEvent& event : request->events()) {
      events.push_back(stream::NewFromProto(event));
      const absl::Status valid = stream::ValidateAppend(absl::MakeConstSpan(&events.back(), 1));
      if (!valid.ok()) {
        return rpc::BadField(absl::StrCat("events[", events.size() - 1, "]"), valid.message());
      }
    }
    MUSTER_ASSIGN_OR_RETURN(const auto producer,
                            stream::EventProducer::Open(streams_, request->stream(),
                                                        {.retry = {.max_attempts = 1}}, clock_));
    const int partition =
        request->has_partition() ? request->partition() : stream::EventProducer::kAnyPartition;
    if (request->has_partition() && (partition < 0 || partition >= producer->partitions())) {
      return absl::NotFoundError(
          absl::StrCat("stream ", request->stream(), " has no partition ", partition));
    }
    for (const auto& place : producer->SendAll(std::move(events), partition)) {
      MUSTER_RETURN_IF_ERROR(place.status());
      v1::EventPlace* const added = response->add_places();
      added->set_partition(place->partition);
      added->set_offset(place->offset);
    }
    return absl::OkStatus();
  });
}

grpc::Status StreamService::ReadEvents(grpc::ServerContext* context,
                                       const v1::ReadEventsRequest* request,
                                       v1::ReadEventsResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_RETURN_IF_ERROR(CheckStream(request->stream()));
    const std::optional<int> max = rpc::PageSize(request->max_events());
    if (!max.has_value()) {
      return rpc::BadField("max_events", absl::StrCat("is ", request->max_events(),
                                                      ", must be within 0 to ", rpc::kMaxPageSize));
    }
    if (request->offset() < 1) return rpc::BadField("offset", "must be at least 1");
    const absl::Duration wait = base::FromProto(request->wait());
    if (wait < absl::ZeroDuration() || wait > kMaxWait) {
      return rpc::BadField("wait", "must be within 0 to 10 s");
    }
    const int waits = wait > absl::ZeroDuration() ? 1 : 0;
    const int before = waiting_reads_.fetch_add(waits);
    const absl::Cleanup leave = [this, waits] { waiting_reads_ -= waits; };
    if (waits > 0 && before >= max_waiting_reads_) {
      return absl::UnavailableError(
          absl::StrCat(max_waiting_reads_, " reads wait for events already; ask again"));
    }
    MUSTER_ASSIGN_OR_RETURN(
        const std::unique_ptr<stream::PartitionReader> reader,
        streams_->OpenReader(request->stream(), request->partition(), request->offset()));
    MUSTER_ASSIGN_OR_RETURN(
        std::vector<stream::Event> events,
        AwaitEvents(reader.get(), *max, clock_->Monotonic() + wait, clock_, *context));
    rpc::AnswerRoom room;
    for (stream::Event& event : events) {
      v1::StreamEvent proto = stream::ToProto(std::move(event));
      if (!room.Take(proto)) break;
      *response->add_events() = std::move(proto);
    }
    return absl::OkStatus();
  });
}

grpc::Status StreamService::ProcessEvents(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::ProcessEventsResponse, v1::ProcessEventsRequest>* call) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(
        const std::unique_ptr<rpc::StreamLimiter::Place> place,
        process_calls_.Admit([context](const absl::Status& why) { rpc::EndCall(context, why); }));
    {
      base::MutexLock lock(&mu_);
      if (closed_) return absl::UnavailableError("this initiator ends");
      processing_.insert(context);
    }
    const absl::Status ended = ProcessCall(stores_, &processed_, clock_, place.get(), call).Run();
    base::MutexLock lock(&mu_);
    processing_.erase(context);
    return closed_ ? absl::UnavailableError("this initiator ends") : ended;
  });
}

void StreamService::StopProcessing() {
  base::MutexLock lock(&mu_);
  closed_ = true;
  for (grpc::ServerContext* context : processing_) context->TryCancel();
}

grpc::Status StreamService::ReplayPartition(grpc::ServerContext* context,
                                            const v1::ReplayPartitionRequest* request,
                                            v1::ReplayPartitionResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_RETURN_IF_ERROR(CheckStream(request->stream()));
    const absl::Status group = stream::ValidateStreamName(request->group());
    if (!group.ok()) return rpc::BadField("group", group.message());
    if (request->offset() < 0) return rpc::BadField("offset", "must not be negative");
    MUSTER_ASSIGN_OR_RETURN(const int64_t offset,
                            stream::processor::Replay(stores_, request->stream(), request->group(),
                                                      request->partition(), request->offset()));
    response->set_offset(offset);
    return absl::OkStatus();
  });
}

}  // namespace muster::initiator::api
