// SPDX-License-Identifier: Apache-2.0
#include "cli/batch/outcome.h"

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "muster/base/proto_time.h"
#include "muster/base/text.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

// Of the cause of a dead letter: a line or three of a terminal. `batch dead-letters` has all of it.
constexpr size_t kMaxCauseBytes = 256;

// Line ends within fields of which no warning is printed.
constexpr uint64_t kFewLines = 3;

// "2 records span several lines, 35 lines in all: those that begin at line 7, 91".
std::string InWords(const base::MultilineRecords& multiline) {
  const bool is_one = multiline.records == 1;
  const bool are_more = multiline.records > multiline.first.size();
  return absl::StrCat(Counted(multiline.records, "record"),
                      is_one ? " spans several lines, " : " span several lines, ",
                      Grouped(multiline.lines), " lines in all: ",
                      is_one     ? "it begins at line "
                      : are_more ? "the first begin at lines "
                                 : "they begin at lines ",
                      absl::StrJoin(multiline.first, ", "));
}

bool IsLate(const std::optional<item::PromiseState>& promise) {
  return promise.has_value() && promise->late_by > absl::ZeroDuration();
}

}  // namespace

void AddPromise(const std::optional<item::PromiseState>& promise, nlohmann::ordered_json* json) {
  if (!promise.has_value()) return;
  (*json)["sla_seconds"] = absl::ToDoubleSeconds(promise->sla);
  (*json)["deadline"] = Rfc3339(promise->deadline);
  (*json)["late_by_seconds"] = absl::ToDoubleSeconds(promise->late_by);
  (*json)["at_risk"] = promise->at_risk;
}

std::optional<item::PromiseState> PromiseOf(const v1::BatchStatus& status) {
  if (!status.has_deadline()) return std::nullopt;
  item::PromiseState promise;
  promise.sla = base::FromProto(status.sla());
  promise.deadline = base::FromProto(status.deadline());
  promise.late_by = base::FromProto(status.late_by());
  promise.at_risk = status.at_risk();
  return promise;
}

void AddMultiline(const base::MultilineRecords& multiline, nlohmann::ordered_json* json) {
  if (multiline.records == 0) return;
  (*json)["multiline_records"] = multiline.records;
  (*json)["multiline_record_lines"] = multiline.lines;
  (*json)["multiline_first_lines"] = multiline.first;
}

nlohmann::ordered_json Outcome::Json() const {
  nlohmann::ordered_json json = {
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
  AddPromise(promise, &json);
  AddMultiline(multiline, &json);
  return json;
}

std::string Outcome::Text() const {
  const auto number = [](int64_t value) { return Grouped(static_cast<uint64_t>(value)); };
  const uint64_t now = static_cast<uint64_t>(counted.transactions) - counted_before;
  const std::string of_these =
      counted_before > 0 ? absl::StrCat("; this run: ", Counted(now, "transaction")) : "";
  // None: the clock was set back meanwhile.
  const std::string how_long =
      seconds > 0 ? absl::StrFormat(" in %.2f s, %s transactions/s", seconds,
                                    Grouped(static_cast<uint64_t>(transactions_per_second)))
                  : "";
  return absl::StrCat(
      "batch ", batch, ": ", Counted(static_cast<uint64_t>(counted.transactions), "transaction"),
      " = ", number(counted.aggregated), " aggregated + ", number(counted.rejected), " rejected + ",
      number(counted.dead_lettered), " dead-lettered\n",
      Counted(static_cast<uint64_t>(counted.items()), "item"), of_these, how_long, "\n",
      IsLate(promise) ? absl::StrCat("late: ", item::ShowLateness(*promise), "\n") : "",
      multiline.records > 0 ? absl::StrCat(InWords(multiline), "\n") : "");
}

std::string Outcome::MultilineWarning(const input::InputFormat& input) const {
  const uint64_t swallowed = multiline.lines - multiline.records;  // if none of them is meant
  if (input.expects_multiline || swallowed <= kFewLines) return "";
  return absl::StrCat(
      "warning: ", InWords(multiline),
      ". If stray quotes have swallowed records, write `multiline: false` or `quote: "
      "none` below `input` in the job file; if the line ends are meant, write "
      "`multiline: true`\n");
}

std::string GrownWarning(const std::string& path, uint64_t taken, uint64_t batch,
                         const std::string& where) {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size <= taken) return "";
  return absl::StrCat("warning: ", Printable(path), " has grown to ", Grouped(size),
                      " bytes: batch ", batch, " is made of the ", Grouped(taken),
                      " that it had at first, and may end in the middle of a record. If it was "
                      "still being written, `muster batch delete ",
                      batch, where, "` forgets that batch, so that all of it counts once\n");
}

std::string Outcome::Losses(const job::Tolerance& tolerate, const std::string& where) const {
  std::string lines;
  if (counted.rejected > 0) {
    const bool tolerated = tolerate.Allows(counted.rejected, counted.transactions);
    absl::StrAppend(&lines, Counted(static_cast<uint64_t>(counted.rejected), "transaction"),
                    counted.rejected == 1 ? " was" : " were", " rejected",
                    tolerated ? " (tolerated)" : "", ": muster batch rejections ", batch, where,
                    "\n");
  }
  if (counted.items_dead > 0) {
    absl::StrAppend(&lines, Counted(static_cast<uint64_t>(counted.items_dead), "item"),
                    counted.items_dead == 1 ? " was" : " were",
                    " given up: muster batch dead-letters ", batch, where, "\n");
  }
  if (first_dead.has_value()) {
    absl::StrAppend(&lines, "  item ", first_dead->index,
                    counted.items_dead == 1 ? ": " : ", the first of them: ",
                    base::Printable(first_dead->cause, kMaxCauseBytes), "\n");
  }
  return lines;
}

int Outcome::Code(const job::Tolerance& tolerate) const {
  if (!complete) return kInterrupted;
  if (counted.dead_lettered > 0 || !tolerate.Allows(counted.rejected, counted.transactions)) {
    return kPartial;
  }
  return IsLate(promise) ? kDeadlineMissed : kOk;
}

report::Progress ProgressOf(const v1::BatchStatus& status) {
  report::Progress progress;
  progress.batch = status.batch();
  progress.items_counted = status.items() - status.items_dead();
  progress.items_dead = status.items_dead();
  progress.transactions = status.transactions();
  progress.aggregated = status.aggregated();
  progress.rejected = status.rejected();
  progress.dead_lettered = status.dead_lettered();
  progress.duplicates = status.duplicates_dropped();
  progress.attempts = status.attempts();
  progress.retry_of = status.retry_of();
  progress.retried_in.assign(status.retried_in().begin(), status.retried_in().end());
  progress.replaces.assign(status.replaces().begin(), status.replaces().end());
  progress.replaced_by = status.replaced_by();
  return progress;
}

}  // namespace muster::cli
