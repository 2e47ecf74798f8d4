// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/work_checkup.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/output/format.h"
#include "cli/queue/queue_admin.h"
#include "cli/server/mesh_client.h"
#include "muster/base/proto_time.h"
#include "muster/base/text.h"
#include "muster/handler/health_troubles.h"
#include "muster/item/held_key_admin.h"
#include "muster/item/queue_names.h"
#include "muster/job/job_file.h"
#include "muster/scaling/rules/rules.h"
#include "muster/v1/batch_service.grpc.pb.h"
#include "muster/v1/schedule_service.grpc.pb.h"

namespace muster::cli {

namespace {

// Of a cause: a finding is one line.
constexpr size_t kMaxCauseBytes = 200;
// Of a batch that the report does not prove, with what to do about it.
constexpr size_t kMaxProblemBytes = 400;
// The most that a service answers.
constexpr int kMaxListedBatches = 1000;

Finding NotSeen(const std::string& what, const absl::Status& status) {
  return {Health::kWrong, what, absl::StrCat("cannot be looked at: ", status.message()),
          absl::IsDeadlineExceeded(status) ? "see the initiator's log; --timeout gives it longer"
                                           : "see the initiator's log"};
}

// What keeps a processor from working for a job.
struct HealthIssue {
  std::string processor;
  std::string trouble;
};
using Troubles = std::map<std::string, std::vector<HealthIssue>>;  // by job

// The processors that work for the jobs.
struct Workforce {
  HandlerInventory handlers;
  Troubles troubles;
  std::string account;
  const ScalingTargets& started;

