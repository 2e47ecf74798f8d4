// ModelStore: the store of a property test, with the ways in which one may end.
#pragma once

#include <memory>
#include <string>

#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/queue/rocksdb/model_command.h"
#include "tests/fakes/rocksdb/faulty_env.h"

namespace muster::queue::rocksdb {

// Not thread-safe. A store that cannot be opened fails the property.
class ModelStore {
 public:
  ModelStore();
  ~ModelStore();

  queue::QueueStore* store() const { return store_.get(); }
  base::FakeClock* clock() { return &clock_; }
  muster::rocksdb::testing::FaultyEnv* env() { return &env_; }

  // False once another one could make RocksDB compact in the background: files that come and go
  // while they are copied are not what a crash leaves.
  bool CanReopen() const { return reopens_ < kMaxReopens; }
  bool WasReopened() const { return reopens_ > 0; }
  void Reopen(Ending ending, int kept_percent, bool holders_in_process);

 private:
  // RocksDB compacts when it finds four files, and makes one in each open.
  static constexpr int kMaxReopens = 3;

  void Open(bool holders_in_process);

  const os::TempDir root_;
  base::FakeClock clock_;
  muster::rocksdb::testing::FaultyEnv env_;
  int reopens_ = 0;
  std::string dir_;
  std::unique_ptr<RocksDbQueueStore> store_;
};

}  // namespace muster::queue::rocksdb
