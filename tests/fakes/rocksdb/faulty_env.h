// SPDX-License-Identifier: Apache-2.0

// FaultyEnv: the machine's files, with switches that make writes to a log and reads of tables fail,
// a count of its syncs, a door that holds a sync back until a test opens it, and a power cut.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "muster/base/mutex.h"
#include "rocksdb/env.h"

namespace muster::rocksdb::testing {

// Thread-safe.
class FaultyEnv final : public ::rocksdb::EnvWrapper {
 public:
  FaultyEnv() : ::rocksdb::EnvWrapper(::rocksdb::Env::Default()) {}

  const char* Name() const override { return "FaultyEnv"; }

  // Off: syncs are counted and protect data from a power cut, but do not wait for the machine's
  // disk. Use it in tests that sync very often.
  std::atomic<bool> sync_for_real{true};
  // For log files, which acknowledgements depend on.
  std::atomic<bool> fail_appends{false};
  std::atomic<bool> fail_syncs{false};
  std::atomic<bool> disk_full{false};   // no append to a log file finds room
  std::atomic<bool> fail_reads{false};  // of tables; what RocksDB has cached it still finds
  std::atomic<int> syncs{0};
  // Called before each sync of a log file. Set it before the env is used.
  std::function<void()> before_sync = [] {};

  // Copies the files of `dir` to `to` as a power cut at this moment would leave them: each file
  // ends at its last sync; of the later writes to a log, the first `kept_percent` are kept as well.
  // Files that this env did not write are copied whole.
  void CopyAsAfterPowerCut(const std::string& dir, const std::string& to, int kept_percent = 0);

  ::rocksdb::Status NewRandomAccessFile(const std::string& name,
                                        std::unique_ptr<::rocksdb::RandomAccessFile>* file,
                                        const ::rocksdb::EnvOptions& options) override;
  ::rocksdb::Status NewWritableFile(const std::string& name,
                                    std::unique_ptr<::rocksdb::WritableFile>* file,
                                    const ::rocksdb::EnvOptions& options) override;
  ::rocksdb::Status NewDirectory(const std::string& name,
                                 std::unique_ptr<::rocksdb::Directory>* dir) override;
  ::rocksdb::Status RenameFile(const std::string& from, const std::string& to) override;

 private:
  class Table;
  class File;
  class Dir;

  base::Mutex mu_;
  std::map<std::string, uint64_t> synced_bytes_ ABSL_GUARDED_BY(mu_);  // by path
};

}  // namespace muster::rocksdb::testing
