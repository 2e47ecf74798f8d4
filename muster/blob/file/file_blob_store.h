// SPDX-License-Identifier: Apache-2.0

// FileBlobStore: the BlobStore of a single machine; a file per blob, in one directory.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/blob/blob_store.h"
#include "muster/os/quarantine.h"

namespace muster::os {
class DurableDirectory;
}  // namespace muster::os

namespace muster::blob::file {

struct Options {
  // Can be open beside the owner; refuses Put and Delete (FailedPrecondition).
  bool read_only = false;
};

// Thread-safe. After OK, a Put survives power loss.
class FileBlobStore final : public blob::BlobStore {
 public:
  // Creates `dir` if needed, and removes what a killed Put left there.
  // FailedPrecondition: another process owns it. NotFound: read-only and not there.
  static absl::StatusOr<std::unique_ptr<FileBlobStore>> Open(const std::string& dir,
                                                             const Options& options = Options());
  ~FileBlobStore() override;

  // ResourceExhausted: the disk is full; the blob is as it was before.
  absl::Status Put(absl::string_view name, absl::string_view data) override;
  absl::StatusOr<std::string> Get(absl::string_view name) override;
  absl::Status Delete(absl::string_view name) override;
  // Holds one descriptor.
  absl::StatusOr<std::unique_ptr<BlobScan>> Scan() override;

 private:
  FileBlobStore(std::string dir, std::unique_ptr<os::DurableDirectory> directory);

  const std::string dir_;
  const std::unique_ptr<os::DurableDirectory> directory_;
};

// Checks every blob of a directory. A repair moves a damaged blob into the quarantine: a reader of
// its name then gets NotFound, and makes the content again.

// NotFound: there is no such directory. FailedPrecondition: a process owns it (only a repair is in
// its way), or a newer muster wrote a blob.
absl::StatusOr<os::CheckSummary> CheckBlobs(const std::string& dir,
                                            const os::CheckOptions& options);

}  // namespace muster::blob::file
