// SPDX-License-Identifier: Apache-2.0

// RevisionRouter: finds the worker for an item by the revision of the job that its batch is bound
// to: the task's own worker, or one that is made for another revision. Keeps the latest of these:
// items of one batch come in runs.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "muster/item/work_item_codec.h"
#include "services/processor/worker_setup.h"

namespace muster::processor {

class ItemWorker;

// Not thread-safe: one per worker.
class RevisionRouter {
 public:
  // `own` is the worker of `setup`. Neither is owned.
  RevisionRouter(ItemWorker* own, const WorkerSetup* setup);
  ~RevisionRouter();

  // The worker that fits; it lives until the next call. The error says why there is none, as
  // RevisionSource::Find has it.
  absl::StatusOr<ItemWorker*> Route(const item::BatchIdentity& identity);

  // Why no worker fits, as far as that shows without asking for a revision; nullopt: one fits, or
  // a revision is to be asked for first.
  std::optional<std::string> KnownMisfit(const item::BatchIdentity& identity) const;

 private:
  absl::StatusOr<ItemWorker*> OtherWorker(const item::BatchIdentity& identity);

  ItemWorker* const own_;           // not owned
  const WorkerSetup* const setup_;  // not owned
  // The latest other revision that an item was bound to, and its worker, which uses it; null: none
  // was.
  std::shared_ptr<const Revision> other_revision_;
  std::unique_ptr<ItemWorker> other_worker_;
};

}  // namespace muster::processor
