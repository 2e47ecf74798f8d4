#include "services/initiator/api/queue_requests.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "muster/base/status_macros.h"
#include "muster/queue/limits.h"
#include "muster/queue/queue_forms.h"
#include "muster/rpc/status.h"

namespace muster::initiator::api {
namespace {

// A page has 100 queues unless the request says otherwise: their counts are looked up one by one.
constexpr int kDefaultPage = 100;
constexpr int kMaxPage = 1000;
constexpr int kMaxNamed = 1000;  // messages of one redrive
// Stands in for the part of a queue's address that is not looked at.
constexpr char kAnyName[] = "any";

absl::Status CheckRange(const std::string& field, int64_t value, int64_t max) {
  if (value >= 1 && value <= max) return absl::OkStatus();
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

template <typename Request>
absl::StatusOr<MessageCut> ParseCut(const Request& request, int most) {
  MessageCut cut;
  MUSTER_ASSIGN_OR_RETURN(cut.queue, ParseQueue(request.queue()));
  MUSTER_RETURN_IF_ERROR(CheckRange("max_messages", request.max_messages(), most));
  if (request.max_body_bytes() < 0) return rpc::BadField("max_body_bytes", "must not be negative");
  cut.max_messages = request.max_messages();
  cut.max_body_bytes = request.max_body_bytes();
  return cut;
}

}  // namespace

absl::StatusOr<queue::QueueId> ParseQueue(const v1::QueueName& name) {
  MUSTER_RETURN_IF_ERROR(CheckAccount("queue.account", name.account()));
  MUSTER_RETURN_IF_ERROR(CheckName("queue.name", name.name()));
  return queue::FromProto(name);
}

absl::StatusOr<queue::ListQueuesRequest> ParseListQueues(const v1::ListQueuesRequest& request) {
  MUSTER_RETURN_IF_ERROR(CheckAccount("account", request.account()));
  queue::ListQueuesRequest parsed;
  parsed.account = request.account();
  parsed.prefix = request.prefix();
  parsed.max_results = kDefaultPage;
  if (request.page_size() != 0) {
    MUSTER_RETURN_IF_ERROR(CheckRange("page_size", request.page_size(), kMaxPage));
    parsed.max_results = request.page_size();
  }
  // The token is the name that the last page ended with.
  if (!request.page_token().empty()) {
    if (!CheckName("page_token", request.page_token()).ok()) {
      return rpc::BadField("page_token", "is not one that a response gave");
    }
    parsed.after = request.page_token();
  }
  return parsed;
}

absl::StatusOr<MessageCut> ParsePeek(const v1::PeekMessagesRequest& request) {
  return ParseCut(request, queue::kMaxReceive);
}

absl::StatusOr<MessageCut> ParseListPoison(const v1::ListPoisonRequest& request) {
  return ParseCut(request, queue::kMaxListPoison);
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
  parsed.messages.assign(request.message_ids().begin(), request.message_ids().end());
  parsed.max = request.max_messages();
  return parsed;
}

}  // namespace muster::initiator::api
