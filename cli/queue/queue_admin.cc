// SPDX-License-Identifier: Apache-2.0

// QueueAdmin for a data directory and for a server.

#include "cli/queue/queue_admin.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cli/server/mesh_client.h"
#include "cli/server/options.h"
#include "muster/backend/backend.h"
#include "muster/base/clock.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/item/held_keys.h"
#include "muster/item/redrive.h"
#include "muster/queue/limits.h"
#include "muster/queue/queue_proto.h"
#include "muster/report/report_client.h"
#include "muster/sync/optimistic_sync_store.h"
#include "muster/v1/queue_service.grpc.pb.h"

namespace muster::cli {

namespace {

// Each comes with its metadata, at most 8 KiB.
constexpr int kQueuesAtATime = 500;

// Calls `redrive` with what gives items of the queues of `data_dir` another chance.
// FailedPrecondition while a run holds it.
template <typename Result>
absl::StatusOr<Result> RedriveLocally(
    const std::string& data_dir, base::Clock* clock,
    absl::FunctionRef<absl::StatusOr<Result>(queue::QueueStore&, item::BatchReopener&)> redrive) {
  const backend::DataDirUrls urls(data_dir);
  // Nothing is created where nothing is.
  MUSTER_RETURN_IF_ERROR(backend::OpenQueueStore(urls.queue, backend::Mode::kReadOnly,
                                                 backend::Holders::kElsewhere, clock)
                             .status());
  MUSTER_ASSIGN_OR_RETURN(const auto queues,
                          backend::OpenQueueStore(urls.queue, backend::Mode::kReadWrite,
                                                  backend::Holders::kInProcess, clock));
  MUSTER_ASSIGN_OR_RETURN(const auto ledger,
                          backend::OpenBatchLedger(urls.ledger, backend::Mode::kReadWrite));
  MUSTER_ASSIGN_OR_RETURN(const auto report,
                          backend::OpenReportStore(urls.report, backend::Mode::kReadWrite, clock));
  // No controller runs here: the next run checks whether the batch is complete.
  report::LocalReportClient desk(report.get());
  item::LedgerBatchReopener reopener(ledger.get(), &desk);
  return redrive(*queues, reopener);
}

using PoisonMessages = std::vector<queue::PoisonMessage>;

// The poison that `list` has behind `after`, asked for page by page: one holds fewer messages than
// requested where bodies are large, and only an empty one is the end.
absl::StatusOr<PoisonMessages> AllPages(
    std::string after, int max,
    absl::FunctionRef<absl::StatusOr<PoisonMessages>(const std::string& after, int max)> list) {
  PoisonMessages messages;
  while (messages.size() < static_cast<size_t>(max)) {
    const int room = max - static_cast<int>(messages.size());
    MUSTER_ASSIGN_OR_RETURN(PoisonMessages page,
                            list(after, std::min(room, queue::kMaxListPoison)));
    if (page.empty()) break;
    after = page.back().message_id;
    messages.insert(messages.end(), std::make_move_iterator(page.begin()),
                    std::make_move_iterator(page.end()));
  }
  return messages;
}

// The queues of a data directory. Looks beside a run that works with the directory; changes are
// FailedPrecondition meanwhile. `clock` is not owned.
class LocalQueueAdmin final : public QueueAdmin {
 public:
  LocalQueueAdmin(std::string data_dir, base::Clock* clock)
      : data_dir_(std::move(data_dir)), clock_(clock) {}

  absl::StatusOr<std::vector<QueueCounts>> List(const std::string& account) override {
    MUSTER_ASSIGN_OR_RETURN(const auto store, OpenToLook());
    queue::ListQueuesRequest page;
    page.account = account;
    page.max_results = kQueuesAtATime;
    std::vector<QueueCounts> counts;
    for (;;) {
      MUSTER_ASSIGN_OR_RETURN(const std::vector<queue::QueueInfo> infos, store->ListQueues(page));
      for (const queue::QueueInfo& info : infos) {
        MUSTER_ASSIGN_OR_RETURN(const queue::QueueStats stats, store->Stats(info.id));
        counts.push_back({info.id, stats});
      }
      if (infos.size() < static_cast<size_t>(page.max_results)) return counts;
      page.after = infos.back().id.name;
    }
  }

