// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/api/schedule_service.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "muster/base/names.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/input/byte_source.h"
#include "muster/rpc/paging.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "muster/schedule/calendar.h"
#include "muster/schedule/limits.h"
#include "muster/schedule/plan.h"
#include "services/initiator/batch/source.h"
#include "services/initiator/submit/submissions.h"

namespace muster::initiator::api {
namespace {

using muster::schedule::Calendar;
using muster::schedule::StoredSchedule;

constexpr size_t kMaxRunIdBytes = 64;

absl::Status CheckRunId(absl::string_view id) {
  const bool is_one = !id.empty() && id.size() <= kMaxRunIdBytes &&
                      std::all_of(id.begin(), id.end(), base::IsNameCharacter);
  if (is_one) return absl::OkStatus();
  return rpc::BadField("run_id",
                       absl::StrCat("must be 1 to ", kMaxRunIdBytes, " letters, digits and ._-"));
}

v1::ScheduleEntry EntryOf(const v1::ScheduleRecord& record) {
  v1::ScheduleEntry entry;
  entry.set_name(record.spec().name());
  entry.set_id(record.id());
  return entry;
}

// All batches of the schedule consist of `content`: one that the job cannot read would make each of
// them fail.
absl::Status CheckReadable(absl::string_view content, const job::JobDefinition& job) {
  const absl::Status fits = batch::CheckNewContent(input::TextSource(content), job.input);
  if (!absl::IsInvalidArgument(fits)) return fits;
  return rpc::BadField("content", fits.message());
}

}  // namespace

void ScheduleService::Fill(const v1::ScheduleRecord& record, v1::Schedule* schedule) const {
  *schedule->mutable_spec() = record.spec();
  schedule->set_id(absl::BytesToHexString(record.id()));
  schedule->set_revision(muster::schedule::RevisionOf(record));
  *schedule->mutable_created() = record.created();
  schedule->set_content_bytes(record.content_bytes());
  schedule->set_paused(record.paused());
  if (record.has_last()) *schedule->mutable_last() = record.last();
  schedule->set_last_batch(record.last_batch());
  schedule->set_problem(record.problem());
  if (record.has_problem_since()) *schedule->mutable_problem_since() = record.problem_since();
  schedule->set_submitted(record.submitted());
  schedule->set_missed(record.missed());
  schedule->set_failed(record.failed());
  if (record.has_ended()) *schedule->mutable_ended() = record.ended();
  if (record.attempt().waits()) *schedule->mutable_retrying() = record.attempt().occurrence();
  const absl::StatusOr<Calendar> calendar = Calendar::Of(record.spec());
  if (!calendar.ok()) {  // of another initiator, whose host has this zone
    schedule->set_problem(std::string(calendar.status().message()));
    return;
  }
  if (const auto next = NextOf(record, *calendar, deps_.clock->Now()); next.has_value()) {
    *schedule->mutable_next() = base::ToProto(*next);
  }
}

absl::StatusOr<job::JobDefinition> ScheduleService::Check(const v1::ScheduleSpec& spec) const {
  MUSTER_RETURN_IF_ERROR(muster::schedule::CheckSpec(spec));
  v1::ScheduleRecord draft;
  *draft.mutable_spec() = spec;
  MUSTER_RETURN_IF_ERROR(
      submit::CheckHeader(schedule::HeaderOf(draft, /*request_id=*/"any"), "spec"));
  return deps_.jobs->GetDefinition(spec.job());
}

absl::Status ScheduleService::CheckContentFor(const v1::ScheduleSpec& spec,
                                              const job::JobDefinition& job) const {
  const absl::StatusOr<StoredSchedule> stored = deps_.store->Find(spec.name());
  if (absl::IsNotFound(stored.status())) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(stored.status());
  const absl::StatusOr<std::string> content = deps_.store->Content(stored->record);
  // Each occurrence judges it again; a store that is away keeps no schedule from being changed.
  return content.ok() ? CheckReadable(*content, job) : absl::OkStatus();
}

grpc::Status ScheduleService::CreateSchedule(grpc::ServerContext* context,
                                             const v1::CreateScheduleRequest* request,
                                             v1::CreateScheduleResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    const v1::ScheduleSpec& spec = request->spec();
    MUSTER_RETURN_IF_ERROR(muster::schedule::CheckContent(request->content()));
    MUSTER_ASSIGN_OR_RETURN(const job::JobDefinition job, Check(spec));
    MUSTER_RETURN_IF_ERROR(CheckReadable(request->content(), job));
    const bool is_past = spec.has_at() && base::FromProto(spec.at()) <= deps_.clock->Now();
    // A call that is repeated may come after the time.
    if (is_past && absl::IsNotFound(deps_.store->Find(spec.name()).status())) {
      return rpc::BadField("spec.at",
                           absl::StrCat("is past: ", absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ",
                                                                      base::FromProto(spec.at()),
                                                                      absl::UTCTimeZone())));
    }
    MUSTER_ASSIGN_OR_RETURN(const v1::ScheduleRecord record,
                            deps_.store->Create(spec, request->content()));
    deps_.wake(spec.name());
    Fill(record, response->mutable_schedule());
    return absl::OkStatus();
  });
}

