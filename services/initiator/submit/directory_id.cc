// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/submit/directory_id.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/fingerprint.h"
#include "muster/base/random.h"
#include "muster/base/status.h"
#include "muster/os/durable_file.h"

namespace muster::initiator::submit {

absl::StatusOr<std::string> OpenDirectoryId(const std::string& data_dir) {
  constexpr size_t kMaxBytes = 64;
  const std::string path = absl::StrCat(data_dir, "/initiator-id");
  const absl::StatusOr<std::string> text = os::ReadFile(path, kMaxBytes);
  if (absl::IsNotFound(text.status())) {
    const base::Fingerprint128 drawn{base::RandomSeed(), base::RandomSeed()};
    MUSTER_RETURN_IF_ERROR(os::ReplaceFile(path, absl::StrCat(drawn.ToHex(), "\n")));
    return drawn.ToHex();
  }
  MUSTER_RETURN_IF_ERROR(text.status());
  const auto id = base::Fingerprint128::FromHex(absl::StripSuffix(*text, "\n"));
  if (!id.has_value()) return absl::DataLossError(absl::StrCat(path, " holds no id"));
  return id->ToHex();
}

}  // namespace muster::initiator::submit
