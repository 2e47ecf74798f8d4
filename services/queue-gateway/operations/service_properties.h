// SPDX-License-Identifier: Apache-2.0

// The properties of an account's queue service: logging, metrics and CORS rules.
//
// They are a record of the sync store, "queue-gateway/properties/ACCOUNT": the XML document that
// Get Queue Service Properties answers. To change the form, give the document a root of another
// name.
//
// Logging and metrics are kept and shown, and change nothing: muster has its own
// (docs/operations/metrics.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "services/queue-gateway/operations/call.h"

namespace muster::queue_gateway::operations {

// Azure's bounds.
inline constexpr size_t kMaxCorsRules = 5;
inline constexpr size_t kMaxCorsValues = 64;      // origins or headers of one rule
inline constexpr size_t kMaxCorsBytes = 2 << 10;  // of all rules
inline constexpr int64_t kMaxRetentionDays = 365;

struct Retention {
  bool enabled = false;
  std::optional<int64_t> days;  // there if it is enabled
};

struct Logging {
  std::string version = "1.0";
  bool deletes = false;
  bool reads = false;
  bool writes = false;
  Retention retention;
};

struct Metrics {
  std::string version = "1.0";
  bool enabled = false;
  std::optional<bool> include_apis;  // there if they are enabled
  Retention retention;
};

struct CorsRule {
  std::vector<std::string> origins;  // "*": all
  std::vector<std::string> methods;
  int64_t max_age_seconds = 0;
  std::vector<std::string> exposed_headers;
  std::vector<std::string> allowed_headers;  // "x-*": all that begin so
};

struct ServiceProperties {
  Logging logging;
  Metrics hour_metrics;
  Metrics minute_metrics;
  std::vector<CorsRule> cors;
};

// `document` over `before`: what it leaves out stays. InvalidArgument, which says what is wrong.
absl::StatusOr<ServiceProperties> ParseProperties(absl::string_view document,
                                                  ServiceProperties before);
std::string WriteProperties(const ServiceProperties& properties);

// The defaults if none were set. DataLoss: the record is damaged.
absl::StatusOr<ServiceProperties> ReadProperties(const std::string& account, const Stores& stores);
// Writes `document` over those that are set. Errors are those of ParseProperties, and the statuses
// of the store.
absl::Status StoreProperties(const std::string& account, absl::string_view document,
                             const Stores& stores);

}  // namespace muster::queue_gateway::operations
