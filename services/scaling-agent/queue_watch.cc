// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/queue_watch.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/names.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/item/queue_names.h"
#include "muster/scaling/policy/explain.h"
#include "services/scaling-agent/limits.h"

namespace muster::scaling_agent {

absl::string_view NameOf(absl::string_view queue, const std::vector<std::string>& names) {
  absl::string_view found;
  for (const std::string& name : names) {
    if (name == queue) return name;
    if (found.empty() && MatchesQueue(name, queue)) found = name;
  }
  return found;
}

absl::string_view WithoutPartition(absl::string_view name) {
  const size_t end = name.find_last_not_of("0123456789");
  if (end == absl::string_view::npos || end + 1 == name.size() || name[end] != '-') return name;
  return name.substr(0, end);
}

std::optional<std::string> JobOf(absl::string_view name, const std::vector<std::string>& jobs) {
  for (const std::string& job : jobs) {
    if (MatchesQueue(item::InputName(job), name)) return job;
  }
  absl::string_view job = WithoutPartition(name);
  if (!absl::ConsumeSuffix(&job, item::InputName("")) || job.empty()) return std::nullopt;
  return std::string(job);
}

absl::string_view WithinAccount(absl::string_view queue, absl::string_view account) {
  if (!absl::ConsumePrefix(&queue, account) || !absl::ConsumePrefix(&queue, "/")) return "";
  return queue;
}

namespace {

void AddTo(const queue::QueueStats& stats, scaling::policy::QueueReading* reading) {
  reading->ready += stats.ready;
  reading->in_flight += stats.in_flight;
  reading->oldest_age = std::max(reading->oldest_age, stats.oldest_age);
  reading->total_in += stats.total_in;
  reading->total_out += stats.total_out;
}

bool IsOfOne(const std::vector<std::string>& jobs, absl::string_view name) {
  return std::any_of(jobs.begin(), jobs.end(), [name](const std::string& job) {
    return MatchesQueue(item::InputName(job), name);
  });
}

std::string TellUnknown(const std::vector<std::string>& unknown,
                        const std::vector<std::string>& known) {
  std::string text = absl::StrCat("the rules name ", base::ListNames(unknown),
                                  ", and there is no such queue or job");
  std::string nearest;
  for (const std::string& name : unknown) {
    if (nearest.empty()) nearest = base::DidYouMean(name, known);
  }
  if (!nearest.empty()) return text + nearest;
  if (known.empty()) return text + "; there is none at all";
  return absl::StrCat(text, "; there is ", base::ListNames(known));
}

}  // namespace

QueueWatch::QueueWatch(std::string account, std::vector<std::string> names,
                       queue::QueueStore* store, base::Clock* clock, Jobs jobs)
    : account_(std::move(account)),
      names_(std::move(names)),
      store_(store),
      clock_(clock),
      jobs_(std::move(jobs)) {}

void QueueWatch::Look() {
  {
    base::MutexLock lock(&mu_);
    looking_since_ = clock_->Monotonic();
  }
  absl::StatusOr<std::vector<scaling::policy::QueueReading>> read = Read();
  base::MutexLock lock(&mu_);
  looking_since_ = absl::InfiniteDuration();
  trouble_ = read.status();
  if (!read.ok()) return;
  readings_ = *std::move(read);
  read_at_ = clock_->Monotonic();
}

absl::StatusOr<std::vector<scaling::policy::QueueReading>> QueueWatch::Read() {
  Partitions partitions;
  bool shall_list = false;
  {
    base::MutexLock lock(&mu_);
    partitions = partitions_;
    shall_list = std::exchange(shall_list_, false);
  }
  if (shall_list || clock_->Monotonic() - listed_at_ >= kListPeriod) {
    listed_at_ = -absl::InfiniteDuration();  // each Look lists again until one succeeds
    MUSTER_ASSIGN_OR_RETURN(partitions, List());
    MUSTER_ASSIGN_OR_RETURN(std::string unknown, UnknownIn(partitions));
    NoteUnknown(std::move(unknown));
    listed_at_ = clock_->Monotonic();
    base::MutexLock lock(&mu_);
    partitions_ = partitions;
  }
  std::vector<scaling::policy::QueueReading> readings;
  for (const std::string& name : names_) {
    MUSTER_ASSIGN_OR_RETURN(scaling::policy::QueueReading reading, ReadOne(name, partitions[name]));
    readings.push_back(std::move(reading));
  }
  return readings;
}

absl::StatusOr<QueueWatch::Partitions> QueueWatch::List() {
  Partitions partitions;
  for (const std::string& name : names_) {
    MUSTER_ASSIGN_OR_RETURN(partitions[name], PartitionsOf(name));
  }
  return partitions;
}

// The prefix may match many other queues, so this reads page by page and filters by NameOf.
absl::StatusOr<std::vector<queue::QueueId>> QueueWatch::PartitionsOf(const std::string& name) {
  std::vector<queue::QueueId> partitions;
  std::vector<queue::QueueInfo> page;
  do {
    const std::string after = page.empty() ? "" : page.back().id.name;
    MUSTER_ASSIGN_OR_RETURN(page, store_->ListQueues({.account = account_,
                                                      .prefix = base::SafeStart(name),
                                                      .after = after,
                                                      .max_results = kQueuesPerPage}));
    for (const queue::QueueInfo& info : page) {
      if (NameOf(info.id.name, names_) == name) partitions.push_back(info.id);
    }
    if (partitions.size() > kMaxPartitions) {
      return absl::ResourceExhaustedError(
          absl::StrCat("'", name, "' has more than ", kMaxPartitions, " partitions"));
    }
  } while (page.size() == static_cast<size_t>(kQueuesPerPage));
  return partitions;
}

void QueueWatch::NoteUnknown(std::string text) {
  base::MutexLock lock(&mu_);
  unknown_ = std::move(text);
  unknown_since_ =
      unknown_.empty() ? absl::InfiniteDuration() : std::min(unknown_since_, clock_->Monotonic());
}

// A name of a known job's queue is not unknown: a job has no queues before its first batch or its
// first processor.
absl::StatusOr<std::string> QueueWatch::UnknownIn(const Partitions& partitions) {
  std::vector<std::string> unknown;
  for (const auto& [name, queues] : partitions) {
    if (queues.empty()) unknown.push_back(name);
  }
  if (unknown.empty()) return "";
  const std::vector<std::string> jobs = jobs_ ? jobs_() : std::vector<std::string>();
  const auto is_known = [&jobs](const std::string& name) { return IsOfOne(jobs, name); };
  unknown.erase(std::remove_if(unknown.begin(), unknown.end(), is_known), unknown.end());
  if (unknown.empty()) return "";
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> known, NamesThereAre(jobs));
  return TellUnknown(unknown, known);
}

