// SPDX-License-Identifier: Apache-2.0

// muster batch delete | muster gc: what batches leave is deleted, on request or as their retention
// says.
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/batch/batch_view.h"
#include "cli/batch/commands.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/server/mesh_client.h"
#include "cli/server/options.h"
#include "muster/args/option.h"
#include "muster/backend/backend.h"
#include "muster/base/status.h"
#include "muster/item/queue_names.h"
#include "muster/queue/queue_store.h"
#include "muster/report/report_client.h"
#include "muster/v1/batch_service.grpc.pb.h"
#include "nlohmann/json.hpp"
#include "services/initiator/retention/blob_sweep.h"
#include "services/initiator/retention/remover.h"

namespace muster::cli {
namespace {

struct RemovalOptions {
  CommonOptions common;
  uint64_t batch = 0;
  bool dry_run = false;
};

// Batches that are read, or worked on, at a time.
constexpr size_t kRemovalPage = 1000;

// The stores of a data directory, while no other process works with it.
class LocalRemover {
 public:
  static absl::StatusOr<std::unique_ptr<LocalRemover>> Open(const std::string& data_dir,
                                                            base::Clock* clock) {
    const backend::DataDirUrls urls(data_dir);
    auto local = std::make_unique<LocalRemover>();
    MUSTER_ASSIGN_OR_RETURN(local->ledger_,
                            backend::OpenBatchLedger(urls.ledger, backend::Mode::kReadWrite));
    MUSTER_ASSIGN_OR_RETURN(
        local->report_, backend::OpenReportStore(urls.report, backend::Mode::kReadWrite, clock));
    MUSTER_ASSIGN_OR_RETURN(local->blobs_, backend::OpenBlobStore(urls.blobs));
    local->report_client_ = std::make_unique<report::LocalReportClient>(local->report_.get());
    using initiator::retention::BatchRemover;
    BatchRemover::Dependencies dependencies{local->ledger_.get(), local->report_client_.get(),
                                            local->blobs_.get(), /*content=*/nullptr, clock};
    dependencies.drop_poison = [local = local.get(), urls, clock](const ledger::Batch& batch,
                                                                  std::set<uint64_t> items) {
      return local->DropPoison(urls.queue, clock, batch, std::move(items));
    };
    local->remover_ = std::make_unique<BatchRemover>(dependencies);
    return local;
  }

  initiator::retention::BatchRemover& remover() { return *remover_; }

  // As BatchRemover::Delete; a refusal says how the batch may end here, where nothing cancels it.
  absl::Status Delete(uint64_t number, const std::string& data_dir) {
    MUSTER_ASSIGN_OR_RETURN(const ledger::Batch batch, ledger_->Get(number));
    if (ledger::IsOver(batch.state)) return remover_->Delete(number);
    return absl::FailedPreconditionError(absl::StrCat("batch ", number, " is ",
                                                      ledger::BatchStateName(batch.state), ": ",
                                                      HowToGoOn(batch, data_dir)));
  }

  // Deletes the blobs that have no owner; answers how many there were.
  absl::StatusOr<size_t> SweepBlobs(base::Clock* clock) {
    initiator::retention::BlobSweep sweep(
        {ledger_.get(), report_client_.get(), blobs_.get(), clock});
    for (bool done = false; !done;) {
      MUSTER_ASSIGN_OR_RETURN(done, sweep.Step(kRemovalPage));
    }
    return sweep.found();
  }

 private:
  // Opens the queues when they are first needed, if they are in the directory at all.
  absl::Status DropPoison(const std::string& url, base::Clock* clock, const ledger::Batch& batch,
                          std::set<uint64_t> items) {
    if (queues_ == nullptr) {
      const absl::Status there = backend::OpenQueueStore(url, backend::Mode::kReadOnly,
                                                         backend::Holders::kElsewhere, clock)
                                     .status();
      if (absl::IsNotFound(there)) return absl::OkStatus();
      MUSTER_RETURN_IF_ERROR(there);
      MUSTER_ASSIGN_OR_RETURN(queues_,
                              backend::OpenQueueStore(url, backend::Mode::kReadWrite,
                                                      backend::Holders::kInProcess, clock));
    }
    return initiator::retention::DropPoison(queues_.get(), item::kLocalAccount, batch,
                                            std::move(items));
  }

