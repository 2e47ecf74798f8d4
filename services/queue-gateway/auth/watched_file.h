// SPDX-License-Identifier: Apache-2.0

// WatchedFile: what a small file says, read again when the file has changed.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/file_version.h"
#include "muster/base/mutex.h"
#include "services/queue-gateway/auth/limits.h"

namespace muster::queue_gateway::auth {

// InvalidArgument: the file cannot be read, or has more than kMaxFileBytes.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path);

// Logs what became of a changed file.
void LogReread(const std::string& path, const absl::Status& status);

// Looks for a change when it is asked, and not more often than each kFileRefresh; it has no thread.
// A file that becomes wrong, or cannot be read, is logged once, and what it said before stays until
// it can be read. Thread-safe.
template <typename T>
class WatchedFile {
 public:
  using Parse = std::function<absl::StatusOr<T>(absl::string_view text)>;

  // As ReadSmallFile and `parse`. `clock` is not owned.
  static absl::StatusOr<std::unique_ptr<WatchedFile>> Open(std::string path, Parse parse,
                                                           const base::Clock* clock) {
    std::unique_ptr<WatchedFile> file(new WatchedFile(std::move(path), std::move(parse), clock));
    base::MutexLock lock(&file->mu_);
    file->next_look_ = clock->Monotonic() + kFileRefresh;
    const absl::Status read = file->ReadLocked(base::FileVersion(file->path_));
    if (!read.ok()) return read;
    return file;
  }

  // Shared: callers go on with what they began with.
  std::shared_ptr<const T> Current() ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    if (clock_->Monotonic() < next_look_) return current_;
    next_look_ = clock_->Monotonic() + kFileRefresh;
    const std::optional<std::string> version = base::FileVersion(path_);
    if (version == version_) return current_;
    const absl::Status read = ReadLocked(version);
    const bool is_unreadable = version_ != version;
    if (!is_unreadable || !was_unreadable_) LogReread(path_, read);
    was_unreadable_ = is_unreadable;
    return current_;
  }

 private:
  WatchedFile(std::string path, Parse parse, const base::Clock* clock)
      : path_(std::move(path)), parse_(std::move(parse)), clock_(clock) {}

  // One that cannot be read keeps its earlier version, and is read again at the next look: the
  // cause, such as too many open files, may pass without a change of the file.
  absl::Status ReadLocked(const std::optional<std::string>& version)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    absl::StatusOr<std::string> text = ReadSmallFile(path_);
    if (!text.ok()) return text.status();
    version_ = version;
    absl::StatusOr<T> value = parse_(*text);
    if (!value.ok()) return value.status();
    current_ = std::make_shared<const T>(*std::move(value));
    return absl::OkStatus();
  }

  const std::string path_;
  const Parse parse_;
  const base::Clock* const clock_;  // not owned
  base::Mutex mu_;
  std::shared_ptr<const T> current_ ABSL_GUARDED_BY(mu_);
  std::optional<std::string> version_ ABSL_GUARDED_BY(mu_);
  bool was_unreadable_ ABSL_GUARDED_BY(mu_) = false;
  absl::Duration next_look_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::queue_gateway::auth
