// SPDX-License-Identifier: Apache-2.0

// muster batch retry: what failed of a batch, once more.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "cli/batch/commands.h"
#include "cli/batch/conclusion.h"
#include "cli/batch/follower.h"
#include "cli/batch/outcome.h"
#include "cli/batch/wait_limit.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/server/mesh_client.h"
#include "cli/server/options.h"
#include "muster/args/option.h"
#include "muster/base/status.h"
#include "muster/os/stop_signals.h"
#include "muster/v1/batch_service.grpc.pb.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

// The initiator reads all items that have one of up to 50,000 transactions.
constexpr absl::Duration kRetryTimeout = absl::Minutes(10);
// What one call may name.
constexpr size_t kMaxNamed = 1000;

struct RetryOptions {
  CommonOptions common;
  uint64_t batch = 0;
  std::vector<int64_t> lines;
  std::vector<uint64_t> items;
  bool all = false;
  bool rejections_only = false;
  bool wait = false;
  bool quiet = false;
  absl::Duration wait_timeout = absl::InfiniteDuration();
};

// The calls that name all lines and items, or one that asks for all.
std::vector<v1::RetryRejectionsRequest> RequestsOf(const RetryOptions& options) {
  v1::RetryRejectionsRequest request;
  request.set_batch(options.batch);
  std::vector<v1::RetryRejectionsRequest> requests;
  for (size_t begin = 0; begin < options.lines.size(); begin += kMaxNamed) {
    const auto some = absl::MakeConstSpan(options.lines).subspan(begin, kMaxNamed);
    requests.emplace_back(request).mutable_lines()->Add(some.begin(), some.end());
  }
  for (size_t begin = 0; begin < options.items.size(); begin += kMaxNamed) {
    const auto some = absl::MakeConstSpan(options.items).subspan(begin, kMaxNamed);
    requests.emplace_back(request).mutable_items()->Add(some.begin(), some.end());
  }
  if (!options.all) return requests;
  request.set_all(true);
  request.set_rejections_only(options.rejections_only);
  return {request};
}

void PrintRetry(const v1::RetriedBatch& retry, const RetryOptions& options,
                const Environment& environment) {
  const bool one = retry.transactions() == 1;
  *environment.out << "batch " << retry.batch() << " retries "
                   << Grouped(static_cast<uint64_t>(retry.transactions())) << " transaction"
                   << (one ? "" : "s") << " of batch " << options.batch
                   << (retry.is_new() ? "" : ", submitted before") << "\n";
  if (!options.wait) *environment.out << "watch it: muster batch watch " << retry.batch() << "\n";
}

// Asks for the retries, batch by batch, and shows each as soon as it is there, unless it is for a
// program. After an error, `retries` has those that were there before it.
absl::Status Ask(const MeshClient& mesh, const RetryOptions& options,
                 const Environment& environment, std::vector<v1::RetriedBatch>* retries) {
  for (const v1::RetryRejectionsRequest& request : RequestsOf(options)) {
    bool more = true;
    while (more) {
      MUSTER_ASSIGN_OR_RETURN(
          const auto response,
          mesh.CallFor(&v1::BatchService::Stub::RetryRejections, request, kRetryTimeout));
      for (const v1::RetriedBatch& retry : response.retries()) {
        retries->push_back(retry);
        if (options.common.output == OutputFormat::kTable) {
          PrintRetry(retry, options, environment);
        }
      }
      more = options.all && response.more();
    }
  }
  return absl::OkStatus();
}

ordered_json RetryJson(const v1::RetriedBatch& retry) {
  return {
      {"batch", retry.batch()}, {"transactions", retry.transactions()}, {"is_new", retry.is_new()}};
}

// Waits for a batch, and notes its exit code if it is the highest. nullopt: it took too long.
absl::StatusOr<std::optional<Outcome>> Await(uint64_t batch, MeshClient* mesh,
                                             const os::StopSignals& signals, const WaitLimit& limit,
                                             bool quiet, const Environment& environment) {
  Follower follower(mesh, &environment);
  follower.Begin(batch);
  std::unique_ptr<ProgressBar> bar;
  if (!quiet && environment.err_is_terminal) bar = BarOf(follower, environment);
  const auto end = follower.AwaitEnd(limit.left(), signals.token());
  if (bar != nullptr) bar->Finish();
  MUSTER_ASSIGN_OR_RETURN(std::optional<Outcome> outcome, Ended(end, environment));
  if (!outcome.has_value()) return outcome;
  const auto job = JobOf(*mesh, outcome->job);
  const job::Tolerance tolerate = job.has_value() ? job->tolerate : job::Tolerance();
  *environment.err << outcome->Losses(tolerate, "");
  environment.exit_code = std::max(environment.exit_code, outcome->Code(tolerate));
  return outcome;
}

