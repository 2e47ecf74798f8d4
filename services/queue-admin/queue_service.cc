// SPDX-License-Identifier: Apache-2.0

// QueueService: parses each request, then asks the queue store. An unsound request is
// InvalidArgument, with a BadRequest that names the field.

#include "services/queue-admin/queue_service.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/item/held_key_admin.h"
#include "muster/queue/limits.h"
#include "muster/queue/queue_proto.h"
#include "muster/rpc/paging.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "muster/v1/queue_service.pb.h"

namespace muster::queue_admin {

namespace {

// How many messages to answer, and how much of each body.
struct MessageCut {
  queue::QueueId queue;
  int max_messages = 0;
  int32_t max_body_bytes = 0;  // 0: all
};

constexpr int kMaxNamed = 1000;  // messages of one redrive
constexpr int64_t kMaxPerSecond = 1'000'000;
// Stands in for the part of a queue's address that a check does not read.
constexpr char kAnyName[] = "any";

absl::Status OutOfRange(const std::string& field, int64_t value, int64_t max) {
  return rpc::BadField(field, absl::StrCat("is ", value, ", must be within 1 to ", max));
}

absl::Status CheckAccount(const std::string& field, const std::string& account) {
  const absl::Status valid = queue::ValidateQueueId({account, kAnyName});
  return valid.ok() ? valid : rpc::BadField(field, valid.message());
}

absl::Status CheckName(const std::string& field, const std::string& name) {
  const absl::Status valid = queue::ValidateQueueId({kAnyName, name});
  return valid.ok() ? valid : rpc::BadField(field, valid.message());
}

absl::StatusOr<queue::QueueId> ParseQueue(const v1::QueueName& name) {
  MUSTER_RETURN_IF_ERROR(CheckAccount("queue.account", name.account()));
  MUSTER_RETURN_IF_ERROR(CheckName("queue.name", name.name()));
  return queue::FromProto(name);
}

template <typename Request>
absl::StatusOr<MessageCut> ParseCut(const Request& request, int most) {
  MessageCut cut;
  MUSTER_ASSIGN_OR_RETURN(cut.queue, ParseQueue(request.queue()));
  if (request.max_messages() < 1 || request.max_messages() > most) {
    return OutOfRange("max_messages", request.max_messages(), most);
  }
  if (request.max_body_bytes() < 0) return rpc::BadField("max_body_bytes", "must not be negative");
  cut.max_messages = request.max_messages();
  cut.max_body_bytes = request.max_body_bytes();
  return cut;
}

// Answers the request with the page size as max_results.
absl::StatusOr<queue::ListQueuesRequest> ParseListQueues(const v1::ListQueuesRequest& request) {
  MUSTER_RETURN_IF_ERROR(CheckAccount("account", request.account()));
  queue::ListQueuesRequest parsed;
  parsed.account = request.account();
  parsed.prefix = request.prefix();
  const std::optional<int> page_size = rpc::PageSize(request.page_size());
  if (!page_size.has_value())
    return OutOfRange("page_size", request.page_size(), rpc::kMaxPageSize);
  parsed.max_results = *page_size;
  // The token is the name that the last page ended with.
  if (!request.page_token().empty()) {
    if (!CheckName("page_token", request.page_token()).ok()) {
      return rpc::BadField("page_token", "is not one that a response gave");
    }
    parsed.after = request.page_token();
  }
  return parsed;
}

absl::StatusOr<item::RedriveRequest> ParseRedrive(const v1::RedriveRequest& request) {
  item::RedriveRequest parsed;
  MUSTER_ASSIGN_OR_RETURN(parsed.queue, ParseQueue(request.queue()));
  if (request.message_ids_size() > kMaxNamed) {
    return rpc::BadField("message_ids", absl::StrCat("are ", request.message_ids_size(),
                                                     ", must be at most ", kMaxNamed));
  }
  const bool named = request.message_ids_size() > 0;
  if (request.max_messages() < 0) return rpc::BadField("max_messages", "must not be negative");
  if (named && request.max_messages() > 0) {
    return rpc::BadField("max_messages", "must be 0 when message_ids are named");
  }
  if (!named && request.max_messages() == 0) {
    return rpc::BadField("max_messages", "must be at least 1 when no message_ids are named");
  }
  if (request.messages_per_second() < 0 || request.messages_per_second() > kMaxPerSecond) {
    return rpc::BadField("messages_per_second",
                         absl::StrCat("is ", request.messages_per_second(),
                                      ", must be within 0 to ", kMaxPerSecond));
  }
  if (named && request.messages_per_second() > 0) {
    return rpc::BadField("messages_per_second", "must be 0 when message_ids are named");
  }
  parsed.per_second = request.messages_per_second();
  parsed.messages.assign(request.message_ids().begin(), request.message_ids().end());
  parsed.max = request.max_messages();
  return parsed;
}

// Of ReleaseHeldKeys and RedriveHeldKeys.
template <typename Request>
absl::StatusOr<item::HeldKeyRequest> ParseHeldKeys(const Request& request) {
  item::HeldKeyRequest parsed;
  MUSTER_ASSIGN_OR_RETURN(parsed.queue, ParseQueue(request.queue()));
  if (request.keys_size() > kMaxNamed) {
    return rpc::BadField(
        "keys", absl::StrCat("are ", request.keys_size(), ", must be at most ", kMaxNamed));
  }
  if (request.keys().empty() != request.all()) {
    return rpc::BadField("all", request.all() ? "must be unset when keys are named"
                                              : "must be set when no keys are named");
  }
  parsed.keys.assign(request.keys().begin(), request.keys().end());
  return parsed;
}

v1::HeldKey ToProto(const item::HeldKeyView& view) {
  v1::HeldKey key;
  key.set_key(view.held.key);
  key.set_batch(view.held.batch);
  key.set_item(view.held.item);
  *key.mutable_since() = base::ToProto(view.held.since);
  key.set_message_id(view.message_id);
  if (!view.message_id.empty()) *key.mutable_cause() = queue::ToProto(view.cause);
  return key;
}

void FillRedriven(const item::RedriveSummary& summary, v1::RedriveResponse* response) {
  response->set_redriven(summary.messages);
  response->mutable_batches()->Add(summary.batches.begin(), summary.batches.end());
  response->set_kept_messages(summary.kept_messages);
  for (const auto& [batch, why] : summary.kept) {
    v1::KeptPoison* const kept = response->add_kept();
    kept->set_batch(batch);
    kept->set_why(why);
  }
}

// Poison messages read at a time: the store reads whole bodies, of which the answer may hold only
// the beginnings.
constexpr int kPoisonStep = 32;

absl::Status FillQueues(const queue::ListQueuesRequest& request, queue::QueueStore& queues,
                        v1::ListQueuesResponse* response) {
  queue::ListQueuesRequest one_more = request;  // the extra queue shows that another page follows
  ++one_more.max_results;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<queue::QueueInfo> infos, queues.ListQueues(one_more));
  rpc::AnswerRoom room;
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
      return absl::OkStatus();
    }
    *response->add_queues() = std::move(summary);
    last = info.id.name;
  }
  // Some were deleted meanwhile, so that all of the rest fit: others may follow.
  if (infos.size() == static_cast<size_t>(one_more.max_results)) {
    response->set_next_page_token(infos.back().id.name);
  }
  return absl::OkStatus();
}

