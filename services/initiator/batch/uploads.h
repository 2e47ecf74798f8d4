// Uploads: the folder that holds the content of this initiator's batches, a file for each, but for
// short content (whole_content.h). It stays for some time after its batch is complete: from it any
// item can be made again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/mutex.h"
#include "services/initiator/batch/upload.h"

namespace muster::initiator::batch {

// Thread-safe.
class Uploads {
 public:
  // Makes the folder if it is missing. Unavailable: that is not possible.
  static absl::StatusOr<std::unique_ptr<Uploads>> Open(const std::string& folder);

  // Absolute; whatever has become of the content.
  std::string PathOf(uint64_t batch) const;

  // Whether all of the batch's content is there.
  bool IsSealed(uint64_t batch) const;
  // What somebody holds of it at the moment; null: nobody does.
  std::shared_ptr<Upload> Held(uint64_t batch);

  // The batch's content, begun if it is not there; whoever asks while somebody else holds it gets
  // the same one.
  absl::StatusOr<std::shared_ptr<Upload>> Get(uint64_t batch);

  // Deletes the content, whole or not; fine where there is none. Who holds it can still read it.
  absl::Status Delete(uint64_t batch);

 private:
  explicit Uploads(std::string folder) : folder_(std::move(folder)) {}

  const std::string folder_;
  base::Mutex mu_;
  std::map<uint64_t, std::weak_ptr<Upload>> held_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::initiator::batch
