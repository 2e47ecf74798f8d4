#include "cli/queue/local_queue_admin.h"

#include <utility>

#include "cli/queue/redrive.h"
#include "muster/backend/backend.h"
#include "muster/base/status_macros.h"

namespace muster::cli {
namespace {

class LocalQueueAdmin final : public QueueAdmin {
 public:
  LocalQueueAdmin(std::string data_dir, base::Clock* clock)
      : data_dir_(std::move(data_dir)), clock_(clock) {}

  absl::StatusOr<std::vector<QueueCounts>> List(const std::string& account) override {
    MUSTER_ASSIGN_OR_RETURN(const auto store, OpenToLook());
    queue::ListQueuesRequest request;
    request.account = account;
    MUSTER_ASSIGN_OR_RETURN(const std::vector<queue::QueueInfo> infos, store->ListQueues(request));
    std::vector<QueueCounts> counts;
    for (const queue::QueueInfo& info : infos) {
      MUSTER_ASSIGN_OR_RETURN(const queue::QueueStats stats, store->Stats(info.id));
      counts.push_back({info.id, stats});
    }
    return counts;
  }

  absl::StatusOr<queue::QueueStats> Stats(const queue::QueueId& id) override {
    MUSTER_ASSIGN_OR_RETURN(const auto store, OpenToLook());
    return store->Stats(id);
  }

  absl::StatusOr<std::vector<queue::Message>> Peek(const queue::QueueId& id, int max) override {
    MUSTER_ASSIGN_OR_RETURN(const auto store, OpenToLook());
    return store->Peek(id, max);
  }

  absl::StatusOr<std::vector<queue::PoisonMessage>> Poison(const queue::QueueId& id,
                                                           int max) override {
    MUSTER_ASSIGN_OR_RETURN(const auto store, OpenToLook());
    return store->ListPoison(id, "", max);
  }

  absl::StatusOr<item::RedriveSummary> Redrive(const item::RedriveRequest& request) override {
    return RedriveLocally(data_dir_, request, clock_);
  }

  absl::StatusOr<int64_t> PurgePoison(const queue::QueueId& id) override {
    MUSTER_ASSIGN_OR_RETURN(const auto store, OpenToChange());
    return store->PurgePoison(id);
  }

  absl::Status Purge(const queue::QueueId& id) override {
    MUSTER_ASSIGN_OR_RETURN(const auto store, OpenToChange());
    return store->Clear(id);
  }

 private:
  using Store = std::unique_ptr<queue::QueueStore>;

  absl::StatusOr<Store> OpenToLook() const {
    return backend::OpenQueueStore(backend::DataDirUrls(data_dir_).queue, backend::Mode::kReadOnly,
                                   backend::Holders::kElsewhere, clock_);
  }

  absl::StatusOr<Store> OpenToChange() const {
    // Nothing is created where nothing is.
    MUSTER_RETURN_IF_ERROR(OpenToLook().status());
    return backend::OpenQueueStore(backend::DataDirUrls(data_dir_).queue, backend::Mode::kReadWrite,
                                   backend::Holders::kInProcess, clock_);
  }

  const std::string data_dir_;
  base::Clock* const clock_;  // not owned
};

}  // namespace

std::unique_ptr<QueueAdmin> NewLocalQueueAdmin(const std::string& data_dir, base::Clock* clock) {
  return std::make_unique<LocalQueueAdmin>(data_dir, clock);
}

}  // namespace muster::cli
