// Whether an agent looks after a state folder, and who may change it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/os/file_descriptor.h"

namespace muster::scaling::actuator::process {

// An agent is there as long as it has this open: the kernel closes it with the agent's process,
// however that ends. Any number of agents may be there.
absl::StatusOr<os::FileDescriptor> AnnounceAgent(const std::string& path);

// `file` is the same path, opened to read.
bool HasAgent(int file);

// Keeps all others out, of this process too, until it is closed. Unavailable: somebody kept this
// one out for longer than `limit`.
absl::StatusOr<os::FileDescriptor> LockFolder(const std::string& path, absl::Duration limit);

}  // namespace muster::scaling::actuator::process