// Waits for the batches one after the other, and adds what became of each to its `json`.
absl::Status AwaitAll(MeshClient* mesh, const os::StopSignals& signals, const WaitLimit& limit,
                      const RetryOptions& options, const Environment& environment,
                      ordered_json* json) {
  for (ordered_json& one : *json) {
    MUSTER_ASSIGN_OR_RETURN(
        const std::optional<Outcome> outcome,
        Await(one["batch"].get<uint64_t>(), mesh, signals, limit, options.quiet, environment));
    if (!outcome.has_value()) return absl::OkStatus();
    one["outcome"] = outcome->Json();
    if (options.common.output == OutputFormat::kTable) {
      *environment.out << outcome->Text() << WhereToRead(outcome->batch);
    }
  }
  return absl::OkStatus();
}

absl::Status Retry(const RetryOptions& options, const Environment& environment) {
  if ((options.lines.empty() && options.items.empty()) != options.all) {
    return absl::InvalidArgumentError(
        "give --line, --item, or --all for all that the batch has rejected and given up");
  }
  const os::StopSignals signals(OnStop("muster: stopped; the same command goes on"));
  MUSTER_ASSIGN_OR_RETURN(const auto mesh,
                          MeshClient::Open(options.common, "what failed is retried on a server"));
  const WaitLimit limit(options.wait_timeout, mesh.get(), environment.clock, signals.token());
  std::vector<v1::RetriedBatch> retries;
  absl::Status status = Ask(*mesh, options, environment, &retries);
  const bool is_late = absl::IsDeadlineExceeded(status) && limit.is_over();
  if (is_late) {
    status = TimedOut(absl::StrCat(kTimeIsUp, "; the same command again goes on"), environment);
  }
  ordered_json json = {{"batch", options.batch}, {"retries", ordered_json::array()}};
  for (const v1::RetriedBatch& retry : retries) json["retries"].push_back(RetryJson(retry));
  if (status.ok() && options.wait && !is_late) {
    status = AwaitAll(mesh.get(), signals, limit, options, environment, &json["retries"]);
  }
  // A program learns also of those that were there before an error.
  if (status.ok() || !retries.empty()) PrintIfStructured(json, options.common, environment);
  return status;
}

}  // namespace

void AddRetry(CLI::App* batch, const Environment& environment) {
  const auto options = std::make_shared<RetryOptions>();
  const auto retry = [](const RetryOptions& given, const Environment& with) {
    return WithListHint(Retry(given, with), "muster batch list");
  };
  CLI::App* const command =
      AddServerVerb(batch,
                    {"retry",
                     "Submit what a complete batch has rejected and given up once more, as a new "
                     "batch of the job as it is now; each record is retried once"},
                    options, retry, environment);
  args::Add(command, "BATCH", &options->batch, "Its number").Required();
  const args::Option lines =
      args::Add(command, "--line", &options->lines,
                "A line at which a rejected record begins, as `muster batch rejections` has "
                "it; repeatable")
          .Check(args::PositiveNumber())
          .TypeName("N")
          .Repeatable();
  const args::Option items =
      args::Add(command, "--item", &options->items,
                "An item that was given up, as `muster batch dead-letters` has it: all of "
                "its records; repeatable")
          .TypeName("N")
          .Repeatable();
  const args::Option all =
      args::AddFlag(command, "--all", &options->all, "All that was not retried yet")
          .Excludes(lines)
          .Excludes(items);
  args::AddFlag(command, "--rejections-only", &options->rejections_only,
                "Of all: leave items that were given up to `muster queue redrive`")
      .Needs(all);
  args::AddFlag(command, "--wait", &options->wait, "Wait until the new batches are complete");
  args::AddFlag(command, "-q,--quiet", &options->quiet, "No progress on stderr");
  AddWaitTimeout(command, &options->wait_timeout);
}

}  // namespace muster::cli
