// SPDX-License-Identifier: Apache-2.0

// OpenDirectoryId: the id of a data directory. Initiators tell by it whose a request id is.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace muster::initiator::submit {

// The id of a data directory, 32 hexadecimal digits, in its file initiator-id; begun if it is
// missing. It goes where the directory goes, so a copy must not serve beside the original.
// DataLoss: the file holds none.
absl::StatusOr<std::string> OpenDirectoryId(const std::string& data_dir);

}  // namespace muster::initiator::submit
