#include "muster/nats/settings_check.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/mismatch.h"
#include "nlohmann/json.hpp"

namespace muster::nats {
namespace {

using nlohmann::json;

// Whoever asks why a change is refused wants to hear of these, not of what would follow it.
bool IsForGood(const Difference& difference) {
  return difference.field == "storage" || difference.field == "retention";
}

}  // namespace

std::vector<Difference> DifferencesOf(const json& wanted, const json& got,
                                      absl::Span<const absl::string_view> optional) {
  std::vector<Difference> differences;
  for (const auto& [field, value] : wanted.items()) {
    if (std::find(optional.begin(), optional.end(), field) != optional.end()) continue;
    const auto found = got.find(field);
    if (found != got.end() && *found == value) continue;
    differences.push_back({field, found == got.end() ? "not set" : found->dump(), value.dump()});
  }
  std::stable_partition(differences.begin(), differences.end(), IsForGood);
  return differences;
}

std::string Describe(absl::Span<const Difference> differences) {
  std::string text;
  for (const Difference& difference : differences) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", difference.field, " is ", difference.is,
                    ", not ", difference.wanted);
  }
  return text;
}

absl::Status Incompatible(absl::string_view name, absl::string_view message,
                          absl::Span<const Difference> differences) {
  base::Mismatch mismatch;
  mismatch.what = std::string(name);
  if (!differences.empty()) {
    mismatch.field = differences.front().field;
    mismatch.is = differences.front().is;
    mismatch.wanted = differences.front().wanted;
  }
  return base::WithMismatch(absl::FailedPreconditionError(message), mismatch);
}

}  // namespace muster::nats
