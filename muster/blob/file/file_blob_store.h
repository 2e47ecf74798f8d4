// FileBlobStore: the BlobStore of the embedded shapes; a file per blob, in one directory.
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
  // May stand beside the owner; refuses to put and to delete (FailedPrecondition).
  bool read_only = false;
};

// Thread-safe. A Put that answered OK survives power loss.
class FileBlobStore final : public blob::BlobStore {
 public:
  // Creates `dir` if need be, and removes what a Put that was killed left there.
  // FailedPrecondition: another process owns it. NotFound: read-only and not there.
  static absl::StatusOr<std::unique_ptr<FileBlobStore>> Open(const std::string& dir,
                                                             const Options& options = Options());
  ~FileBlobStore() override;

  // ResourceExhausted: the disk is full; the blob is as it was before.
  absl::Status Put(absl::string_view name, absl::string_view data) override;
  absl::StatusOr<std::string> Get(absl::string_view name) override;
  absl::Status Delete(absl::string_view name) override;

 private:
  explicit FileBlobStore(std::unique_ptr<os::DurableDirectory> directory);

  const std::unique_ptr<os::DurableDirectory> directory_;
};

// Checks every blob of a directory. A repair moves a damaged one onto the quarantine: who holds its
// name is told that it is gone, and makes what it held again.

// NotFound: there is no such directory. FailedPrecondition: a process owns it (only a repair is in
// its way), or a newer muster wrote a blob.
absl::StatusOr<os::CheckSummary> CheckBlobs(const std::string& dir,
                                            const os::CheckOptions& options);

}  // namespace muster::blob::file
