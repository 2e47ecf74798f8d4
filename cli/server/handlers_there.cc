#include "cli/server/handlers_there.h"

#include "absl/strings/str_cat.h"

namespace muster::cli {

HandlerInventory::HandlerInventory(absl::Span<const v1::Instance> instances) {
  for (const v1::Instance& instance : instances) {
    if (instance.leaving() || instance.info().role() != v1::ROLE_PROCESSOR) continue;
    for (const v1::HandlerVersion& handler : instance.info().handlers()) {
      versions_[handler.job()].insert(handler.version());
    }
  }
}

std::set<std::string> HandlerInventory::VersionsOf(const std::string& job) const {
  const auto found = versions_.find(job);
  return found == versions_.end() ? std::set<std::string>() : found->second;
}

bool HandlerInventory::Fit(const v1::BatchStatus& batch) const {
  const std::set<std::string> versions = VersionsOf(batch.job());
  return batch.handler_version().empty() ? !versions.empty()
                                         : versions.contains(batch.handler_version());
}

std::string HandlerOf(const v1::BatchStatus& batch) {
  const std::string& version = batch.handler_version();
  return absl::StrCat(version.empty() ? "" : absl::StrCat("version ", version, " of "),
                      "the handler of job ", batch.job());
}

}  // namespace muster::cli