  absl::StatusOr<queue::QueueStats> Stats(const queue::QueueId& id) override {
    MUSTER_ASSIGN_OR_RETURN(const auto store, OpenToLook());
    return store->Stats(id);
  }

  absl::StatusOr<std::vector<queue::Message>> Peek(const queue::QueueId& id, int max) override {
    MUSTER_ASSIGN_OR_RETURN(const auto store, OpenToLook());
    return store->Peek(id, max);
  }

  absl::StatusOr<PoisonMessages> Poison(const queue::QueueId& id, const std::string& after,
                                        int max) override {
    MUSTER_ASSIGN_OR_RETURN(const auto store, OpenToLook());
    return AllPages(after, max, [&](const std::string& behind, int most) {
      return store->ListPoison(id, behind, most);
    });
  }

  absl::StatusOr<item::RedriveSummary> Redrive(const item::RedriveRequest& request) override {
    return RedriveLocally<item::RedriveSummary>(
        data_dir_, clock_, [&](queue::QueueStore& queues, item::BatchReopener& reopener) {
          return item::RedriveItems(request, queues, reopener);
        });
  }

  absl::StatusOr<std::vector<item::HeldKeyView>> Held(const queue::QueueId& id) override {
    MUSTER_ASSIGN_OR_RETURN(const auto store, OpenToLook());
    MUSTER_RETURN_IF_ERROR(store->GetMetadata(id).status());
    const auto records = OpenRecords(backend::Mode::kReadOnly);
    if (absl::IsNotFound(records.status())) return std::vector<item::HeldKeyView>();
    MUSTER_RETURN_IF_ERROR(records.status());
    item::HeldKeyStore keys(records->get());
    return item::ListHeldKeys(id, *store, keys);
  }

  absl::StatusOr<std::vector<item::HeldKeyView>> Release(
      const item::HeldKeyRequest& request) override {
    MUSTER_ASSIGN_OR_RETURN(const auto store, OpenToChange());
    MUSTER_ASSIGN_OR_RETURN(const auto records, OpenRecords(backend::Mode::kReadWrite));
    item::HeldKeyStore keys(records.get());
    return item::ReleaseHeldKeys(request, *store, keys);
  }

  absl::StatusOr<item::HeldKeyRedrive> RedriveHeld(const item::HeldKeyRequest& request) override {
    return RedriveLocally<item::HeldKeyRedrive>(
        data_dir_, clock_,
        [&](queue::QueueStore& queues,
            item::BatchReopener& reopener) -> absl::StatusOr<item::HeldKeyRedrive> {
          MUSTER_ASSIGN_OR_RETURN(const auto records, OpenRecords(backend::Mode::kReadWrite));
          item::HeldKeyStore keys(records.get());
          return item::RedriveHeldKeys(request, queues, keys, reopener);
        });
  }

  absl::StatusOr<int64_t> PurgePoison(const queue::QueueId& id) override {
    MUSTER_ASSIGN_OR_RETURN(const auto store, OpenToChange());
    MUSTER_ASSIGN_OR_RETURN(const auto records, OpenRecords(backend::Mode::kReadWrite));
    item::HeldKeyStore keys(records.get());
    return item::PurgePoison(id, *store, keys);
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

  absl::StatusOr<std::unique_ptr<sync::OptimisticSyncStore>> OpenRecords(backend::Mode mode) const {
    return backend::OpenSyncStore(backend::DataDirUrls(data_dir_).sync, mode);
  }

  const std::string data_dir_;
  base::Clock* const clock_;  // not owned
};

constexpr size_t kMaxNamed = 1000;  // messages of one redrive
// So that a server which hangs does not keep the command for ever.
constexpr absl::Duration kPacedRedriveTimeout = absl::Hours(24);

// The queues that an initiator or a queue gateway serves.
class RemoteQueueAdmin final : public QueueAdmin {
 public:
  explicit RemoteQueueAdmin(std::unique_ptr<MeshClient> mesh) : mesh_(std::move(mesh)) {}

