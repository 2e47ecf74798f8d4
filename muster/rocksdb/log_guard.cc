// SPDX-License-Identifier: Apache-2.0
#include "muster/rocksdb/log_guard.h"

#include <utility>

#include "absl/strings/match.h"

namespace muster::rocksdb {

using ::rocksdb::IODebugContext;
using ::rocksdb::IOOptions;
using ::rocksdb::IOStatus;

class LogGuard::LogFile final : public ::rocksdb::FSWritableFileOwnerWrapper {
 public:
  LogFile(std::unique_ptr<::rocksdb::FSWritableFile> file, LogGuard* guard)
      : ::rocksdb::FSWritableFileOwnerWrapper(std::move(file)), guard_(guard) {}

  IOStatus Append(const ::rocksdb::Slice& data, const IOOptions& options,
                  IODebugContext* debug) override {
    if (guard_->failed_) return IOStatus::OK();
    return guard_->Keep(FSWritableFileOwnerWrapper::Append(data, options, debug));
  }
  IOStatus Append(const ::rocksdb::Slice& data, const IOOptions& options,
                  const ::rocksdb::DataVerificationInfo& info, IODebugContext* debug) override {
    if (guard_->failed_) return IOStatus::OK();
    return guard_->Keep(FSWritableFileOwnerWrapper::Append(data, options, info, debug));
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    if (guard_->failed_) return IOStatus::OK();
    return guard_->Keep(FSWritableFileOwnerWrapper::Sync(options, debug));
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    if (guard_->failed_) return IOStatus::OK();
    return guard_->Keep(FSWritableFileOwnerWrapper::Fsync(options, debug));
  }

 private:
  LogGuard* const guard_;  // not owned
};

IOStatus LogGuard::failure() const {
  if (!failed_) return IOStatus::OK();
  base::MutexLock lock(&mu_);
  return failure_;
}

IOStatus LogGuard::NewWritableFile(const std::string& name, const ::rocksdb::FileOptions& options,
                                   std::unique_ptr<::rocksdb::FSWritableFile>* file,
                                   IODebugContext* debug) {
  if (failed_) return IOStatus::IOError("the write-ahead log failed before", name);
  IOStatus status = FileSystemWrapper::NewWritableFile(name, options, file, debug);
  if (status.ok() && absl::EndsWith(name, ".log")) {
    *file = std::make_unique<LogFile>(std::move(*file), this);
  }
  return status;
}

IOStatus LogGuard::Keep(const IOStatus& status) {
  if (status.ok()) return IOStatus::OK();
  base::MutexLock lock(&mu_);
  if (failure_.ok()) failure_ = status;
  failed_ = true;
  return IOStatus::OK();
}

}  // namespace muster::rocksdb
