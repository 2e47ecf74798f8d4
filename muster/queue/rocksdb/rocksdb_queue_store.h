// RocksDbQueueStore: the embedded durable queue engine, one directory, one process.
//
// Every acknowledgement of Put, Update, Delete, DeadLetter, Redrive, Clear and of what changes a
// queue itself is synced to disk first; concurrent calls share syncs. Leases and attempts survive
// the death of the process.
//
// Memory: up to about 100 bytes per stored message, 24 per poison message, and a fixed 112 MB at
// most for RocksDB's buffers and caches. A restart reads one small record per message.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/queue/queue_store.h"

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace muster::queue::rocksdb {

class DurableQueue;
class Storage;

struct Options {
  base::Clock* clock = base::RealClock();  // not owned, outlives the store
  // Shows what was there at the open, beside the process that owns the directory or without one;
  // every verb that changes something answers FailedPrecondition.
  bool read_only = false;
  // All who hold leases live in the process that has the store open. Then a lease need not outlive
  // it, and a receive writes nothing; what was received and never begun is as before after a
  // restart. A lease that an open finds is a dead holder's, and its message is ready at once,
  // behind those that waited. Leave it off when holders are elsewhere and may come back with their
  // receipts.
  bool holders_in_process = false;
  ::rocksdb::Env* env = nullptr;  // not owned, outlives the store; nullptr = the machine's files
};

// Thread-safe.
class RocksDbQueueStore final : public queue::QueueStore {
 public:
  // Makes `dir` when there is none. FailedPrecondition: another process, or this one, has it open,
  // or a newer muster wrote it. NotFound: nothing there to read (read_only). DataLoss: the store's
  // or a queue's own record is damaged, or RocksDB's files are; a message's never stops an open.
  static absl::StatusOr<std::unique_ptr<RocksDbQueueStore>> Open(const std::string& dir,
                                                                 const Options& options);
  // No call may be under way.
  ~RocksDbQueueStore() override;

  const queue::Traits& traits() const override { return traits_; }

  absl::Status CreateQueue(const queue::QueueId& id, const queue::Metadata& metadata) override;
  absl::Status DeleteQueue(const queue::QueueId& id) override;
  absl::StatusOr<std::vector<queue::QueueInfo>> ListQueues(
      const queue::ListQueuesRequest& request) override;
  absl::StatusOr<queue::Metadata> GetMetadata(const queue::QueueId& id) override;
  absl::Status SetMetadata(const queue::QueueId& id, const queue::Metadata& metadata) override;

  absl::StatusOr<std::vector<queue::PutResult>> Put(
      const queue::QueueId& id, absl::Span<const queue::NewMessage> messages) override;
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
  absl::Status Clear(const queue::QueueId& id) override;
  absl::StatusOr<std::vector<absl::Status>> DeadLetter(
      const queue::QueueId& id, absl::Span<const queue::DeadLetterRequest> requests) override;
  absl::StatusOr<std::vector<queue::PoisonMessage>> ListPoison(const queue::QueueId& id,
                                                               absl::string_view after,
                                                               int max_messages) override;
  absl::StatusOr<int64_t> Redrive(const queue::QueueId& id,
                                  absl::Span<const std::string> message_ids,
                                  int64_t max_messages) override;
  absl::StatusOr<int64_t> PurgePoison(const queue::QueueId& id) override;
  absl::StatusOr<queue::QueueStats> Stats(const queue::QueueId& id) override;

 private:
  using Name = std::pair<std::string, std::string>;  // account, name
  // Shared, so that a call which found the queue may end although another deletes the queue.
  using QueuePtr = std::shared_ptr<DurableQueue>;

  explicit RocksDbQueueStore(std::unique_ptr<Storage> storage);

  absl::StatusOr<QueuePtr> Find(const queue::QueueId& id);
  // Find, for a verb that changes something.
  absl::StatusOr<QueuePtr> FindWritable(const queue::QueueId& id);

  const queue::Traits traits_;
  const std::unique_ptr<Storage> storage_;

  // Held while a queue is made or deleted, its write included: these are rare.
  base::Mutex admin_mu_ ABSL_ACQUIRED_BEFORE(mu_);
  base::Mutex mu_;
  absl::btree_map<Name, QueuePtr> queues_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::queue::rocksdb
