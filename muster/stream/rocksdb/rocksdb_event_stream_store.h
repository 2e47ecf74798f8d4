// SPDX-License-Identifier: Apache-2.0

// RocksDbEventStreamStore: the EventStreamStore of a single machine, in a RocksDB directory of its
// own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/rocksdb/database.h"
#include "muster/stream/event_stream_store.h"
#include "muster/stream/rocksdb/partition_log.h"
#include "muster/stream/rocksdb/retention_sweeper.h"
#include "muster/telemetry/registry.h"

namespace muster::stream::rocksdb {

struct Options {
  base::Clock* clock = base::RealClock();  // not owned
  // Sees the events as of its opening, can be open beside the owner, and refuses to write.
  bool read_only = false;
  ::rocksdb::Env* env = nullptr;  // not owned; nullptr = the machine's
  std::function<void(const absl::Status&)> on_failure = nullptr;  // as DatabaseOptions
  telemetry::Registry* metrics = nullptr;                         // as DatabaseOptions
};

// The families of FamilyIndex.
muster::rocksdb::DatabaseOptions StreamDatabase(const Options& options);

// Thread-safe. An acknowledged append has been fsynced, and is all or nothing. One thread beside
// the database's own (RetentionSweeper). Once its disk was full or failed, the store takes nothing
// more until it is opened again; what it has acknowledged can still be read.
class RocksDbEventStreamStore final : public stream::EventStreamStore {
 public:
  // Creates `dir` if need be; takes some reads for each partition. FailedPrecondition: another
  // process has it open, or a newer muster wrote it. NotFound: read-only and not there. DataLoss:
  // the record of a stream or partition is damaged.
  static absl::StatusOr<std::unique_ptr<RocksDbEventStreamStore>> Open(
      const std::string& dir, const Options& options = Options());
  ~RocksDbEventStreamStore() override;

  absl::Status Create(absl::string_view stream, const StreamOptions& options) override
      ABSL_LOCKS_EXCLUDED(admin_mu_, mu_);
  absl::Status Delete(absl::string_view stream) override ABSL_LOCKS_EXCLUDED(admin_mu_, mu_);
  absl::StatusOr<std::vector<std::string>> List() override ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<StreamOptions> Describe(absl::string_view stream) override
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<PartitionExtent> Extent(absl::string_view stream, int partition) override
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<int64_t> Append(absl::string_view stream, int partition,
                                 absl::Span<const NewEvent> events) override
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::unique_ptr<PartitionReader>> OpenReader(absl::string_view stream,
                                                              int partition,
                                                              int64_t offset) override
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Stream {
    StreamRecord record;
    // Shared with readers and the sweeper, which may outlast the stream.
    std::vector<std::shared_ptr<PartitionLog>> partitions;
  };

  RocksDbEventStreamStore(std::unique_ptr<muster::rocksdb::Database> database,
                          const Options& options);
  absl::Status LoadStoreRecord() ABSL_LOCKS_EXCLUDED(admin_mu_);
  absl::Status LoadStreams() ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<Stream> Load(const std::string& name, const StreamRecord& record);
  // NotFound for a stream that is not there.
  absl::StatusOr<Stream> Find(absl::string_view name) const ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::shared_ptr<PartitionLog>> FindPartition(absl::string_view name,
                                                              int partition) const
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CheckWritable() const;
  absl::Status CheckRoom() const ABSL_LOCKS_EXCLUDED(mu_);

  const bool read_only_;
  const std::unique_ptr<muster::rocksdb::Database> database_;
  // Uses database_, by the partitions.
  const std::unique_ptr<RetentionSweeper> sweeper_;
  const LogContext context_;

  base::Mutex admin_mu_;  // held while a stream is made or removed; taken before mu_
  StoreRecord store_record_ ABSL_GUARDED_BY(admin_mu_);
  mutable base::Mutex mu_;
  std::map<std::string, Stream, std::less<>> streams_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::stream::rocksdb
