#include <limits>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "muster/base/decimal.h"
#include "muster/job/job_file.h"
#include "muster/job/limits.h"
#include "muster/job/sections.h"
#include "muster/queue/limits.h"

namespace muster::job {
namespace {

using yaml::Problems;
using yaml::YamlMap;
using yaml::YamlValue;

void ReadInto(const YamlValue& value, int* out, int64_t min, int64_t max) {
  int64_t number;
  if (value.ReadInt(&number, min, max)) *out = static_cast<int>(number);
}

// Parts per million of a share such as "1%" or "0.05%".
std::optional<int64_t> ParseShare(absl::string_view text) {
  if (!absl::ConsumeSuffix(&text, "%")) return std::nullopt;
  const std::optional<base::Decimal> percent = base::Decimal::TryParse(text);
  if (!percent) return std::nullopt;
  const std::optional<base::Decimal> exact = percent->TryRescale(4);
  if (!exact || exact->units() < 0 || exact->units() > 1'000'000) return std::nullopt;
  return static_cast<int64_t>(exact->units());
}

}  // namespace

void ReadItem(const YamlValue& section, Problems* problems, ItemLimits* item) {
  const YamlMap map(section, JobFileKeys().at(kItem), problems);
  ReadInto(map.Optional("transactions"), &item->transactions, 1, kMaxItemTransactions);
  int64_t bytes;
  if (map.Optional("max_bytes").ReadBytes(&bytes, kMinItemBytes, kMaxItemBytes)) {
    item->max_bytes = static_cast<size_t>(bytes);
  }
}

void ReadQueue(const YamlValue& section, Problems* problems, QueueSpec* queue) {
  const YamlMap map(section, JobFileKeys().at(kQueue), problems);
  ReadInto(map.Optional("partitions"), &queue->partitions, 1, kMaxPartitions);
  ReadInto(map.Optional("max_attempts"), &queue->max_attempts, 1, kMaxAttempts);
  absl::Duration visibility;
  if (map.Optional("visibility").ReadDuration(&visibility, kMinVisibility, queue::kMaxVisibility)) {
    queue->visibility = visibility;
  }
  const YamlValue ttl = map.Optional("ttl");
  if (ttl.Raw() == "never") {
    queue->ttl = absl::InfiniteDuration();
  } else {
    ttl.ReadDuration(&queue->ttl, kMinTtl, kMaxTtl);
  }
  absl::Duration max_drain;
  if (map.Optional("max_drain").ReadDuration(&max_drain, kMinDrain, kMaxDrain)) {
    queue->max_drain = max_drain;
  }
}

void ReadTolerance(const YamlValue& section, Problems* problems, Tolerance* tolerance) {
  const YamlMap map(section, JobFileKeys().at(kTolerate), problems);
  const YamlValue rejected = map.Optional("rejected");
  if (!rejected.present()) return;
  if (rejected.IsNumber()) {
    rejected.ReadInt(&tolerance->rejected, 0, std::numeric_limits<int64_t>::max());
    return;
  }
  tolerance->rejected_ppm = ParseShare(rejected.Raw());
  if (!tolerance->rejected_ppm) {
    rejected.MustBe("a count, or a share from 0% to 100% with at most 4 decimals");
  }
}

void ReadSla(const YamlValue& section, Problems* problems, std::optional<absl::Duration>* sla) {
  const YamlMap map(section, JobFileKeys().at(kSla), problems);
  absl::Duration max;
  if (map.Required("max").ReadDuration(&max, kMinSla, kMaxSla)) *sla = max;
}

}  // namespace muster::job
