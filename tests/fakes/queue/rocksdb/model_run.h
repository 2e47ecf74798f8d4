// SPDX-License-Identifier: Apache-2.0

// ModelRun and ModelStore: run a property test on a queue, beside its model.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/queue/queue_model.h"
#include "tests/fakes/queue/rocksdb/model_command.h"
#include "tests/fakes/rocksdb/faulty_env.h"

namespace muster::queue::rocksdb {

// ModelStore: the store of a property test, and the ways in which it may end. Not thread-safe. The
// property fails if the store cannot be opened.
class ModelStore {
 public:
  ModelStore();
  ~ModelStore();

  queue::QueueStore* store() const { return store_.get(); }
  base::FakeClock* clock() { return &clock_; }
  muster::rocksdb::testing::FaultyEnv* env() { return &env_; }

  // Returns false when one more open could make RocksDB compact in the background: files that
  // change while they are copied are not what a crash leaves.
  bool CanReopen() const { return reopens_ < kMaxReopens; }
  bool WasReopened() const { return reopens_ > 0; }
  void Reopen(Ending ending, int kept_percent, bool holders_in_process);

 private:
  // RocksDB compacts at four files, and each open makes one.
  static constexpr int kMaxReopens = 3;

  void Open(bool holders_in_process);

  const os::TempDir root_;
  base::FakeClock clock_;
  muster::rocksdb::testing::FaultyEnv env_;
  int reopens_ = 0;
  std::string dir_;
  std::unique_ptr<RocksDbQueueStore> store_;
};

// ModelRun: one queue of a store, used by one sequence of commands, beside its model.
//
// After a crash the contract may allow the store more than one state. Each is a World, and every
// later answer rules out the worlds that it contradicts. When none is left, the store has broken
// the contract, and the property fails.

// Not thread-safe.
class ModelRun {
 public:
  // `store` is not owned, and has no queue of this name.
  ModelRun(ModelStore* store, queue::QueueId queue);

  void Do(const Command& command);
  // Compares all visible state, now and after every lease and delay has passed; then deletes the
  // queue.
  void Finish();

 private:
  using Model = queue::testing::QueueModel;

  struct World {
    Model model;
    // The states that a power cut may leave instead: those before each change since the last change
    // that had to be durable, oldest first. The log keeps its order, so there are no others.
    std::vector<Model> earlier;
  };
  // The names that an engine gave, and those of the models for the same.
  struct Given {
    queue::Receipt engine, model;
  };

  // Compares the answer of the engine with that of `verb` in every world. Stores the answer of a
  // remaining world in `expected`, if not null.
  template <typename Answer, typename VerbOfModel>
  void Check(const Answer& answer, const VerbOfModel& verb, Answer* expected = nullptr);
  // Adds the states of a world after a call that returned `given`. Adds none and returns false when
  // `given` contradicts the world; adds two when it is unknown whether the call did its work.
  bool Split(const std::string& given, const std::string& expected, World before, World after,
             std::vector<World>* next) const;
  void DropEqualWorlds();

  void Run(const Command& command);
  void RunOnQueue(const Command& command);
  void Put(const Command& command);
  void Receive(int count, absl::Duration visibility);
  void Peek(int count);
  void Delete(const Command& command);
  void BeginAttempt(const Command& command);
  void Update(const Command& command);
  void DeadLetter(const Command& command);
  void ListPoison();
  void Redrive(const Command& command);
  void Destroy();
  void LookAtEverything();
  void Reopen(const Command& command);

  // Returns receipts of different messages, selected by `which` and `count`.
  std::vector<Given> Choose(const Command& command) const;
  void Remember(const queue::Receipt& engine, const queue::Receipt& model);
  // Returns a text that was never used before.
  std::string NewText();

  ModelStore* const store_;  // not owned
  const queue::QueueId queue_;
  const absl::Time start_;
  Disk disk_ = Disk::kWorks;
  int call_ = 0;
  int texts_ = 0;
  Names names_;
  std::vector<Given> receipts_;
  std::vector<World> worlds_;
};

}  // namespace muster::queue::rocksdb
