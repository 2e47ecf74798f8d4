// What is there on a server, held against what was asked for.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nlohmann/json_fwd.hpp"

namespace muster::nats {

// A setting that is not as it should be; both values as JSON.
struct Difference {
  std::string field;
  std::string is;  // "not set" where the server does not have it
  std::string wanted;
};

// The fields of `wanted` that are otherwise in `got`, but for those in `optional`. What no server
// changes later comes first.
std::vector<Difference> DifferencesOf(const nlohmann::json& wanted, const nlohmann::json& got,
                                      absl::Span<const absl::string_view> optional = {});

// "storage is "memory", not "file", …"; empty: there are none.
std::string Describe(absl::Span<const Difference> differences);

// FailedPrecondition, with the first of `differences` as a base::Mismatch of `name`.
absl::Status Incompatible(absl::string_view name, absl::string_view message,
                          absl::Span<const Difference> differences);

}  // namespace muster::nats
