// Chunks that no metadata names: a put died before it came to that, or after it had replaced a blob
// and before it had removed what it replaced.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/nats/jetstream.h"

namespace muster::blob::jetstream {

// Removes those that muster wrote for puts which began before `before`, and answers of how many
// puts. Costs one call where the bucket holds nothing as old; otherwise it looks at the metadata of
// every blob. Blobs that tools put, and what is left of them, stay. FailedPrecondition, and nothing
// is removed: metadata cannot be read, so it is not known what it names.
absl::StatusOr<size_t> RemoveOrphans(nats::JetStream* jetstream, absl::string_view bucket,
                                     absl::Time before);

}  // namespace muster::blob::jetstream
