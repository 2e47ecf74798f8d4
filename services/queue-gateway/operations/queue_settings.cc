// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/queue_settings.h"

#include <map>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/queue/limits.h"
#include "services/queue-gateway/operations/names.h"

namespace muster::queue_gateway::operations {
namespace {

constexpr char kSettingPrefix[] = "muster-";
constexpr char kMaxDequeue[] = "muster-maxdequeue";
constexpr char kPoison[] = "muster-poison";
constexpr char kLongPoll[] = "muster-longpoll";
constexpr char kDedupBy[] = "muster-dedup-by";
constexpr int64_t kMostDequeues = 1000000;
// The SDKs give up a request after 60 seconds.
constexpr int kMostLongPollSeconds = 50;
constexpr char kPoisonSuffix[] = "-poison";

using Values = std::map<std::string, std::string>;  // by name in lower case

protocol::Error Wrong(absl::string_view reason) {
  return {protocol::ErrorCode::kInvalidMetadata, {{"Reason", std::string(reason)}}};
}

std::optional<std::string> Find(const Values& values, absl::string_view name) {
  const auto found = values.find(std::string(name));
  if (found == values.end()) return std::nullopt;
  return found->second;
}

bool IsKnown(absl::string_view name) {
  return name == kMaxDequeue || name == kPoison || name == kLongPoll || name == kDedupBy ||
         name == queue::kDedupWindowName || name == queue::kVisibilityName;
}

std::optional<protocol::Error> CheckPoisonQueue(absl::string_view poison, absl::string_view queue) {
  if (CheckQueueName(poison).has_value()) {
    return Wrong(absl::StrCat(kPoison, " ", base::Quoted(poison), " is no name of a queue"));
  }
  if (poison == queue) return Wrong(absl::StrCat(kPoison, " is the queue itself"));
  return std::nullopt;
}

std::optional<protocol::Error> ReadPoison(const Values& values, absl::string_view queue,
                                          const queue::Traits& traits, QueueSettings* settings) {
  const auto poison = Find(values, kPoison);
  const auto most = Find(values, kMaxDequeue);
  if (!most.has_value()) {
    if (!poison.has_value()) return std::nullopt;
    return Wrong(absl::StrCat(kPoison, " needs ", kMaxDequeue));
  }
  if (!absl::SimpleAtoi(*most, &settings->max_dequeues) || settings->max_dequeues < 1 ||
      settings->max_dequeues > kMostDequeues) {
    return Wrong(absl::StrCat(kMaxDequeue, " ", base::Quoted(*most), " is no number from 1 to ",
                              kMostDequeues));
  }
  if (!traits.moves) {
    return Wrong(absl::StrCat("the engine ", traits.engine, " has no ", kMaxDequeue));
  }
  settings->poison_queue = poison.value_or(absl::StrCat(queue, kPoisonSuffix));
  return CheckPoisonQueue(settings->poison_queue, queue);
}

std::optional<protocol::Error> ReadLongPoll(const Values& values, QueueSettings* settings) {
  const auto text = Find(values, kLongPoll);
  if (!text.has_value()) return std::nullopt;
  int seconds = 0;
  if (!absl::SimpleAtoi(*text, &seconds) || seconds < 1 || seconds > kMostLongPollSeconds) {
    return Wrong(absl::StrCat(kLongPoll, " ", base::Quoted(*text), " is no number from 1 to ",
                              kMostLongPollSeconds));
  }
  settings->long_poll = absl::Seconds(seconds);
  return std::nullopt;
}

std::optional<protocol::Error> ReadDedup(const Values& values, const queue::Traits& traits,
                                         QueueSettings* settings) {
  const auto by = Find(values, kDedupBy);
  if (!Find(values, queue::kDedupWindowName).has_value()) {
    if (!by.has_value()) return std::nullopt;
    return Wrong(absl::StrCat(kDedupBy, " needs ", queue::kDedupWindowName));
  }
  // An engine that does not keep ids has a window of its own, for all queues.
  if (!traits.dedup || !traits.keeps_ids) {
    return Wrong(absl::StrCat("the engine ", traits.engine, " has no ", queue::kDedupWindowName));
  }
  if (by.value_or("text") == "text") {
    settings->dedup_by = DedupBy::kText;
  } else if (*by == "request-id") {
    settings->dedup_by = DedupBy::kRequestId;
  } else {
    return Wrong(absl::StrCat(kDedupBy, " ", base::Quoted(*by), " is neither text nor request-id"));
  }
  return std::nullopt;
}

}  // namespace

protocol::OrError<QueueSettings> ReadSettings(const queue::Metadata& metadata,
                                              absl::string_view queue_name,
                                              const queue::Traits& traits) {
  Values values;
  for (const auto& [name, value] : metadata) {
    const std::string lower = absl::AsciiStrToLower(name);
    if (!absl::StartsWith(lower, kSettingPrefix)) continue;
    if (!IsKnown(lower)) return Wrong(absl::StrCat(base::Quoted(name), " is not known"));
    values[lower] = value;
  }
  // The window is the engine's, which says the same.
  const absl::Status valid = queue::ValidateMetadata(metadata);
  if (!valid.ok()) return Wrong(valid.message());
  QueueSettings settings;
  settings.visibility = queue::VisibilityOf(metadata);
  if (const auto problem = ReadPoison(values, queue_name, traits, &settings)) return *problem;
  if (const auto problem = ReadLongPoll(values, &settings)) return *problem;
  if (const auto problem = ReadDedup(values, traits, &settings)) return *problem;
  return settings;
}

protocol::OrError<queue::Metadata> NewMetadataOf(const Call& call, const Stores& stores) {
  protocol::OrError<queue::Metadata> metadata = MetadataOf(call.http.headers);
  if (!metadata.ok()) return metadata;
  const auto settings = ReadSettings(*metadata, call.resource.queue, stores.queues->traits());
  if (!settings.ok()) return settings.error();
  return metadata;
}

protocol::Error FromMetadataStatus(const absl::Status& status) {
  if (!absl::IsInvalidArgument(status)) return protocol::FromStore(status);
  return {protocol::ErrorCode::kInvalidMetadata, {{"Reason", std::string(status.message())}}};
}

absl::StatusOr<QueueSettings> SettingsOf(const queue::QueueId& queue, const Stores& stores) {
  MUSTER_ASSIGN_OR_RETURN(const queue::Metadata metadata, stores.queues->GetMetadata(queue));
  const auto settings = ReadSettings(metadata, queue.name, stores.queues->traits());
  return settings.ok() ? *settings : QueueSettings();
}

}  // namespace muster::queue_gateway::operations
