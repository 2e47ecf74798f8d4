#include "cli/queue/remote_queue_admin.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/queue/queue_forms.h"
#include "muster/v1/queue_service.grpc.pb.h"

namespace muster::cli {
namespace {

constexpr int kQueuesPerPage = 1000;
constexpr size_t kMaxNamed = 1000;  // messages of one redrive

class RemoteQueueAdmin final : public QueueAdmin {
 public:
  explicit RemoteQueueAdmin(std::unique_ptr<MeshClient> mesh)
      : mesh_(std::move(mesh)), stub_(v1::QueueService::NewStub(mesh_->initiator())) {}

  absl::StatusOr<std::vector<QueueCounts>> List(const std::string& account) override {
    std::vector<QueueCounts> counts;
    v1::ListQueuesRequest request;
    request.set_account(account);
    request.set_page_size(kQueuesPerPage);
    do {
      v1::ListQueuesResponse response;
      MUSTER_RETURN_IF_ERROR(mesh_->Call(*stub_, &Stub::ListQueues, request, &response));
      for (const v1::QueueSummary& queue : response.queues()) {
        counts.push_back({queue::FromProto(queue.queue()), queue::FromProto(queue.stats())});
      }
      request.set_page_token(response.next_page_token());
    } while (!request.page_token().empty());
    return counts;
  }

  absl::StatusOr<queue::QueueStats> Stats(const queue::QueueId& id) override {
    v1::GetQueueStatsResponse response;
    MUSTER_RETURN_IF_ERROR(
        mesh_->Call(*stub_, &Stub::GetQueueStats, About<v1::GetQueueStatsRequest>(id), &response));
    return queue::FromProto(response.stats());
  }

  // With whole bodies: what is in them is told by decoding them.
  absl::StatusOr<std::vector<queue::Message>> Peek(const queue::QueueId& id, int max) override {
    auto request = About<v1::PeekMessagesRequest>(id);
    request.set_max_messages(max);
    v1::PeekMessagesResponse response;
    MUSTER_RETURN_IF_ERROR(mesh_->Call(*stub_, &Stub::PeekMessages, request, &response));
    std::vector<queue::Message> messages;
    for (const v1::PeekedMessage& message : response.messages()) {
      messages.push_back(queue::FromProto(message));
    }
    return messages;
  }

  absl::StatusOr<std::vector<queue::PoisonMessage>> Poison(const queue::QueueId& id,
                                                           int max) override {
    std::vector<queue::PoisonMessage> messages;
    auto request = About<v1::ListPoisonRequest>(id);
    // A response may hold fewer than are asked for and are there: only none is the end.
    while (messages.size() < static_cast<size_t>(max)) {
      request.set_max_messages(max - static_cast<int>(messages.size()));
      v1::ListPoisonResponse response;
      MUSTER_RETURN_IF_ERROR(mesh_->Call(*stub_, &Stub::ListPoison, request, &response));
      if (response.messages().empty()) break;
      for (const v1::PoisonMessage& message : response.messages()) {
        messages.push_back(queue::FromProto(message));
      }
      request.set_after_message_id(messages.back().message_id);
    }
    return messages;
  }

  absl::StatusOr<item::RedriveSummary> Redrive(const item::RedriveRequest& request) override {
    item::RedriveSummary summary;
    auto call = About<v1::RedriveRequest>(request.queue);
    if (request.messages.empty()) {
      call.set_max_messages(request.max);
      MUSTER_RETURN_IF_ERROR(Redrive(call, &summary));
      return summary;
    }
    const std::set<std::string> named(request.messages.begin(), request.messages.end());
    for (auto next = named.begin(); next != named.end();) {
      call.clear_message_ids();
      for (size_t i = 0; i < kMaxNamed && next != named.end(); ++i) call.add_message_ids(*next++);
      MUSTER_RETURN_IF_ERROR(Redrive(call, &summary));
    }
    // The service passes over what is gone meanwhile, and cannot know that somebody mistyped.
    const auto missing = static_cast<int64_t>(named.size()) - summary.messages;
    if (request.missing == item::Missing::kRefused && missing > 0) {
      return absl::NotFoundError(Missing(request, *named.begin(), summary.messages));
    }
    return summary;
  }

  absl::StatusOr<int64_t> PurgePoison(const queue::QueueId& id) override {
    v1::PurgePoisonResponse response;
    MUSTER_RETURN_IF_ERROR(
        mesh_->Call(*stub_, &Stub::PurgePoison, About<v1::PurgePoisonRequest>(id), &response));
    return response.purged();
  }

  absl::Status Purge(const queue::QueueId& id) override {
    v1::PurgeQueueResponse response;
    return mesh_->Call(*stub_, &Stub::PurgeQueue, About<v1::PurgeQueueRequest>(id), &response);
  }

 private:
  using Stub = v1::QueueService::Stub;

  template <typename Request>
  static Request About(const queue::QueueId& id) {
    Request request;
    *request.mutable_queue() = queue::ToProto(id);
    return request;
  }

  static std::string Missing(const item::RedriveRequest& request, const std::string& first,
                             int64_t redriven) {
    const std::string queue = request.queue.ToString();
    if (request.messages.size() == 1) {
      return absl::StrCat(queue, " has no poison message ", first);
    }
    return absl::StrCat(queue, " has only ", redriven, " of the poison messages that were named; ",
                        "those are redriven");
  }

  absl::Status Redrive(const v1::RedriveRequest& call, item::RedriveSummary* summary) {
    v1::RedriveResponse response;
    MUSTER_RETURN_IF_ERROR(mesh_->Call(*stub_, &Stub::Redrive, call, &response));
    summary->messages += response.redriven();
    summary->batches.insert(response.batches().begin(), response.batches().end());
    return absl::OkStatus();
  }

  const std::unique_ptr<MeshClient> mesh_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace

std::unique_ptr<QueueAdmin> NewRemoteQueueAdmin(std::unique_ptr<MeshClient> mesh) {
  return std::make_unique<RemoteQueueAdmin>(std::move(mesh));
}

}  // namespace muster::cli