absl::Status FillPoison(const MessageCut& cut, std::string after, queue::QueueStore& queues,
                        v1::ListPoisonResponse* response) {
  rpc::AnswerRoom room;
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
    MUSTER_ASSIGN_OR_RETURN(const MessageCut cut, ParseCut(*request, queue::kMaxReceive));
    MUSTER_ASSIGN_OR_RETURN(const std::vector<queue::Message> messages,
                            queues_->Peek(cut.queue, cut.max_messages));
    rpc::AnswerRoom room;
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
    MUSTER_ASSIGN_OR_RETURN(const MessageCut cut, ParseCut(*request, queue::kMaxListPoison));
    const absl::Status filled = FillPoison(cut, request->after_message_id(), *queues_, response);
    // Any other field was checked before.
    if (!absl::IsInvalidArgument(filled)) return filled;
    return rpc::WithViolations(filled, {{"after_message_id", std::string(filled.message())}});
  });
}

grpc::Status QueueService::Redrive(grpc::ServerContext* context, const v1::RedriveRequest* request,
                                   v1::RedriveResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(item::RedriveRequest parsed, ParseRedrive(*request));
    parsed.clock = clock_;
    const bool paced = parsed.per_second > 0;
    parsed.is_cancelled = [this, context, paced] {
      return context->IsCancelled() || (paced && draining_);
    };
    parsed.on_redriven = [this, &parsed](int64_t messages) { Trigger(parsed.queue, messages); };
    MUSTER_ASSIGN_OR_RETURN(const item::RedriveSummary summary, RunRedrive(parsed));
    FillRedriven(summary, response);
    return absl::OkStatus();
  });
}