  // The target with replicas that would work for the job; null: no agent starts any.
  const v1::ScalingTarget* StarterFor(const std::string& job) const {
    const std::string queue = item::InputQueue(account, job, 0).name;
    for (const v1::ScalingTarget& target : started) {
      for (const std::string& name : target.queues()) {
        if (scaling::rules::MatchesQueue(name, queue)) return &target;
      }
    }
    return nullptr;
  }
};

// Processors that wait for a release: their jobs wait with them, unless others work.
void CheckParked(const std::vector<v1::Instance>& instances, Findings* findings) {
  for (const v1::Instance& instance : instances) {
    const v1::Standby& standby = instance.heartbeat().standby();
    if (instance.leaving() || standby.release().empty() || standby.has_left()) continue;
    findings->push_back(
        {Health::kWarning, absl::StrCat("processor ", instance.info().instance()),
         absl::StrCat("is parked since ", Rfc3339(base::FromProto(standby.parked())),
                      ": it was started to wait for release ", standby.release()),
         absl::StrCat("`muster release ", standby.release(), "` lets it go")});
  }
}

Troubles HealthTroublesOf(const std::vector<v1::Instance>& instances) {
  Troubles troubles;
  for (const v1::Instance& instance : instances) {
    if (instance.leaving() || instance.info().role() != v1::ROLE_PROCESSOR) continue;
    for (const v1::JobLoad& load : instance.heartbeat().jobs()) {
      if (load.trouble().empty()) continue;
      troubles[load.job()].push_back({instance.info().instance(), load.trouble()});
    }
  }
  return troubles;
}

// The handler version that the job file asks for; empty: any that processors have.
std::string WantedVersion(const v1::Job& job) {
  const auto definition = job::ParseJob(job.definition(), job.name());
  if (!definition.ok()) return "";
  const auto* const command = std::get_if<job::CommandHandlerSpec>(&definition->handler);
  return command == nullptr ? "" : command->version;
}

// The finding for a job that no processor works for.
Finding CheckIdleJob(const std::string& what, const v1::ScalingTarget* starter) {
  if (starter == nullptr) {
    return {Health::kWrong, what, "no processor has its handler",
            "start a processor with it; the logs of the running processors say why they lack it"};
  }
  return {Health::kOk, what,
          absl::StrCat("no processor has its handler now; scaling target ", starter->target(),
                       " starts them when there is work")};
}

Finding CheckVersions(const v1::Job& job, const Workforce& workforce) {
  const std::string what = absl::StrCat("job ", job.name());
  const std::set<std::string> versions = workforce.handlers.VersionsOf(job.name());
  if (versions.empty()) return CheckIdleJob(what, workforce.StarterFor(job.name()));
  const std::string wanted = WantedVersion(job);
  const std::string there = absl::StrJoin(versions, ", ");
  if (!wanted.empty() && !versions.contains(wanted)) {
    return {Health::kWrong, what,
            absl::StrCat("processors have handler version ", there, ", not ", wanted),
            "give processors that version"};
  }
  if (versions.size() > 1) {
    return {Health::kWarning, what, absl::StrCat("processors have handler versions ", there),
            "fine during an upgrade; otherwise give all processors one version"};
  }
  return {Health::kOk, what, absl::StrCat("processors have handler version ", there)};
}

// If a processor reports a trouble, the trouble is the finding: a healthy handler elsewhere is no
// news, and a missing handler is explained by the trouble.
void CheckJob(const v1::Job& job, const Workforce& workforce, Findings* findings) {
  const auto troubles = workforce.troubles.find(job.name());
  if (troubles == workforce.troubles.end()) {
    return findings->push_back(CheckVersions(job, workforce));
  }
  for (const HealthIssue& one : troubles->second) {
    const bool takes_items = handler::TakesItems(one.trouble);
    findings->push_back(
        {Health::kWrong, absl::StrCat("job ", job.name()),
         absl::StrCat("processor ", one.processor,
                      takes_items ? " works for it, but " : " cannot work for it: ", one.trouble),
         takes_items ? "this is over once its program has answered for an item"
                     : "once that is mended, the processor starts to work within a minute"});
  }
  if (workforce.handlers.VersionsOf(job.name()).empty()) return;
  Finding versions = CheckVersions(job, workforce);
  if (versions.health != Health::kOk) findings->push_back(std::move(versions));
}

// Whether a batch of the job is not over. An error: it may have one.
bool HasOpenBatch(const MeshClient& mesh, const std::string& job) {
  v1::ListBatchesRequest request;
  request.set_job(job);
  request.add_states(v1::BATCH_STATE_OPEN);
  request.add_states(v1::BATCH_STATE_SEALED);
  request.set_calls(true);
  request.set_page_size(1);
  const auto listed = mesh.Call(&v1::BatchService::Stub::ListBatches, request);
  return !listed.ok() || !listed->batches().empty();
}

// So long after a job was applied, its user is still setting it up: what it lacks is wrong.
constexpr absl::Duration kSettingUp = absl::Hours(1);

// So long after a job was applied, processors may not have told yet that they have its handler, or
// another version of it: they send a heartbeat every two seconds, and start programs before.
constexpr absl::Duration kUntilHeard = absl::Seconds(6);

// What the heartbeats of before the change say is not known to be wrong.
void Await(const v1::Job& job, Findings* findings) {
  for (Finding& finding : *findings) {
    if (finding.health != Health::kWrong) continue;
    finding = {Health::kUnknown, absl::StrCat("job ", job.name()),
               absl::StrCat("was applied just now; as yet, ", finding.found), "ask again"};
  }
}

// A job that nothing can work for, and that nothing waits for, such as one of a tutorial, harms
// nothing: it must not keep the doctor from saying that the mesh is sound.
void Soften(const v1::Job& job, Findings* findings) {
  for (Finding& finding : *findings) {
    if (finding.health != Health::kWrong) continue;
    finding.health = Health::kWarning;
    finding.found += "; no batch of it waits";
    finding.to_do = absl::StrCat(
        "give a processor its handler, or remove the job: `muster job "
        "delete ",
        job.name(), "`");
  }
}

void CheckJobs(const MeshClient& mesh, const Workforce& workforce, absl::Time now,
               Findings* findings) {
  const absl::StatusOr<std::vector<v1::Job>> jobs = mesh.Jobs();
  if (!jobs.ok()) return findings->push_back(NotSeen("jobs", jobs.status()));
  for (const v1::Job& job : *jobs) {
    Findings found;
    CheckJob(job, workforce, &found);
    const bool any_wrong = std::any_of(found.begin(), found.end(), [](const Finding& finding) {
      return finding.health == Health::kWrong;
    });
    const bool has_trouble = workforce.troubles.count(job.name()) > 0;
    const absl::Duration age = absl::AbsDuration(now - base::FromProto(job.updated()));
    if (!has_trouble && age < kUntilHeard) Await(job, &found);
    const bool is_idle = workforce.handlers.VersionsOf(job.name()).empty() &&
                         now - base::FromProto(job.updated()) > kSettingUp;
    if (any_wrong && is_idle && !HasOpenBatch(mesh, job.name())) Soften(job, &found);
    findings->insert(findings->end(), found.begin(), found.end());
  }
}

// Why the oldest poison message of the queue was given up; empty: it cannot be read.
std::string OldestCause(QueueAdmin& admin, const queue::QueueId& id) {
  const absl::StatusOr<std::vector<queue::PoisonMessage>> oldest = admin.Poison(id, "", 1);
  if (!oldest.ok() || oldest->empty() || oldest->front().cause.reason.empty()) return "";
  return absl::StrCat(", the oldest: ",
                      base::Printable(oldest->front().cause.reason, kMaxCauseBytes));
}

// What waits behind the poison of an input queue, and what to do about both.
Finding AboutPoison(QueueAdmin& admin, const QueueCounts& queue) {
  const std::string name = queue.id.ToString();
  const auto poison = static_cast<uint64_t>(queue.stats.poison);
  std::string what = absl::StrCat(Counted(poison, "message"), poison == 1 ? " was" : " were",
                                  " given up", OldestCause(admin, queue.id));
  // An older initiator holds no keys.
  const absl::StatusOr<std::vector<item::HeldKeyView>> held = admin.Held(queue.id);
  if (!held.ok() || held->empty()) {
    return {Health::kWarning, absl::StrCat("queue ", name), what,
            absl::StrCat("`muster queue poison ", name,
                         "` says why; `muster queue redrive` tries them again, and after a new "
                         "version `muster batch retry`")};
  }
  absl::StrAppend(&what, "; ", Counted(held->size(), "key"), held->size() == 1 ? " is" : " are",
                  " held behind ", held->size() == 1 ? "it" : "them");
  return {Health::kWarning, absl::StrCat("queue ", name), what,
          absl::StrCat("`muster queue held ", name,
                       "` says why; `muster queue redrive --held` tries them again, `muster queue "
                       "release` goes on without them")};
}

void CheckQueues(const CommonOptions& options, const std::string& account,
                 const Environment& environment, Findings* findings) {
  const absl::StatusOr<std::unique_ptr<QueueAdmin>> admin = OpenQueueAdmin(options, environment);
  if (!admin.ok()) return findings->push_back(NotSeen("queues", admin.status()));
  const absl::StatusOr<std::vector<QueueCounts>> queues = (*admin)->List(account);
  if (!queues.ok()) return findings->push_back(NotSeen("queues", queues.status()));
  bool any = false;
  for (const QueueCounts& queue : *queues) {
    if (queue.stats.poison == 0) continue;
    any = true;
    findings->push_back(AboutPoison(**admin, queue));
  }
  if (any) return;
  findings->push_back(
      {Health::kOk, "queues", absl::StrCat(queues->size(), " of ", account, ", none has poison")});
}

// How bad it is that a batch waits. What it waits for, the initiator says.
Health HealthOf(const v1::BatchStatus& batch, const Workforce& workforce) {
  if (batch.held_back_items() > 0) return Health::kOk;
  const v1::ScalingTarget* const starter = workforce.StarterFor(batch.job());
  const bool lacks_processor = workforce.handlers.VersionsOf(batch.job()).empty();
  if (!lacks_processor || starter == nullptr) return Health::kWrong;
  if (CannotStart(*starter)) return Health::kWrong;
  const bool is_starting = starter->replicas().ready() == 0 && starter->decision().replicas() > 0;
  return is_starting ? Health::kOk : Health::kWarning;
}

void CheckBatch(const v1::BatchStatus& batch, const Workforce& workforce, Findings* findings) {
  const bool runs =
      batch.state() == v1::BATCH_STATE_OPEN || batch.state() == v1::BATCH_STATE_SEALED;
  if (!runs || batch.problem().empty()) return;
  const Health health = HealthOf(batch, workforce);
  findings->push_back({health, absl::StrCat("batch ", batch.batch()),
                       absl::StrCat("waits: ", batch.problem()),
                       health == Health::kOk ? "" : "it goes on once that is mended"});
}

// The newest batches that are complete, as many as an answer has: whether the report proves them.
void CheckCompleteBatches(const MeshClient& mesh, Findings* findings) {
  v1::ListBatchesRequest request;
  request.add_states(v1::BATCH_STATE_COMPLETE);
  request.set_calls(true);
  request.set_page_size(kMaxListedBatches);
  const auto listed = mesh.Call(&v1::BatchService::Stub::ListBatches, request);
  if (!listed.ok()) return;  // that batches cannot be listed is a finding already
  for (const v1::BatchStatus& batch : listed->batches()) {
    if (batch.problem().empty()) continue;
    findings->push_back({Health::kWrong, absl::StrCat("batch ", batch.batch()),
                         base::Printable(batch.problem(), kMaxProblemBytes),
                         "until then, its report is not exact"});
  }
}

// Of batches that cannot be removed, often for one cause.
constexpr int kMaxNamedBatches = 10;

// Batches of which retention cannot remove something. An older initiator takes the request for one
// of its newest batches, which have no such problem.
void CheckRemovals(const MeshClient& mesh, Findings* findings) {
  v1::ListBatchesRequest request;
  request.set_removal_problem(true);
  request.set_calls(true);
  request.set_page_size(kMaxListedBatches);
  const auto listed = mesh.Call(&v1::BatchService::Stub::ListBatches, request);
  if (!listed.ok()) return;  // likewise
  uint64_t more = 0;
  int named = 0;
  for (const v1::BatchStatus& batch : listed->batches()) {
    if (batch.removal_problem().empty()) continue;
    if (++named > kMaxNamedBatches) {
      ++more;
      continue;
    }
    findings->push_back(
        {Health::kWarning, absl::StrCat("batch ", batch.batch()),
         absl::StrCat("its retention cannot remove what is due, since ",
                      Rfc3339(base::FromProto(batch.removal_problem_since())), ": ",
                      base::Printable(batch.removal_problem(), kMaxProblemBytes)),
         absl::StrCat("mend that: it is tried again within an hour; `muster batch delete ",
                      batch.batch(), "` tries at once, and deletes all of the batch")});
  }
  if (more == 0) return;
  findings->push_back({Health::kWarning, "batches",
                       absl::StrCat("retention cannot remove what is due of ", more, " more"),
                       "`muster batch get` says why"});
}

void CheckBatches(const MeshClient& mesh, const Workforce& workforce, Findings* findings) {
  v1::ListBatchesRequest request;
  request.add_states(v1::BATCH_STATE_OPEN);
  request.add_states(v1::BATCH_STATE_SEALED);
  request.set_calls(true);
  const size_t before = findings->size();
  const auto check = [&](const v1::ListBatchesResponse& page) {
    for (const v1::BatchStatus& batch : page.batches()) CheckBatch(batch, workforce, findings);
  };
  const absl::Status listed =
      mesh.CallForPages(&v1::BatchService::Stub::ListBatches, request, check);
  if (!listed.ok()) return findings->push_back(NotSeen("batches", listed));
  CheckCompleteBatches(mesh, findings);
  CheckRemovals(mesh, findings);
  if (findings->size() == before) {
    findings->push_back({Health::kOk, "batches", "none waits with a problem"});
  }
}

// An initiator of an older muster has no schedules.
void CheckSchedules(const MeshClient& mesh, Findings* findings) {
  int sound = 0;
  const auto look = [&](const v1::ListSchedulesResponse& page) {
    for (const v1::Schedule& schedule : page.schedules()) {
      if (schedule.problem().empty()) {
        ++sound;
        continue;
      }
      const std::string& name = schedule.spec().name();
      findings->push_back(
          {Health::kWarning, absl::StrCat("schedule ", name),
           base::Printable(schedule.problem(), kMaxCauseBytes),
           absl::StrCat("`muster schedule get ", name, "` says since when, and what comes next")});
    }
  };
  const absl::Status listed = mesh.CallForPages(&v1::ScheduleService::Stub::ListSchedules,
                                                v1::ListSchedulesRequest(), look);
  if (absl::IsUnimplemented(listed)) return;
  if (!listed.ok()) {
    findings->push_back(NotSeen("schedules", listed));
  } else if (sound > 0) {
    findings->push_back({Health::kOk, "schedules",
                         absl::StrCat("nothing is wrong with ",
                                      Counted(static_cast<uint64_t>(sound), "schedule"))});
  }
}

}  // namespace

void CheckWork(const WorkCheck& check, const MeshClient& mesh, Findings* findings) {
  const Workforce workforce{HandlerInventory(*check.instances), HealthTroublesOf(*check.instances),
                            check.account, *check.started};
  CheckParked(*check.instances, findings);
  // Each may take as long as a question may.
  using Look = std::function<void(Findings*)>;
  const std::vector<Look> looks = {
      [&](Findings* found) { CheckJobs(mesh, workforce, check.environment->clock->Now(), found); },
      [&](Findings* found) {
        CheckQueues(*check.options, check.account, *check.environment, found);
      },
      [&](Findings* found) { CheckBatches(mesh, workforce, found); },
      [&](Findings* found) { CheckSchedules(mesh, found); }};
  const auto look = [](const Look& one) {
    Findings found;
    one(&found);
    return found;
  };
  for (const Findings& found : ParallelMap(looks, look)) {
    findings->insert(findings->end(), found.begin(), found.end());
  }
}

}  // namespace muster::cli