  absl::StatusOr<std::vector<QueueCounts>> List(const std::string& account) override {
    std::vector<QueueCounts> counts;
    v1::ListQueuesRequest request;
    request.set_account(account);
    const auto take = [&counts](const v1::ListQueuesResponse& page) {
      for (const v1::QueueSummary& queue : page.queues()) {
        counts.push_back({queue::FromProto(queue.queue()), queue::FromProto(queue.stats())});
      }
    };
    MUSTER_RETURN_IF_ERROR(mesh_->CallForPages(&Stub::ListQueues, request, take));
    return counts;
  }

  absl::StatusOr<queue::QueueStats> Stats(const queue::QueueId& id) override {
    MUSTER_ASSIGN_OR_RETURN(const auto response,
                            mesh_->Call(&Stub::GetQueueStats, About<v1::GetQueueStatsRequest>(id)));
    return queue::FromProto(response.stats());
  }

  // Asks for whole bodies, because the command decodes them to describe them.
  absl::StatusOr<std::vector<queue::Message>> Peek(const queue::QueueId& id, int max) override {
    auto request = About<v1::PeekMessagesRequest>(id);
    request.set_max_messages(max);
    MUSTER_ASSIGN_OR_RETURN(const auto response, mesh_->Call(&Stub::PeekMessages, request));
    std::vector<queue::Message> messages;
    for (const v1::PeekedMessage& message : response.messages()) {
      messages.push_back(queue::FromProto(message));
    }
    return messages;
  }

  absl::StatusOr<PoisonMessages> Poison(const queue::QueueId& id, const std::string& after,
                                        int max) override {
    auto request = About<v1::ListPoisonRequest>(id);
    const auto list = [&](const std::string& behind, int most) -> absl::StatusOr<PoisonMessages> {
      request.set_after_message_id(behind);
      request.set_max_messages(most);
      MUSTER_ASSIGN_OR_RETURN(const auto response, mesh_->Call(&Stub::ListPoison, request));
      PoisonMessages page;
      for (const v1::PoisonMessage& message : response.messages()) {
        page.push_back(queue::FromProto(message));
      }
      return page;
    };
    return AllPages(after, max, list);
  }

  absl::StatusOr<item::RedriveSummary> Redrive(const item::RedriveRequest& request) override {
    item::RedriveSummary summary;
    auto call = About<v1::RedriveRequest>(request.queue);
    if (request.messages.empty()) {
      call.set_max_messages(request.max);
      call.set_messages_per_second(request.per_second);
      MUSTER_RETURN_IF_ERROR(Redrive(call, &summary));
      return summary;
    }
    const std::set<std::string> named(request.messages.begin(), request.messages.end());
    for (auto next = named.begin(); next != named.end();) {
      call.clear_message_ids();
      for (size_t i = 0; i < kMaxNamed && next != named.end(); ++i) call.add_message_ids(*next++);
      MUSTER_RETURN_IF_ERROR(Redrive(call, &summary));
    }
    // The service skips messages that are gone meanwhile, and cannot tell them from a mistyped id.
    const auto missing =
        static_cast<int64_t>(named.size()) - summary.messages - summary.kept_messages;
    if (request.missing == item::Missing::kRefused && missing > 0) {
      return absl::NotFoundError(Missing(request, *named.begin(), summary.messages));
    }
    return summary;
  }

