// SPDX-License-Identifier: Apache-2.0

// RemoteContent: the content of items whose initiator is another process.
//
//   same host    the processor opens the initiator's file and reads it there (a short-circuit read)
//   another one  the initiator sends it: all that a worker claims at a time in one call
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "muster/base/mutex.h"
#include "muster/content/boundary_cache.h"
#include "muster/content/item_content.h"
#include "muster/ledger/remote/remote_batch_records.h"

namespace muster::content::remote {

// Batches of which is known where their content lies; a full map forgets all of them.
inline constexpr size_t kMaxLocated = 1000;
// What one call fetches ahead: the caller waits for all of it.
inline constexpr size_t kMaxExpectedItems = 32;
inline constexpr uint64_t kMaxExpectedBytes = uint64_t{4} << 20;
// What is fetched and not read yet, for all workers together. The oldest goes first: its worker has
// lost its lease, and another one asks again.
inline constexpr uint64_t kMaxHeldBytes = uint64_t{64} << 20;

// Thread-safe. Statuses are those of ItemContent; an initiator that hangs costs its callers one
// timeout, and then nothing for a while (rpc::CircuitBreaker).
class RemoteContent final : public ItemContent {
 public:
  // `initiators` is not owned. `boot_id`: of this host; empty: reads nothing by itself.
  RemoteContent(ledger::remote::RemoteBatchRecords* initiators, std::string boot_id)
      : initiators_(initiators), boundaries_(initiators), boot_id_(std::move(boot_id)) {}

  absl::Status Read(const ItemReference& item, std::string* slice) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void Expect(absl::Span<const ItemReference> items) override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A file on this host.
  struct LocalFile {
    std::string path;
    uint64_t device = 0;
    uint64_t inode = 0;
  };
  using Key = std::pair<uint64_t, uint32_t>;  // batch, index
  struct Held {
    Key key;
    std::string slice;
  };

  // nullopt: the content is not on this host, or not in a file.
  absl::StatusOr<std::optional<LocalFile>> Locate(const ItemReference& item)
      ABSL_LOCKS_EXCLUDED(mu_);
  void Forget(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);
  // False: it cannot be read on this host.
  bool ReadHere(const ItemReference& item, std::string* slice);
  bool ReadFile(const LocalFile& file, const ItemReference& item, std::string* slice);
  // Has the batch's initiator send the items. Calls `take` with each one whose hash is right.
  template <typename Take>
  absl::Status Fetch(absl::Span<const ItemReference> items, Take take);
  bool TakeHeld(const ItemReference& item, std::string* slice) ABSL_LOCKS_EXCLUDED(mu_);
  void Hold(const ItemReference& item, std::string slice) ABSL_LOCKS_EXCLUDED(mu_);

  ledger::remote::RemoteBatchRecords* const initiators_;  // not owned
  BoundaryCache boundaries_;
  const std::string boot_id_;

  base::Mutex mu_;
  std::map<uint64_t, std::optional<LocalFile>> located_ ABSL_GUARDED_BY(mu_);  // by batch
  std::list<Held> held_ ABSL_GUARDED_BY(mu_);                                  // the oldest first
  std::map<Key, std::list<Held>::iterator> held_by_key_ ABSL_GUARDED_BY(mu_);
  uint64_t held_bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace muster::content::remote