grpc::Status ScheduleService::UpdateSchedule(grpc::ServerContext* context,
                                             const v1::UpdateScheduleRequest* request,
                                             v1::UpdateScheduleResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const job::JobDefinition job, Check(request->spec()));
    MUSTER_RETURN_IF_ERROR(CheckContentFor(request->spec(), job));
    const std::optional<uint64_t> expected = request->has_expected_revision()
                                                 ? std::optional(request->expected_revision())
                                                 : std::nullopt;
    const absl::StatusOr<v1::ScheduleRecord> record =
        deps_.store->Update(request->spec(), expected);
    // Also after an error: the record may be written already.
    deps_.wake(request->spec().name());
    MUSTER_RETURN_IF_ERROR(record.status());
    Fill(*record, response->mutable_schedule());
    return absl::OkStatus();
  });
}

grpc::Status ScheduleService::GetSchedule(grpc::ServerContext* context,
                                          const v1::GetScheduleRequest* request,
                                          v1::GetScheduleResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const StoredSchedule stored, deps_.store->Find(request->name()));
    Fill(stored.record, response->mutable_schedule());
    return absl::OkStatus();
  });
}

grpc::Status ScheduleService::ListSchedules(grpc::ServerContext* context,
                                            const v1::ListSchedulesRequest* request,
                                            v1::ListSchedulesResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    const std::optional<int> page_size = rpc::PageSize(request->page_size());
    if (!page_size.has_value()) {
      return rpc::BadField("page_size", absl::StrCat("is not within 0 to ", rpc::kMaxPageSize));
    }
    // A token is the name of the last schedule of the page before.
    if (request->page_token().size() > muster::schedule::kMaxNameBytes) {
      return rpc::BadField("page_token", "is none of a response");
    }
    MUSTER_ASSIGN_OR_RETURN(const std::vector<v1::ScheduleEntry> entries, deps_.store->List());
    rpc::AnswerRoom room;
    for (const v1::ScheduleEntry& entry : entries) {
      if (entry.name() <= request->page_token()) continue;
      const absl::StatusOr<StoredSchedule> stored = deps_.store->Read(entry);
      if (absl::IsNotFound(stored.status())) continue;  // it is being made, or was deleted
      MUSTER_RETURN_IF_ERROR(stored.status());
      v1::Schedule schedule;
      Fill(stored->record, &schedule);
      if (response->schedules_size() == *page_size || !room.Take(schedule)) {
        response->set_next_page_token(response->schedules().rbegin()->spec().name());
        break;
      }
      *response->add_schedules() = std::move(schedule);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<v1::ScheduleRecord> ScheduleService::Change(
    const std::string& name, absl::FunctionRef<bool(v1::ScheduleRecord*)> change) {
  MUSTER_ASSIGN_OR_RETURN(const StoredSchedule stored, deps_.store->Find(name));
  MUSTER_ASSIGN_OR_RETURN(v1::ScheduleRecord record,
                          deps_.store->Change(EntryOf(stored.record), change));
  deps_.wake(name);
  return record;
}

grpc::Status ScheduleService::PauseSchedule(grpc::ServerContext* context,
                                            const v1::PauseScheduleRequest* request,
                                            v1::PauseScheduleResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const v1::ScheduleRecord record,
                            Change(request->name(), [](v1::ScheduleRecord* now) {
                              if (now->paused()) return false;
                              muster::schedule::Pause(now);
                              return true;
                            }));
    Fill(record, response->mutable_schedule());
    return absl::OkStatus();
  });
}

grpc::Status ScheduleService::ResumeSchedule(grpc::ServerContext* context,
                                             const v1::ResumeScheduleRequest* request,
                                             v1::ResumeScheduleResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const v1::ScheduleRecord record,
                            Change(request->name(), [this](v1::ScheduleRecord* paused) {
                              if (!paused->paused()) return false;
                              muster::schedule::Resume(deps_.clock->Now(), paused);
                              return true;
                            }));
    Fill(record, response->mutable_schedule());
    return absl::OkStatus();
  });
}

grpc::Status ScheduleService::RunSchedule(grpc::ServerContext* context,
                                          const v1::RunScheduleRequest* request,
                                          v1::RunScheduleResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_RETURN_IF_ERROR(CheckRunId(request->run_id()));
    MUSTER_ASSIGN_OR_RETURN(const StoredSchedule stored, deps_.store->Find(request->name()));
    MUSTER_ASSIGN_OR_RETURN(std::string content, deps_.store->Content(stored.record));
    const v1::SubmitHeader header = schedule::HeaderOf(
        stored.record, muster::schedule::RequestIdOf(stored.record, request->run_id()));
    MUSTER_ASSIGN_OR_RETURN(const uint64_t batch, deps_.submit(header, std::move(content)));
    response->set_batch(batch);
    MUSTER_ASSIGN_OR_RETURN(
        const v1::ScheduleRecord record,
        deps_.store->Change(EntryOf(stored.record), [batch](v1::ScheduleRecord* now) {
          now->set_last_batch(batch);
          return true;
        }));
    Fill(record, response->mutable_schedule());
    return absl::OkStatus();
  });
}

grpc::Status ScheduleService::DeleteSchedule(grpc::ServerContext* context,
                                             const v1::DeleteScheduleRequest* request,
                                             v1::DeleteScheduleResponse*) {
  return rpc::Answer(*context, [&] { return deps_.store->Delete(request->name()); });
}

}  // namespace muster::initiator::api