grpc::Status QueueService::ListHeldKeys(grpc::ServerContext* context,
                                        const v1::ListHeldKeysRequest* request,
                                        v1::ListHeldKeysResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const queue::QueueId id, ParseQueue(request->queue()));
    MUSTER_ASSIGN_OR_RETURN(const auto views, item::ListHeldKeys(id, *queues_, held_keys_));
    for (const item::HeldKeyView& view : views) *response->add_keys() = ToProto(view);
    return absl::OkStatus();
  });
}

grpc::Status QueueService::ReleaseHeldKeys(grpc::ServerContext* context,
                                           const v1::ReleaseHeldKeysRequest* request,
                                           v1::ReleaseHeldKeysResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const item::HeldKeyRequest parsed, ParseHeldKeys(*request));
    MUSTER_ASSIGN_OR_RETURN(const auto released,
                            item::ReleaseHeldKeys(parsed, *queues_, held_keys_));
    if (!released.empty()) Trigger(parsed.queue, static_cast<int64_t>(released.size()));
    for (const item::HeldKeyView& view : released) *response->add_released() = ToProto(view);
    return absl::OkStatus();
  });
}

grpc::Status QueueService::RedriveHeldKeys(grpc::ServerContext* context,
                                           const v1::RedriveHeldKeysRequest* request,
                                           v1::RedriveHeldKeysResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const item::HeldKeyRequest parsed, ParseHeldKeys(*request));
    MUSTER_ASSIGN_OR_RETURN(const item::HeldKeyRedrive redrive,
                            item::RedriveHeldKeys(parsed, *queues_, held_keys_, *reopener_));
    if (redrive.summary.messages > 0) Trigger(parsed.queue, redrive.summary.messages);
    FillRedriven(redrive.summary, response->mutable_redriven());
    for (const std::string& key : redrive.without_dead_letter) {
      response->add_without_dead_letter(key);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<item::RedriveSummary> QueueService::RunRedrive(const item::RedriveRequest& request) {
  if (request.per_second == 0) return item::RedriveItems(request, *queues_, *reopener_);
  const int before = paced_redrives_.fetch_add(1);
  const absl::Cleanup over = [this] { --paced_redrives_; };
  if (before >= kMaxPacedRedrives) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kMaxPacedRedrives, " redrives with a rate are running"));
  }
  return item::RedriveItems(request, *queues_, *reopener_);
}

void QueueService::Trigger(const queue::QueueId& queue, int64_t messages) {
  if (bus_ == nullptr) return;
  const absl::Status published = bus_->Publish(
      {instance_, bus::CloudQueueWorkDetectedTriggerEvent{queue.account, queue.name, messages}});
  base::LogUnlessOk(base::kWarning, "trigger not sent", published, {{"queue", queue.ToString()}});
}

grpc::Status QueueService::PurgePoison(grpc::ServerContext* context,
                                       const v1::PurgePoisonRequest* request,
                                       v1::PurgePoisonResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const queue::QueueId id, ParseQueue(request->queue()));
    MUSTER_ASSIGN_OR_RETURN(const int64_t purged, item::PurgePoison(id, *queues_, held_keys_));
    if (purged > 0) Trigger(id, purged);  // keys may go on
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

}  // namespace muster::queue_admin