  std::unique_ptr<queue::QueueStore> queues_;  // null: not opened
  std::unique_ptr<ledger::BatchLedger> ledger_;
  std::unique_ptr<report::ReportStore> report_;
  std::unique_ptr<blob::BlobStore> blobs_;
  std::unique_ptr<report::LocalReportClient> report_client_;
  std::unique_ptr<initiator::retention::BatchRemover> remover_;  // uses the others
};

absl::Status DeleteOnServer(const RemovalOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<MeshClient> mesh,
                          MeshClient::Open(options.common.server));
  v1::DeleteBatchRequest request;
  request.set_batch(options.batch);
  return mesh->Call(&v1::BatchService::Stub::DeleteBatch, request).status();
}

absl::Status DeleteHere(const RemovalOptions& options, const Environment& environment) {
  MUSTER_RETURN_IF_ERROR(RequireDataDir(options.common.data_dir));
  MUSTER_ASSIGN_OR_RETURN(const auto local,
                          LocalRemover::Open(options.common.data_dir, environment.clock));
  return local->Delete(options.batch, options.common.data_dir);
}

absl::Status Delete(const RemovalOptions& options, const Environment& environment) {
  const absl::Status deleted =
      options.common.server.named() ? DeleteOnServer(options) : DeleteHere(options, environment);
  if (!deleted.ok()) return WithListHint(deleted, "muster batch list", options.common);
  const nlohmann::ordered_json json = {{"batch", options.batch}, {"deleted", true}};
  if (!PrintIfStructured(json, options.common, environment)) {
    *environment.out << "batch " << options.batch << " is deleted\n";
  }
  return absl::OkStatus();
}

// How many removals are due, of each kind.
struct DueCounts {
  int64_t contents = 0;
  int64_t items = 0;
  int64_t batches = 0;

  // All that is due of a batch that is over, one after the other.
  void Add(ledger::Batch batch, absl::Time now) {
    while (true) {
      const ledger::NextRemoval next(batch);
      if (next.at > now) return;
      switch (next.what) {
        case ledger::Removal::kBlobs:
          batch.blobs_deleted = true;
          break;
        case ledger::Removal::kContent:
          ++contents;
          batch.content_deleted = true;
          batch.request_claimed = false;
          break;
        case ledger::Removal::kItems:
          ++items;
          batch.items_deleted = true;
          break;
        case ledger::Removal::kBatch:
          ++batches;
          return;
      }
    }
  }
};

absl::StatusOr<DueCounts> CountDue(const std::string& data_dir, absl::Time now) {
  MUSTER_ASSIGN_OR_RETURN(
      const auto ledger,
      backend::OpenBatchLedger(backend::DataDirUrls(data_dir).ledger, backend::Mode::kReadOnly));
  DueCounts counts;
  for (uint64_t below = UINT64_MAX; below != 0;) {
    MUSTER_ASSIGN_OR_RETURN(const ledger::BatchPage page, ledger->ListBelow(below, kRemovalPage));
    for (const ledger::Batch& batch : page.batches) {
      if (ledger::IsOver(batch.state)) counts.Add(batch, now);
    }
    below = page.next_below;
  }
  return counts;
}

absl::Status Collect(const RemovalOptions& options, const Environment& environment) {
  MUSTER_RETURN_IF_ERROR(RequireDataDir(options.common.data_dir));
  MUSTER_ASSIGN_OR_RETURN(const DueCounts due,
                          CountDue(options.common.data_dir, environment.clock->Now()));
  size_t orphans = 0;
  if (!options.dry_run) {
    MUSTER_ASSIGN_OR_RETURN(const auto local,
                            LocalRemover::Open(options.common.data_dir, environment.clock));
    for (size_t removed = 1; removed > 0;) {
      MUSTER_ASSIGN_OR_RETURN(removed, local->remover().RemoveDue(kRemovalPage));
    }
    MUSTER_ASSIGN_OR_RETURN(orphans, local->SweepBlobs(environment.clock));
  }
  const nlohmann::ordered_json json = {{"contents", due.contents},
                                       {"items", due.items},
                                       {"batches", due.batches},
                                       {"orphan_blobs", orphans},
                                       {"dry_run", options.dry_run}};
  if (!PrintIfStructured(json, options.common, environment)) {
    *environment.out << (options.dry_run ? "would delete" : "deleted") << " the content of "
                     << due.contents << " batches, the items of " << due.items << ", and all of "
                     << due.batches << "\n";
    if (orphans > 0) *environment.out << "deleted " << orphans << " blobs without an owner\n";
  }
  return absl::OkStatus();
}

}  // namespace

void AddDelete(CLI::App* batch, const Environment& environment) {
  const auto options = std::make_shared<RemovalOptions>();
  CLI::App* const command =
      AddCommand(batch, "delete", "Delete a batch that has ended, with its receipt", environment,
                 [options, &environment] { return Delete(*options, environment); });
  args::Add(command, "BATCH", &options->batch, "Its number").Required();
  AddDataDirOrServer(command, &options->common);
  AddOutput(command, &options->common);
}

void AddGc(CLI::App* app, const Environment& environment) {
  const auto options = std::make_shared<RemovalOptions>();
  CLI::App* const command = AddCommand(
      app, "gc",
      "Delete what the retention of ended batches no longer keeps; a server does it itself",
      environment, [options, &environment] { return Collect(*options, environment); });
  args::AddFlag(command, "--dry-run", &options->dry_run, "Only say how much that is");
  AddOwnDataDir(command, &options->common);
  AddOutput(command, &options->common);
}

}  // namespace muster::cli
