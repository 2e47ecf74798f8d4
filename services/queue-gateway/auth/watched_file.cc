// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/auth/watched_file.h"

#include <fstream>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"

namespace muster::queue_gateway::auth {

absl::StatusOr<std::string> ReadSmallFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file && !file.eof()) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read the file '", path, "'"));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMaxFileBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the file '", path, "' has more than ", kMaxFileBytes, " bytes"));
  }
  return text;
}

void LogReread(const std::string& path, const absl::Status& status) {
  if (status.ok()) {
    base::Log(base::kInfo, "a changed file is in force", {{"file", path}});
  } else {
    base::Log(base::kError, "a changed file is wrong; what it said before stays in force",
              {{"file", path}, {"why", status.message()}});
  }
}

}  // namespace muster::queue_gateway::auth
