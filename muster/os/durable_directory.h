// SPDX-License-Identifier: Apache-2.0

// DurableDirectory: files that are always whole or absent, even after a power cut.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/os/file_descriptor.h"

namespace muster::os {

// Thread-safe. Errors are those of FileError in durable_file.h. Names are file names without a
// slash or a leading dot; callers check that.
class DurableDirectory {
 public:
  // Creates `path` and its parents if needed, removes what dead writers left behind, and keeps
  // other owners out until destroyed. base::Busy: there is another owner.
  static absl::StatusOr<std::unique_ptr<DurableDirectory>> Own(const std::string& path);

  // For reading only; can be open beside an owner. NotFound: no such directory.
  static absl::StatusOr<std::unique_ptr<DurableDirectory>> View(const std::string& path);

  DurableDirectory(const DurableDirectory&) = delete;
  DurableDirectory& operator=(const DurableDirectory&) = delete;

  // Writes `bytes` as the file `name`, replacing what was there. After OK the file survives a power
  // cut. After an error it is as it was before; if syncing the directory failed, it may be the old
  // or the new one.
  absl::Status Replace(absl::string_view name, absl::string_view bytes);

  // NotFound; DataLoss when the file is longer than `max_bytes`, or is no plain file.
  absl::StatusOr<std::string> Read(absl::string_view name, size_t max_bytes) const;

  // OK also when there is no such file. A power cut may bring it back.
  absl::Status Remove(absl::string_view name);

 private:
  DurableDirectory(std::string path, FileDescriptor folder);

  absl::Status Lock();
  absl::Status RemoveLeftovers();
  absl::Status WriteTemporary(const std::string& temporary, absl::string_view bytes);
  std::string PathOf(absl::string_view name) const;

  const std::string path_;
  const FileDescriptor folder_;
  FileDescriptor lock_;  // -1: a view
  std::atomic<uint64_t> next_temporary_ = 0;
};

}  // namespace muster::os
