// SPDX-License-Identifier: Apache-2.0

// RocksDbQueueStore: the embedded durable queue engine, one directory, one process.
//
// The engine syncs the effect of Put, Update, Delete, DeadLetter, Redrive, Clear and of every
// change to a queue itself to disk before it acknowledges the call; concurrent calls share syncs.
// Leases and attempts survive the death of the process.
//
// Memory: up to about 100 bytes per stored message, 24 per poison message, and a fixed 112 MB at
// most for RocksDB's buffers and caches. A restart reads one small record per message.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/queue/queue_store.h"
#include "muster/queue/rocksdb/collector.h"
#include "muster/telemetry/registry.h"

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace muster::queue::rocksdb {

class DurableQueue;
class Storage;

struct Options {
  base::Clock* clock = base::RealClock();  // not owned, outlives the store
  // Shows the store as it was at the open, with or without another process that owns the directory.
  // Every verb that changes something returns FailedPrecondition.
  bool read_only = false;
  // All lease holders live in the process that opens the store. Then a lease need not survive the
  // process, and a receive writes nothing; a message that was received and never begun is unchanged
  // after a restart. A lease found at the open belongs to a dead holder: its message is ready at
  // once, behind the messages that were already waiting. Leave it off when holders are elsewhere
  // and may come back with their receipts.
  bool holders_in_process = false;
  // How often expired messages are deleted of queues that lie idle (Collector); 0: never.
  absl::Duration collect_interval = absl::ZeroDuration();
  ::rocksdb::Env* env = nullptr;  // not owned, outlives the store; nullptr = the machine's files
  std::function<void(const absl::Status&)> on_failure = nullptr;  // as DatabaseOptions
  telemetry::Registry* metrics = nullptr;                         // as DatabaseOptions
};

// Thread-safe.
class RocksDbQueueStore final : public queue::QueueStore {
 public:
  // Makes `dir` if it does not exist. FailedPrecondition: this or another process has it open, or a
  // newer muster wrote it. NotFound: there is no store to read (read_only). DataLoss: the record of
  // the store or of a queue, or a file of RocksDB, is damaged; a damaged message never stops an
  // open.
  static absl::StatusOr<std::unique_ptr<RocksDbQueueStore>> Open(const std::string& dir,
                                                                 const Options& options);
  // No call may be under way.
  ~RocksDbQueueStore() override;

  const queue::Traits& traits() const override { return traits_; }

  absl::Status CreateQueue(const queue::QueueId& id, const queue::Metadata& metadata) override
      ABSL_LOCKS_EXCLUDED(admin_mu_, mu_);
  absl::Status DeleteQueue(const queue::QueueId& id) override ABSL_LOCKS_EXCLUDED(admin_mu_, mu_);
  absl::StatusOr<std::vector<queue::QueueInfo>> ListQueues(
      const queue::ListQueuesRequest& request) override ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<queue::Metadata> GetMetadata(const queue::QueueId& id) override;
  absl::Status SetMetadata(const queue::QueueId& id, const queue::Metadata& metadata) override;

  absl::StatusOr<std::vector<queue::PutResult>> Put(
      const queue::QueueId& id, absl::Span<const queue::NewMessage> messages) override;
  std::vector<absl::StatusOr<std::vector<queue::PutResult>>> PutEach(
      absl::Span<const queue::ForQueue<queue::NewMessage>> puts) override;
  absl::StatusOr<std::vector<queue::Message>> Receive(
      const queue::QueueId& id, const queue::ReceiveOptions& options) override;
  absl::StatusOr<std::vector<queue::Message>> Peek(const queue::QueueId& id,
                                                   int max_messages) override;
  absl::StatusOr<std::vector<absl::StatusOr<int>>> BeginAttempt(
      const queue::QueueId& id, absl::Span<const queue::Receipt> receipts) override;
  absl::StatusOr<std::vector<absl::StatusOr<queue::UpdateResult>>> Update(
      const queue::QueueId& id, absl::Span<const queue::UpdateRequest> requests) override;
  absl::StatusOr<std::vector<absl::Status>> Delete(
      const queue::QueueId& id, absl::Span<const queue::Receipt> receipts) override;
  std::vector<absl::StatusOr<std::vector<absl::Status>>> DeleteEach(
      absl::Span<const queue::ForQueue<queue::Receipt>> deletes) override;
  absl::Status Clear(const queue::QueueId& id) override;
  absl::StatusOr<std::vector<absl::Status>> DeadLetter(
      const queue::QueueId& id, absl::Span<const queue::DeadLetterRequest> requests) override;
  absl::StatusOr<std::vector<queue::PoisonMessage>> ListPoison(const queue::QueueId& id,
                                                               absl::string_view after,
                                                               int max_messages) override;
  absl::StatusOr<std::vector<std::optional<queue::PoisonMessage>>> FindPoison(
      const queue::QueueId& id, absl::Span<const queue::PoisonName> names) override;
  absl::StatusOr<int64_t> Redrive(const queue::QueueId& id,
                                  absl::Span<const std::string> message_ids,
                                  int64_t max_messages) override;
  absl::StatusOr<int64_t> PurgePoison(const queue::QueueId& id) override;
  absl::StatusOr<int64_t> DropPoison(const queue::QueueId& id,
                                     absl::Span<const std::string> message_ids) override;
  absl::StatusOr<std::vector<absl::Status>> Move(
      const queue::QueueId& from, const queue::QueueId& to,
      absl::Span<const queue::MoveRequest> requests) override;
  absl::StatusOr<absl::Duration> TimeToVisible(const queue::QueueId& id) override;
  absl::StatusOr<bool> Holds(const queue::QueueId& id, absl::string_view message_id) override;
  absl::StatusOr<queue::QueueStats> Stats(const queue::QueueId& id) override;
  absl::StatusOr<queue::QueueExtent> Extent(const queue::QueueId& id) override;
  absl::StatusOr<std::vector<queue::StoredMessage>> Scan(const queue::QueueId& id, uint64_t from,
                                                         int max) override;
  absl::StatusOr<uint64_t> Reclaim(const queue::QueueId& id) override;

  // Deletes the expired messages of all queues from disk, and has RocksDB merge its files if enough
  // is gone (CompactionCare). Cancelled once `cancelled` is set, before the end. Waits for another
  // such call. What the collector does each interval.
  absl::Status CollectExpired(std::atomic<bool>* cancelled) ABSL_LOCKS_EXCLUDED(collect_mu_, mu_);

 private:
  // Gives messages that were moved to `queue` back to where they came from; as Redrive.
  absl::StatusOr<int64_t> MoveBack(DurableQueue* queue, absl::Span<const std::string> message_ids,
                                   int64_t max_messages);

  using Name = std::pair<std::string, std::string>;  // account, name
  // Shared, so that a running call can finish while another call deletes the queue.
  using QueuePtr = std::shared_ptr<DurableQueue>;

  // Messages that were put, of all queues.
  struct Gone {
    int64_t gone = 0;
    int64_t stored = 0;
  };

  explicit RocksDbQueueStore(std::unique_ptr<Storage> storage);

  void BeginToCollect(const Options& options) ABSL_LOCKS_EXCLUDED(collect_mu_, mu_);
  std::vector<QueuePtr> Queues() ABSL_LOCKS_EXCLUDED(mu_);
  Gone CountGone() ABSL_LOCKS_EXCLUDED(mu_);

  absl::StatusOr<QueuePtr> Find(const queue::QueueId& id) ABSL_LOCKS_EXCLUDED(mu_);
  // Find, for a verb that changes something.
  absl::StatusOr<QueuePtr> FindWritable(const queue::QueueId& id) ABSL_LOCKS_EXCLUDED(mu_);

  // Takes the Steps (durable_queue.h) of each queue, with one write for all. `check` judges the
  // items of one. Answers for each, in order.
  template <typename Steps, typename Answer, typename Item, typename Check>
  std::vector<absl::StatusOr<Answer>> Join(absl::Span<const queue::ForQueue<Item>> asked,
                                           Check check) ABSL_LOCKS_EXCLUDED(mu_);

  const queue::Traits traits_;
  const std::unique_ptr<Storage> storage_;

  // Held while a queue is made or deleted, including the write: both are rare.
  base::Mutex admin_mu_ ABSL_ACQUIRED_BEFORE(mu_);
  base::Mutex mu_;
  absl::btree_map<Name, QueuePtr> queues_ ABSL_GUARDED_BY(mu_);

  base::Mutex collect_mu_ ABSL_ACQUIRED_BEFORE(mu_);  // held while a call collects
  CompactionCare care_ ABSL_GUARDED_BY(collect_mu_){0, 0};
  std::unique_ptr<Collector> collector_;  // last: it uses all of the above; null: none is wanted
};

}  // namespace muster::queue::rocksdb