// The first page of queues is enough, because only people read the names.
absl::StatusOr<std::vector<std::string>> QueueWatch::NamesThereAre(
    const std::vector<std::string>& jobs) {
  std::set<std::string> names;
  for (const std::string& job : jobs) names.insert(item::InputName(job));
  MUSTER_ASSIGN_OR_RETURN(
      const std::vector<queue::QueueInfo> page,
      store_->ListQueues(
          {.account = account_, .prefix = "", .after = "", .max_results = kQueuesPerPage}));
  for (const queue::QueueInfo& info : page) {
    if (!IsOfOne(jobs, info.id.name)) names.emplace(WithoutPartition(info.id.name));
  }
  return std::vector<std::string>(names.begin(), names.end());
}

absl::StatusOr<scaling::policy::QueueReading> QueueWatch::ReadOne(
    const std::string& name, const std::vector<queue::QueueId>& partitions) {
  scaling::policy::QueueReading reading;
  reading.queue = name;
  // The answer may or may not include work that arrives while the store answers. With a time from
  // before the request, such work counts twice at worst, until the next Look.
  reading.at = clock_->Now();
  for (const queue::QueueId& id : partitions) {
    const absl::StatusOr<queue::QueueStats> stats = store_->Stats(id);
    if (absl::IsNotFound(stats.status())) {
      listed_at_ = -absl::InfiniteDuration();  // the queue was deleted: list again
      continue;
    }
    if (!stats.ok()) return base::Annotate(stats.status(), id.ToString());
    AddTo(*stats, &reading);
  }
  return reading;
}

std::vector<scaling::policy::QueueReading> QueueWatch::readings() const {
  base::MutexLock lock(&mu_);
  if (clock_->Monotonic() - read_at_ > kReadingLifetime) return {};
  return readings_;
}

absl::Status QueueWatch::trouble() const {
  base::MutexLock lock(&mu_);
  const absl::Duration going_on = clock_->Monotonic() - looking_since_;
  if (going_on > kReadingLifetime) {
    return absl::UnavailableError(absl::StrCat("the queues' statistics have not come for ",
                                               scaling::policy::ShowDuration(going_on)));
  }
  return trouble_;
}

absl::Status QueueWatch::unknown() const {
  base::MutexLock lock(&mu_);
  if (clock_->Monotonic() - unknown_since_ < kUnknownNameGrace) return absl::OkStatus();
  return absl::NotFoundError(unknown_);
}

void QueueWatch::OnTrigger(absl::string_view queue) {
  base::MutexLock lock(&mu_);
  const auto known = partitions_.find(std::string(NameOf(queue, names_)));
  const bool is_known = known != partitions_.end() &&
                        std::any_of(known->second.begin(), known->second.end(),
                                    [&](const queue::QueueId& id) { return id.name == queue; });
  if (!is_known) shall_list_ = true;
}

}  // namespace muster::scaling_agent