  absl::StatusOr<std::vector<item::HeldKeyView>> Held(const queue::QueueId& id) override {
    MUSTER_ASSIGN_OR_RETURN(const auto response,
                            mesh_->Call(&Stub::ListHeldKeys, About<v1::ListHeldKeysRequest>(id)));
    return ViewsOf(response.keys());
  }

  absl::StatusOr<std::vector<item::HeldKeyView>> Release(
      const item::HeldKeyRequest& request) override {
    MUSTER_ASSIGN_OR_RETURN(
        const auto response,
        mesh_->Call(&Stub::ReleaseHeldKeys, Naming<v1::ReleaseHeldKeysRequest>(request)));
    return ViewsOf(response.released());
  }

  absl::StatusOr<item::HeldKeyRedrive> RedriveHeld(const item::HeldKeyRequest& request) override {
    MUSTER_ASSIGN_OR_RETURN(
        const auto response,
        mesh_->Call(&Stub::RedriveHeldKeys, Naming<v1::RedriveHeldKeysRequest>(request)));
    item::HeldKeyRedrive redrive;
    AddTo(response.redriven(), &redrive.summary);
    redrive.without_dead_letter.assign(response.without_dead_letter().begin(),
                                       response.without_dead_letter().end());
    return redrive;
  }

  absl::StatusOr<int64_t> PurgePoison(const queue::QueueId& id) override {
    MUSTER_ASSIGN_OR_RETURN(const auto response,
                            mesh_->Call(&Stub::PurgePoison, About<v1::PurgePoisonRequest>(id)));
    return response.purged();
  }

  absl::Status Purge(const queue::QueueId& id) override {
    return mesh_->Call(&Stub::PurgeQueue, About<v1::PurgeQueueRequest>(id)).status();
  }

 private:
  using Stub = v1::QueueService::Stub;

  template <typename Request>
  static Request About(const queue::QueueId& id) {
    Request request;
    *request.mutable_queue() = queue::ToProto(id);
    return request;
  }

  template <typename Request>
  static Request Naming(const item::HeldKeyRequest& request) {
    Request call = About<Request>(request.queue);
    call.mutable_keys()->Add(request.keys.begin(), request.keys.end());
    call.set_all(request.keys.empty());
    return call;
  }

  static std::vector<item::HeldKeyView> ViewsOf(
      const google::protobuf::RepeatedPtrField<v1::HeldKey>& keys) {
    std::vector<item::HeldKeyView> views;
    for (const v1::HeldKey& key : keys) {
      views.push_back({{key.key(), key.batch(), key.item(), base::FromProto(key.since())},
                       key.message_id(),
                       queue::FromProto(key.cause())});
    }
    return views;
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
    const absl::Duration timeout =
        call.messages_per_second() == 0 ? rpc::kDefaultCallTimeout : kPacedRedriveTimeout;
    MUSTER_ASSIGN_OR_RETURN(const auto response, mesh_->CallFor(&Stub::Redrive, call, timeout));
    AddTo(response, summary);
    return absl::OkStatus();
  }

  static void AddTo(const v1::RedriveResponse& response, item::RedriveSummary* summary) {
    summary->messages += response.redriven();
    summary->batches.insert(response.batches().begin(), response.batches().end());
    summary->kept_messages += response.kept_messages();
    for (const v1::KeptPoison& kept : response.kept()) summary->kept[kept.batch()] = kept.why();
  }

  const std::unique_ptr<MeshClient> mesh_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<QueueAdmin>> OpenQueueAdmin(const CommonOptions& options,
                                                           const Environment& environment) {
  if (!options.server.named()) {
    MUSTER_RETURN_IF_ERROR(RequireDataDir(options.data_dir));
    return std::make_unique<LocalQueueAdmin>(options.data_dir, environment.clock);
  }
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<MeshClient> mesh, MeshClient::Open(options.server));
  return std::make_unique<RemoteQueueAdmin>(std::move(mesh));
}

}  // namespace muster::cli
