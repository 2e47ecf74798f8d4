#include "cli/batch/outcome.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/output/exit_code.h"
#include "cli/output/table.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

nlohmann::ordered_json Outcome::Json() const {
  return {
      {"batch", batch},
      {"job", job},
      {"transactions", counted.transactions},
      {"aggregated", counted.aggregated},
      {"rejected", counted.rejected},
      {"dead_lettered", counted.dead_lettered},
      {"duplicates_dropped", counted.duplicates},
      {"items", counted.items()},
      {"attempts", counted.attempts},
      {"seconds", seconds},
      {"transactions_per_second", transactions_per_second},
      {"complete", complete},
  };
}

std::string Outcome::Text() const {
  const auto number = [](int64_t value) { return Grouped(static_cast<uint64_t>(value)); };
  return absl::StrCat(
      "batch ", batch, ": ", Counted(static_cast<uint64_t>(counted.transactions), "transaction"),
      " = ", number(counted.aggregated), " aggregated + ", number(counted.rejected), " rejected + ",
      number(counted.dead_lettered), " dead-lettered\n",
      absl::StrFormat("%s in %.2f s, %s transactions/s\n",
                      Counted(static_cast<uint64_t>(counted.items()), "item"), seconds,
                      Grouped(static_cast<uint64_t>(transactions_per_second))));
}

std::string Outcome::Losses(const job::Tolerance& tolerate, const std::string& where) const {
  std::string lines;
  if (counted.rejected > 0) {
    const bool tolerated = tolerate.Allows(counted.rejected, counted.transactions);
    absl::StrAppend(&lines, Counted(static_cast<uint64_t>(counted.rejected), "transaction"),
                    counted.rejected == 1 ? " was" : " were", " rejected",
                    tolerated ? " (tolerated)" : "", ": muster batch get ", batch, where, "\n");
  }
  if (counted.items_dead > 0) {
    absl::StrAppend(&lines, Counted(static_cast<uint64_t>(counted.items_dead), "item"),
                    counted.items_dead == 1 ? " was" : " were", " given up: muster queue list",
                    where, ", muster queue poison QUEUE", where, "\n");
  }
  return lines;
}

int Outcome::Code(const job::Tolerance& tolerate) const {
  if (!complete) return kInterrupted;
  if (counted.dead_lettered > 0 || !tolerate.Allows(counted.rejected, counted.transactions)) {
    return kPartial;
  }
  return late ? kDeadlineMissed : kOk;
}

}  // namespace muster::cli
