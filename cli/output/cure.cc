#include "cli/output/cure.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace muster::cli {

absl::Status WithListHint(const absl::Status& status, absl::string_view command) {
  // What one can do comes behind a semicolon, in all messages.
  if (!absl::IsNotFound(status) || absl::StrContains(status.message(), ';')) return status;
  absl::Status hinted(status.code(),
                      absl::StrCat(status.message(), "; `", command, "` shows those there are"));
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { hinted.SetPayload(type, payload); });
  return hinted;
}

absl::Status WithListHint(const absl::Status& status, absl::string_view command,
                          const CommonOptions& options) {
  const std::string where = options.server.named() ? "" : DataDirOption(options.data_dir);
  return WithListHint(status, absl::StrCat(command, where));
}

}  // namespace muster::cli
