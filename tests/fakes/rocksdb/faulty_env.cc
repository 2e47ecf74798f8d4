// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/rocksdb/faulty_env.h"

#include <filesystem>
#include <utility>

namespace muster::rocksdb::testing {

namespace fs = std::filesystem;
using ::rocksdb::Status;

class FaultyEnv::Table final : public ::rocksdb::RandomAccessFileWrapper {
 public:
  Table(std::unique_ptr<::rocksdb::RandomAccessFile> file, const FaultyEnv* env)
      : ::rocksdb::RandomAccessFileWrapper(file.get()), file_(std::move(file)), env_(env) {}

  Status Read(uint64_t offset, size_t n, ::rocksdb::Slice* result, char* scratch) const override {
    if (env_->fail_reads) return Status::IOError("read", "fails on command");
    return file_->Read(offset, n, result, scratch);
  }

 private:
  const std::unique_ptr<::rocksdb::RandomAccessFile> file_;
  const FaultyEnv* const env_;  // not owned
};

class FaultyEnv::File final : public ::rocksdb::WritableFileWrapper {
 public:
  File(std::string path, std::unique_ptr<::rocksdb::WritableFile> file, FaultyEnv* env)
      : ::rocksdb::WritableFileWrapper(file.get()),
        path_(std::move(path)),
        is_log_(fs::path(path_).extension() == ".log"),
        file_(std::move(file)),
        env_(env) {}

  using ::rocksdb::WritableFileWrapper::Append;
  Status Append(const ::rocksdb::Slice& data) override {
    if (is_log_ && env_->fail_appends) return Status::IOError("append", "fails on command");
    if (is_log_ && env_->disk_full) return Status::NoSpace("append", "fails on command");
    Status status = file_->Append(data);
    if (status.ok()) bytes_ += data.size();
    return status;
  }

  Status Sync() override {
    const uint64_t bytes = bytes_;
    if (is_log_) {
      env_->before_sync();
      ++env_->syncs;
      if (env_->fail_syncs) return Status::IOError("sync", "fails on command");
    }
    Status status = env_->sync_for_real ? file_->Sync() : file_->Flush();
    if (status.ok()) {
      base::MutexLock lock(&env_->mu_);
      env_->synced_bytes_[path_] = bytes;
    }
    return status;
  }
  Status Fsync() override { return Sync(); }

 private:
  const std::string path_;
  const bool is_log_;
  const std::unique_ptr<::rocksdb::WritableFile> file_;
  FaultyEnv* const env_;  // not owned
  std::atomic<uint64_t> bytes_{0};
};

class FaultyEnv::Dir final : public ::rocksdb::Directory {
 public:
  Dir(std::unique_ptr<::rocksdb::Directory> dir, FaultyEnv* env)
      : dir_(std::move(dir)), env_(env) {}

  Status Fsync() override { return env_->sync_for_real ? dir_->Fsync() : Status::OK(); }

 private:
  const std::unique_ptr<::rocksdb::Directory> dir_;
  FaultyEnv* const env_;  // not owned
};

Status FaultyEnv::NewDirectory(const std::string& name,
                               std::unique_ptr<::rocksdb::Directory>* dir) {
  Status status = EnvWrapper::NewDirectory(name, dir);
  if (status.ok()) *dir = std::make_unique<Dir>(std::move(*dir), this);
  return status;
}

Status FaultyEnv::NewRandomAccessFile(const std::string& name,
                                      std::unique_ptr<::rocksdb::RandomAccessFile>* file,
                                      const ::rocksdb::EnvOptions& options) {
  Status status = EnvWrapper::NewRandomAccessFile(name, file, options);
  if (status.ok()) *file = std::make_unique<Table>(std::move(*file), this);
  return status;
}

Status FaultyEnv::NewWritableFile(const std::string& name,
                                  std::unique_ptr<::rocksdb::WritableFile>* file,
                                  const ::rocksdb::EnvOptions& options) {
  Status status = EnvWrapper::NewWritableFile(name, file, options);
  if (!status.ok()) return status;
  *file = std::make_unique<File>(name, std::move(*file), this);
  base::MutexLock lock(&mu_);
  synced_bytes_[name] = 0;
  return status;
}

Status FaultyEnv::RenameFile(const std::string& from, const std::string& to) {
  Status status = EnvWrapper::RenameFile(from, to);
  base::MutexLock lock(&mu_);
  auto moved = synced_bytes_.extract(from);
  if (!status.ok() || moved.empty()) return status;
  synced_bytes_.erase(to);
  moved.key() = to;
  synced_bytes_.insert(std::move(moved));
  return status;
}

void FaultyEnv::CopyAsAfterPowerCut(const std::string& dir, const std::string& to,
                                    int kept_percent) {
  fs::create_directories(to);
  base::MutexLock lock(&mu_);
  for (const auto& entry : fs::directory_iterator(dir)) {
    if (!entry.is_regular_file()) continue;
    const fs::path copy = fs::path(to) / entry.path().filename();
    fs::copy_file(entry.path(), copy);
    const auto written = synced_bytes_.find(entry.path());
    if (written == synced_bytes_.end()) continue;
    const uint64_t unsynced = fs::file_size(copy) - written->second;
    const uint64_t kept = copy.extension() == ".log" ? unsynced * kept_percent / 100 : 0;
    fs::resize_file(copy, written->second + kept);
  }
}

}  // namespace muster::rocksdb::testing
