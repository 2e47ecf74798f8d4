// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/submit/handler_versions.h"

#include <algorithm>
#include <map>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/v1/heartbeat.pb.h"

namespace muster::initiator::submit {
namespace {

// A processor that begins to work for a job says so with its next heartbeat. One interval is for
// the beginning, and one for the heartbeat.
absl::Duration TimeToSpeak() { return 2 * bus::kHeartbeatInterval; }

std::vector<bus::RosterEntry> ProcessorsThere(bus::Roster* roster) {
  std::vector<bus::RosterEntry> processors = roster->List(v1::ROLE_PROCESSOR);
  std::erase_if(processors, [](const bus::RosterEntry& entry) { return entry.leaving; });
  return processors;
}

// Empty: no processor has a version.
std::string MostFrequentVersion(const std::vector<bus::RosterEntry>& processors,
                                const std::string& job) {
  std::map<std::string, int> counts;
  for (const bus::RosterEntry& entry : processors) {
    for (const v1::HandlerVersion& handler : entry.heartbeat.instance().handlers()) {
      if (handler.job() == job) ++counts[handler.version()];
    }
  }
  if (counts.empty()) return "";
  const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
  return std::max_element(counts.begin(), counts.end(), fewer)->first;
}

}  // namespace

// While no processor is there, the version seen last is no answer: it may have been replaced
// meanwhile, and never come back.
absl::StatusOr<std::string> HandlerVersions::Current(const job::JobDefinition& job) {
  if (const auto* command = std::get_if<job::CommandHandlerSpec>(&job.handler)) {
    return command->version;
  }
  if (const auto* grpc = std::get_if<job::GrpcHandlerSpec>(&job.handler)) return grpc->version;
  std::string version = MostFrequentVersion(ProcessorsThere(roster_), job.name);
  if (!version.empty()) return version;
  MUSTER_ASSIGN_OR_RETURN(const bool all_have_spoken, HaveAllSpoken(job.name));
  if (all_have_spoken) return version;
  return absl::UnavailableError(
      absl::StrCat("it is not known yet which processors have the handler of job '", job.name,
                   "': try again, or say which handler version the batch is for"));
}

bool HandlerVersions::NoneFits(const std::string& job, const std::string& version) {
  bool any = false;
  for (const bus::RosterEntry& entry : ProcessorsThere(roster_)) {
    for (const v1::HandlerVersion& handler : entry.heartbeat.instance().handlers()) {
      if (handler.job() != job) continue;
      if (handler.version() == version) return false;
      any = true;
    }
  }
  return any;
}

absl::StatusOr<bool> HandlerVersions::HaveAllSpoken(const std::string& job) {
  if (clock_->Monotonic() - began_ < TimeToSpeak()) return false;
  if (ProcessorsThere(roster_).empty()) return true;
  MUSTER_ASSIGN_OR_RETURN(const job::JobEntry entry, jobs_->Get(job));
  const absl::Duration age = clock_->Now() - entry.updated;
  // Below zero: a clock that is ahead of this one stamped the job. Do not wait for this one to
  // catch up.
  return age < absl::ZeroDuration() || age >= TimeToSpeak();
}

}  // namespace muster::initiator::submit
