// FaultyEnv: the machine's files, with a switch that makes writes fail, a count of syncs, and a
// door that holds a sync back until a test opens it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "rocksdb/env.h"

namespace muster::queue_rocksdb {

// Thread-safe.
class FaultyEnv final : public rocksdb::EnvWrapper {
 public:
  FaultyEnv() : rocksdb::EnvWrapper(rocksdb::Env::Default()) {}

  const char* Name() const override { return "FaultyEnv"; }

  std::atomic<bool> fail_appends{false};
  std::atomic<bool> fail_syncs{false};
  std::atomic<int> syncs{0};
  // Called before each sync of a log file. Set it before the env is used.
  std::function<void()> before_sync = [] {};

  rocksdb::Status NewWritableFile(const std::string& name,
                                  std::unique_ptr<rocksdb::WritableFile>* file,
                                  const rocksdb::EnvOptions& options) override {
    const rocksdb::Status status = EnvWrapper::NewWritableFile(name, file, options);
    if (status.ok()) Wrap(name, file);
    return status;
  }

  rocksdb::Status ReuseWritableFile(const std::string& name, const std::string& old_name,
                                    std::unique_ptr<rocksdb::WritableFile>* file,
                                    const rocksdb::EnvOptions& options) override {
    const rocksdb::Status status = EnvWrapper::ReuseWritableFile(name, old_name, file, options);
    if (status.ok()) Wrap(name, file);
    return status;
  }

 private:
  class LogFile final : public rocksdb::WritableFileWrapper {
   public:
    LogFile(std::unique_ptr<rocksdb::WritableFile> file, FaultyEnv* env)
        : rocksdb::WritableFileWrapper(file.get()), file_(std::move(file)), env_(env) {}

    using rocksdb::WritableFileWrapper::Append;
    rocksdb::Status Append(const rocksdb::Slice& data) override {
      if (env_->fail_appends) return rocksdb::Status::IOError("append", "fails on command");
      return file_->Append(data);
    }
    rocksdb::Status Sync() override {
      env_->before_sync();
      ++env_->syncs;
      if (env_->fail_syncs) return rocksdb::Status::IOError("sync", "fails on command");
      return file_->Sync();
    }

   private:
    const std::unique_ptr<rocksdb::WritableFile> file_;
    FaultyEnv* const env_;  // not owned
  };

  // Only log files: what an acknowledgement stands on.
  void Wrap(const std::string& name, std::unique_ptr<rocksdb::WritableFile>* file) {
    const std::string suffix = ".log";
    if (name.size() < suffix.size() ||
        name.compare(name.size() - suffix.size(), suffix.size(), suffix) != 0) {
      return;
    }
    *file = std::make_unique<LogFile>(std::move(*file), this);
  }
};

}  // namespace muster::queue_rocksdb
