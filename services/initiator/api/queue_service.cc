#include "services/initiator/api/queue_service.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/status_macros.h"
#include "muster/queue/queue_forms.h"
#include "muster/rpc/call.h"
#include "muster/rpc/status.h"
#include "services/initiator/api/queue_requests.h"

namespace muster::initiator::api {
namespace {

// Of one answer, with room to what gRPC takes for what surrounds it. A body alone is far smaller.
constexpr size_t kMaxAnswerBytes = size_t{3} << 20;
// Poison is read so many at a time, with whole bodies, of which perhaps only the beginnings are
// sent.
constexpr int kPoisonStep = 32;

// Adds entries to an answer until it is full.
class AnswerRoom {
 public:
  // Whether `entry` fits; the first one always does.
  template <typename Entry>
  bool Take(const Entry& entry) {
    bytes_ += entry.ByteSizeLong();
    return std::exchange(first_, false) || bytes_ <= kMaxAnswerBytes;
  }

 private:
  size_t bytes_ = 0;
  bool first_ = true;
};

absl::Status FillQueues(const queue::ListQueuesRequest& request, queue::QueueStore& queues,
                        v1::ListQueuesResponse* response) {
  queue::ListQueuesRequest one_more = request;  // tells whether there is another page
  ++one_more.max_results;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<queue::QueueInfo> infos, queues.ListQueues(one_more));
  AnswerRoom room;
  std::string last;
  for (const queue::QueueInfo& info : infos) {
    const absl::StatusOr<queue::QueueStats> stats = queues.Stats(info.id);
    if (absl::IsNotFound(stats.status())) continue;  // deleted meanwhile
    MUSTER_RETURN_IF_ERROR(stats.status());
    v1::QueueSummary summary;
    *summary.mutable_queue() = queue::ToProto(info.id);
    for (const auto& [name, value] : info.metadata) {
      (*summary.mutable_metadata())[queue::ProtoText(name)] = queue::ProtoText(value);
    }
    *summary.mutable_stats() = queue::ToProto(*stats);
    if (response->queues_size() == request.max_results || !room.Take(summary)) {
      response->set_next_page_token(last);
      break;
    }
    *response->add_queues() = std::move(summary);
    last = info.id.name;
  }
  return absl::OkStatus();
}

absl::Status FillPoison(const MessageCut& cut, std::string after, queue::QueueStore& queues,
                        v1::ListPoisonResponse* response) {
  AnswerRoom room;
  while (response->messages_size() < cut.max_messages) {
    const int step = std::min(kPoisonStep, cut.max_messages - response->messages_size());
    MUSTER_ASSIGN_OR_RETURN(const std::vector<queue::PoisonMessage> page,
                            queues.ListPoison(cut.queue, after, step));
    if (page.empty()) break;
    for (const queue::PoisonMessage& message : page) {
      v1::PoisonMessage shown = queue::ToProto(message, cut.max_body_bytes);
      if (!room.Take(shown)) return absl::OkStatus();
      *response->add_messages() = std::move(shown);
    }
    after = page.back().message_id;
  }
  return absl::OkStatus();
}

}  // namespace

grpc::Status QueueService::ListQueues(grpc::ServerContext* context,
                                      const v1::ListQueuesRequest* request,
                                      v1::ListQueuesResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const queue::ListQueuesRequest parsed, ParseListQueues(*request));
    return FillQueues(parsed, *queues_, response);
  });
}

grpc::Status QueueService::GetQueueStats(grpc::ServerContext* context,
                                         const v1::GetQueueStatsRequest* request,
                                         v1::GetQueueStatsResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const queue::QueueId id, ParseQueue(request->queue()));
    MUSTER_ASSIGN_OR_RETURN(const queue::QueueStats stats, queues_->Stats(id));
    *response->mutable_stats() = queue::ToProto(stats);
    return absl::OkStatus();
  });
}

grpc::Status QueueService::PeekMessages(grpc::ServerContext* context,
                                        const v1::PeekMessagesRequest* request,
                                        v1::PeekMessagesResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const MessageCut cut, ParsePeek(*request));
    MUSTER_ASSIGN_OR_RETURN(const std::vector<queue::Message> messages,
                            queues_->Peek(cut.queue, cut.max_messages));
    AnswerRoom room;
    for (const queue::Message& message : messages) {
      v1::PeekedMessage shown = queue::ToProto(message, cut.max_body_bytes);
      if (!room.Take(shown)) break;
      *response->add_messages() = std::move(shown);
    }
    return absl::OkStatus();
  });
}

grpc::Status QueueService::ListPoison(grpc::ServerContext* context,
                                      const v1::ListPoisonRequest* request,
                                      v1::ListPoisonResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const MessageCut cut, ParseListPoison(*request));
    const absl::Status filled = FillPoison(cut, request->after_message_id(), *queues_, response);
    // All else was looked at before.
    if (!absl::IsInvalidArgument(filled)) return filled;
    return rpc::WithViolations(filled, {{"after_message_id", std::string(filled.message())}});
  });
}

grpc::Status QueueService::Redrive(grpc::ServerContext* context, const v1::RedriveRequest* request,
                                   v1::RedriveResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(item::RedriveRequest parsed, ParseRedrive(*request));
    parsed.is_cancelled = [context] { return context->IsCancelled(); };
    MUSTER_ASSIGN_OR_RETURN(const item::RedriveSummary summary,
                            item::RedriveItems(parsed, *queues_, *reopener_));
    response->set_redriven(summary.messages);
    response->mutable_batches()->Add(summary.batches.begin(), summary.batches.end());
    return absl::OkStatus();
  });
}

grpc::Status QueueService::PurgePoison(grpc::ServerContext* context,
                                       const v1::PurgePoisonRequest* request,
                                       v1::PurgePoisonResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const queue::QueueId id, ParseQueue(request->queue()));
    MUSTER_ASSIGN_OR_RETURN(const int64_t purged, queues_->PurgePoison(id));
    response->set_purged(purged);
    return absl::OkStatus();
  });
}

grpc::Status QueueService::PurgeQueue(grpc::ServerContext* context,
                                      const v1::PurgeQueueRequest* request,
                                      v1::PurgeQueueResponse*) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const queue::QueueId id, ParseQueue(request->queue()));
    return queues_->Clear(id);
  });
}

}  // namespace muster::initiator::api
