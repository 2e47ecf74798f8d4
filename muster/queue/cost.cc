// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/cost.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/base/status.h"
#include "nlohmann/json.hpp"

namespace muster::queue {

void Usage::Add(const Usage& other) {
  for (size_t verb = 0; verb < transactions.size(); ++verb) {
    transactions[verb].useful += other.transactions[verb].useful;
    transactions[verb].wasted += other.transactions[verb].wasted;
  }
  wakeups_push += other.wakeups_push;
  wakeups_safety += other.wakeups_safety;
  bus_messages += other.bus_messages;
}

int64_t Usage::total() const {
  int64_t sum = 0;
  for (const Transactions& of_verb : transactions) sum += of_verb.total();
  return sum;
}

int64_t Usage::wasted() const {
  int64_t sum = 0;
  for (const Transactions& of_verb : transactions) sum += of_verb.wasted;
  return sum;
}

double TransactionCost(int64_t transactions, const Prices& prices) {
  return static_cast<double>(transactions) / 10'000 * prices.per_10000_transactions;
}

double Cost(const Usage& usage, const Prices& prices) {
  return TransactionCost(usage.total(), prices) +
         static_cast<double>(usage.bus_messages) / 1e6 * prices.per_million_bus_messages;
}

std::string ShowDollars(double dollars) {
  const bool cents_show_it = dollars == 0 || dollars >= 0.10;
  return cents_show_it ? absl::StrFormat("$%.2f", dollars) : absl::StrFormat("$%.6f", dollars);
}

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

std::string VerbName(size_t verb) { return std::string(queue::NameOf(static_cast<Verb>(verb))); }

ordered_json ToJson(const RunUsage& run) {
  ordered_json transactions = ordered_json::object();
  for (size_t verb = 0; verb < run.usage.transactions.size(); ++verb) {
    const Transactions& of_verb = run.usage.transactions[verb];
    if (of_verb.total() == 0) continue;
    transactions[VerbName(verb)] = {{"useful", of_verb.useful}, {"wasted", of_verb.wasted}};
  }
  return {{"batch", run.batch},
          {"ended", absl::FormatTime(absl::RFC3339_sec, run.ended, absl::UTCTimeZone())},
          {"seconds", run.seconds},
          {"partitions", run.partitions},
          {"threads", run.threads},
          {"transactions", transactions},
          {"wakeups_push", run.usage.wakeups_push},
          {"wakeups_safety", run.usage.wakeups_safety},
          {"bus_messages", run.usage.bus_messages}};
}

// Throws an nlohmann exception where a field is missing.
RunUsage FromJson(const json& line) {
  RunUsage run;
  run.batch = line.at("batch").get<uint64_t>();
  absl::ParseTime(absl::RFC3339_sec, line.value("ended", ""), &run.ended, nullptr);
  run.seconds = line.at("seconds").get<double>();
  run.partitions = line.at("partitions").get<int>();
  run.threads = line.at("threads").get<int>();
  run.usage.wakeups_push = line.at("wakeups_push").get<int64_t>();
  run.usage.wakeups_safety = line.at("wakeups_safety").get<int64_t>();
  run.usage.bus_messages = line.at("bus_messages").get<int64_t>();
  for (size_t verb = 0; verb < run.usage.transactions.size(); ++verb) {
    const auto found = line.at("transactions").find(VerbName(verb));
    if (found == line.at("transactions").end()) continue;
    run.usage.transactions[verb] = {found->at("useful").get<int64_t>(),
                                    found->at("wasted").get<int64_t>()};
  }
  return run;
}

// The runs of a file that is full.
std::string BeforePath(const std::string& path) { return absl::StrCat(path, ".1"); }

std::optional<RunUsage> Parse(const std::string& line) {
  try {
    return FromJson(json::parse(line));
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

bool IsFull(const std::string& path, const RunUsage& next, int64_t max_bytes) {
  std::error_code absent;
  const uintmax_t bytes = std::filesystem::file_size(path, absent);
  if (absent) return false;
  if (bytes >= static_cast<uintmax_t>(max_bytes)) return true;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const std::optional<RunUsage> first = Parse(line);
  return first.has_value() && first->ended != absl::UnixEpoch() &&
         next.ended - first->ended > kMaxUsageAge;
}

absl::Status AddRuns(const std::string& path, std::vector<RunUsage>* runs) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return absl::OkStatus();
  std::ifstream file(path);
  if (!file.good()) return absl::ErrnoToStatus(errno, absl::StrCat("read ", path));
  for (std::string line; std::getline(file, line);) {
    if (const std::optional<RunUsage> run = Parse(line)) runs->push_back(*run);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AppendUsage(const std::string& path, const RunUsage& run, int64_t max_bytes) {
  if (IsFull(path, run, max_bytes)) {
    std::error_code error;
    std::filesystem::rename(path, BeforePath(path), error);
    if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("rename ", path));
  }
  std::ofstream file(path, std::ios::app);
  file << ToJson(run).dump() << "\n" << std::flush;
  return file.good() ? absl::OkStatus() : absl::ErrnoToStatus(errno, absl::StrCat("write ", path));
}

absl::StatusOr<std::vector<RunUsage>> ReadUsage(const std::string& path) {
  std::vector<RunUsage> runs;
  MUSTER_RETURN_IF_ERROR(AddRuns(BeforePath(path), &runs));
  MUSTER_RETURN_IF_ERROR(AddRuns(path, &runs));
  return runs;
}

}  // namespace muster::queue
