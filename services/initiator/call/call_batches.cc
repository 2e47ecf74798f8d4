// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/call/call_batches.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/base/fingerprint.h"
#include "muster/base/output_proto.h"
#include "muster/base/random.h"
#include "muster/base/status.h"
#include "muster/item/labels.h"
#include "muster/job/job.h"
#include "muster/rpc/status.h"
#include "services/initiator/batch/source.h"

namespace muster::initiator::call {
namespace {

constexpr size_t kMaxRequestIdBytes = 512;
// Jobs change by hand, or by a deployment.
constexpr int kMaxRaces = 5;

ledger::Retention RetentionOf(const ledger::Retention& jobs, bool is_own) {
  // A retry finds the batch of its request id for as long as it is said to, also if its job keeps
  // less.
  if (is_own) return {kOwnRetention, kOwnRetention, kOwnRetention};
  constexpr absl::Duration kMost = kGatheredRetention;
  return {std::min(jobs.content, kMost), std::min(jobs.items, kMost), std::min(jobs.batch, kMost)};
}

// A disk that is full may be so after the batch was recorded: whether it is there, a restart
// decides.
absl::Status SaysNoMoreThanIsKnown(const absl::Status& refused) {
  if (!absl::IsResourceExhausted(refused)) return refused;
  const std::optional<rpc::ErrorReason> reason = rpc::Reason(refused);
  if (reason.has_value() && reason->reason == "DRAIN_TOO_LONG") return refused;
  return absl::UnavailableError(refused.message());
}

// Content that still grows.
struct Draft {
  explicit Draft(const std::string& header)
      : content(header), lines(std::count(header.begin(), header.end(), '\n')) {}

  void Add(size_t call, const std::string& record) {
    calls.emplace_back(call, lines + 1);
    absl::StrAppend(&content, record, "\n");
    lines += 1 + std::count(record.begin(), record.end(), '\n');
  }
  bool HasRoomFor(const std::string& record, size_t max_records) const {
    return calls.empty() || (calls.size() < max_records &&
                             content.size() + record.size() + 1 <= batch::kMaxInlineContentBytes);
  }

  std::string content;
  int64_t lines;
  std::vector<std::pair<size_t, int64_t>> calls;  // with their lines
};

}  // namespace

std::vector<absl::StatusOr<CallPlace>> CallBatches::Make(
    absl::Span<const v1::CallRequest* const> calls) {
  Places places(calls.size(), absl::UnavailableError(absl::StrCat("job '", calls.front()->job(),
                                                                  "' changes all the time")));
  std::vector<size_t> left(calls.size());
  std::iota(left.begin(), left.end(), 0);
  for (int race = 0; race < kMaxRaces && !left.empty(); ++race) {
    left = MakeOnce(calls, left, /*recall=*/race == 0, &places);
  }
  return places;
}

std::vector<size_t> CallBatches::MakeOnce(absl::Span<const v1::CallRequest* const> calls,
                                          const std::vector<size_t>& which, bool recall,
                                          Places* places) {
  const std::string& name = calls.front()->job();
  std::optional<job::JobDefinition> recalled;
  if (recall) recalled = jobs_->Recall(name);
  absl::StatusOr<job::JobDefinition> job =
      recalled.has_value() ? *recalled : jobs_->GetDefinition(name);
  if (!job.ok()) {
    for (const size_t call : which) (*places)[call] = job.status();
    return {};
  }
  const RecordForm form(job->input);
  const auto bare = std::make_shared<v1::CallAccepted>();
  const std::vector<base::OutputColumn> columns = job->schema().outputs;
  for (const base::OutputColumn& column : columns) {
    *bare->add_columns() = base::ToProto(column);
  }
  std::vector<size_t> changed;
  std::optional<Draft> draft;
  const auto make = [&] {
    if (!draft.has_value()) return;
    const absl::StatusOr<uint64_t> batch =
        Begin(*calls[draft->calls.front().first], job->revision, draft->content);
    for (const auto& [call, line] : draft->calls) {
      if (batch.ok()) {
        (*places)[call] = CallPlace{*batch, line, bare};
      } else if (submit::IsJobChanged(batch.status())) {
        changed.push_back(call);
      } else {
        (*places)[call] = batch.status();
      }
    }
    draft.reset();
  };
  for (const size_t i : which) {
    const absl::StatusOr<std::string> record = form.RecordIn(*calls[i]);
    if (!record.ok() && recalled.has_value()) {
      changed.push_back(i);  // perhaps it is a record of the job as it is now
      continue;
    }
    if (!record.ok()) {
      (*places)[i] = record.status();
      continue;
    }
    if (draft.has_value() && !draft->HasRoomFor(*record, form.max_records())) make();
    if (!draft.has_value()) draft.emplace(form.header());
    draft->Add(i, *record);
  }
  make();
  return changed;
}

absl::StatusOr<uint64_t> CallBatches::Begin(const v1::CallRequest& call,
                                            const std::string& revision,
                                            const std::string& content) {
  if (content.size() > batch::kMaxInlineContentBytes) {
    return rpc::BadField("record",
                         absl::StrCat("with the header of its job has ", content.size(),
                                      " bytes, and may have ", batch::kMaxInlineContentBytes));
  }
  const bool is_own = !call.request_id().empty();
  if (call.request_id().size() > kMaxRequestIdBytes) {
    return rpc::BadField("request_id",
                         absl::StrCat("must have at most ", kMaxRequestIdBytes, " bytes"));
  }
  MUSTER_RETURN_IF_ERROR(submit::CheckChosenId(call.request_id(), "request_id"));
  v1::SubmitHeader header;
  header.set_job(call.job());
  header.set_request_id(call.request_id());
  if (!is_own) {
    header.set_request_id(
        absl::StrFormat("call:%016x%016x", base::RandomSeed(), base::RandomSeed()));
  }
  (*header.mutable_labels())[item::kCallLabel] = is_own ? kOwn : kGathered;
  const base::Fingerprint128 hash = base::Fingerprint(content);
  const absl::StatusOr<ledger::Batch> batch = submissions_->Begin(
      header, batch::InlineContent{content, hash},
      {.retention = [is_own](const ledger::Retention& jobs) { return RetentionOf(jobs, is_own); },
       .revision = revision,
       .seal = true});
  if (!batch.ok()) return SaysNoMoreThanIsKnown(batch.status());
  if (batch->source_content != hash) {
    return submit::RequestIdReused(batch->number, "with other content");
  }
  return batch->number;
}

}  // namespace muster::initiator::call
