// SPDX-License-Identifier: Apache-2.0

// Durable files: writing, renaming and syncing, so that what is OK survives a power cut. No other
// folder calls fsync or rename for that, but services/initiator/submit/uploads.cc, whose file
// grows.
//
//   content       WriteFully, then SyncDescriptor or SyncPath
//   name          SyncFolderOf; CreateFolder, Rename and Exchange do it themselves
//   whole file    ReplaceFile: content, then name
//
// All functions are thread-safe, and answer the errors of FileError. After a failed sync it is
// unknown what the medium holds, and a second sync of the same file may succeed without its
// content: write the file again instead.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::os {

// Of files that muster creates, less the umask.
inline constexpr mode_t kFileMode = 0640;

// What `error`, an errno, means for a file: "syncing /a/b: No space left on device".
// ResourceExhausted: the disk, or the user's share of it, is full. Unavailable: the medium failed,
// or the machine lacks memory or descriptors. All others are as absl::ErrnoToStatus has them:
// NotFound, AlreadyExists, PermissionDenied …
absl::Status FileError(int error, absl::string_view doing, absl::string_view path);

// Writes all of `bytes` to `fd`; nothing is durable yet. `what` goes into errors.
absl::Status WriteFully(int fd, absl::string_view bytes, absl::string_view what);

// Reads the whole file `fd`, which must not be written meanwhile. DataLoss: it is longer than
// `max_bytes`, or is no plain file.
absl::StatusOr<std::string> ReadFully(int fd, size_t max_bytes, absl::string_view what);
// The same for the file `path`. NotFound: there is none.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes);

// After OK the content of the file is durable, but not its name; of a folder, the names in it.
absl::Status SyncDescriptor(int fd, absl::string_view what);
absl::Status SyncPath(const std::string& path);

// After OK the name `path` itself is durable, or its absence.
absl::Status SyncFolderOf(const std::string& path);

// After OK all files and folders under the folder `path` are durable, and the names in it. Leaves
// links, pipes and devices alone: they have no content of their own.
absl::Status SyncTree(const std::string& path);

// Creates the folder `path`, and its parents, where they are missing. After OK the folders that it
// created are durable. FailedPrecondition: something that is no folder is in the way.
absl::Status CreateFolder(const std::string& path, mode_t mode = 0777);

// Writes `bytes` as the file `path`, in the place of what was there. After OK the new content is
// durable. After an error the file has its old content; after a failed sync of its folder, its old
// or its new. At no instant, and after no crash, is it absent or half written. One caller at a time
// for each file: it writes to PATH.new first, and overwrites what a dead writer left there.
//
// NotFound: the folder does not exist. Each step goes by the path, so a folder that is renamed
// before the file is in it never gets the file.
absl::Status ReplaceFile(const std::string& path, absl::string_view bytes);

// Renames a file or a folder, in the place of a file `to`. After OK the new name is durable, and
// the old one gone. `from` must be durable before: otherwise a power cut can leave an empty file in
// the place of a whole one. After an error either name may hold it, but never none.
absl::Status Rename(const std::string& from, const std::string& to);

// Exchanges the names of two files or folders in one step, so that at no instant either name is
// free. What both hold must be durable before; after OK their names are.
absl::Status Exchange(const std::string& a, const std::string& b);

}  // namespace muster::os
