// SPDX-License-Identifier: Apache-2.0

// `muster batch quote`, and CountTransactions, which counts the transactions of an input.

#include "cli/scale/quote.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/scale/view.h"
#include "cli/server/mesh_client.h"
#include "cli/server/options.h"
#include "muster/args/command.h"
#include "muster/args/option.h"
#include "muster/base/proto_time.h"
#include "muster/base/quantity.h"
#include "muster/base/status.h"
#include "muster/input/byte_source.h"
#include "muster/input/content_kind.h"
#include "muster/input/slice_reader.h"
#include "muster/job/job.h"
#include "muster/job/job_file.h"
#include "muster/queue/cost.h"
#include "muster/scaling/policy/explain.h"
#include "muster/v1/batch_service.grpc.pb.h"

namespace muster::cli {

namespace {

using nlohmann::ordered_json;

constexpr double kSecondsOfAnHour = 3600;

// Counts as the initiator does when it splits: records that cannot be parsed count, too.
// InvalidArgument as CheckContentKind and ReadHeader; other errors are the source's. Reads the
// whole input once.
absl::StatusOr<int64_t> CountTransactions(const job::JobDefinition& job,
                                          const input::ByteSource& source) {
  MUSTER_RETURN_IF_ERROR(input::CheckContentKind(source, job.input));
  MUSTER_ASSIGN_OR_RETURN(const input::Header header, input::ReadHeader(source, job.input));
  const input::SliceLimits limits = {static_cast<uint32_t>(job.item.transactions),
                                     job.item.max_bytes};
  input::SliceReader slices(&source, job.input, limits, header.data);
  int64_t transactions = 0;
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const std::optional<input::Slice> slice, slices.Next());
    if (!slice.has_value()) return transactions;
    transactions += slice->transactions;
  }
}

std::string WhenCell(const google::protobuf::Timestamp& proto, absl::Time now) {
  const absl::Time time = base::FromProto(proto);
  return absl::StrCat(Rfc3339(time), " (", FromNow(time, now), ")");
}

std::string VerdictCell(const v1::QuoteResponse& quote) {
  if (quote.feasible()) return "yes";
  const std::string late =
      quote.has_late_by() ? absl::StrCat(DurationCell(quote.late_by()), " late") : "never done";
  if (quote.measured_batches() > 0) return absl::StrCat("no: ", late);
  const std::string needs = quote.needs() > 0
                                ? absl::StrCat("it needs ", quote.needs(), " replicas")
                                : "no number of replicas would do it";
  return absl::StrCat("no: ", late, "; ", needs);
}

}  // namespace

std::optional<double> QuoteView::Cost() const {
  if (!price.has_value() || quote.measured_batches() > 0) return std::nullopt;
  return quote.replica_seconds() / kSecondsOfAnHour * *price;
}

// Of replicas, the last batches say nothing.
void QuoteView::PrintReplicasTo(std::ostream& out) const {
  out << "replicas: " << quote.replicas_now() << " now, " << quote.replicas()
      << " for this, at most " << quote.max()
      << "\nreplica time: " << scaling::policy::ShowDuration(absl::Seconds(quote.replica_seconds()))
      << "\n";
  if (const std::optional<double> cost = Cost(); cost.has_value()) {
    out << "cost: " << queue::ShowDollars(*cost) << "\n";
  }
}

void QuoteView::PrintTo(std::ostream& out, absl::Time now) const {
  if (!job.empty()) out << "job: " << Printable(job) << "\n";
  if (!target.empty()) out << "target: " << Printable(target) << "\n";
  if (transactions.has_value()) {
    out << "transactions: " << Grouped(static_cast<uint64_t>(*transactions)) << "\n";
  }
  out << "items: " << Grouped(static_cast<uint64_t>(quote.items()))
      << "\nfeasible: " << VerdictCell(quote)
      << "\nfinish: " << (quote.has_finish() ? WhenCell(quote.finish(), now) : "never") << "\n";
  if (quote.has_deadline()) out << "deadline: " << WhenCell(quote.deadline(), now) << "\n";
  if (quote.measured_batches() == 0) PrintReplicasTo(out);
  if (quote.has_shortest_sla()) {
    out << "shortest promise: " << DurationCell(quote.shortest_sla()) << "\n";
  }
  out << "\n" << Printable(quote.explanation()) << "\n";
}

ordered_json QuoteView::Json() const {
  ordered_json json;
  if (!job.empty()) json["job"] = job;
  if (!target.empty()) json["target"] = target;
  if (transactions.has_value()) json["transactions"] = *transactions;
  json["items"] = quote.items();
  json["feasible"] = quote.feasible();
  json["finish"] = TimeJson(quote.has_finish(), quote.finish());
  json["deadline"] = TimeJson(quote.has_deadline(), quote.deadline());
  json["late_by_seconds"] = SecondsJson(quote.has_late_by(), quote.late_by());
  json["replicas_now"] = quote.replicas_now();
  json["replicas"] = quote.replicas();
  json["needs"] = quote.needs();
  json["max"] = quote.max();
  json["replica_seconds"] = quote.replica_seconds();
  const std::optional<double> cost = Cost();
  json["cost"] = cost.has_value() ? ordered_json(*cost) : ordered_json();
  json["shortest_sla_seconds"] = SecondsJson(quote.has_shortest_sla(), quote.shortest_sla());
  json["measured_batches"] = quote.measured_batches();
  json["explanation"] = quote.explanation();
  return json;
}

void QuoteView::Show(const CommonOptions& options, const Environment& environment) const {
  if (!PrintIfStructured(Json(), options, environment)) {
    PrintTo(*environment.out, environment.clock->Now());
  }
  environment.exit_code = quote.feasible() ? kOk : kDeadlineMissed;
}

namespace {

struct QuoteOptions {
  CommonOptions common;
  std::string job;
  std::string input;
  std::optional<int64_t> transactions;  // in place of an input
  std::optional<absl::Duration> sla;
  std::optional<double> price;
};

// Counts the transactions of the input, with the server's definition of the job.
absl::StatusOr<int64_t> TransactionsOf(const QuoteOptions& options, const MeshClient& mesh) {
  if (options.transactions.has_value()) return *options.transactions;
  MUSTER_ASSIGN_OR_RETURN(const auto source, input::FileSource::Open(options.input));
  MUSTER_ASSIGN_OR_RETURN(const v1::Job kept, mesh.Job(options.job));
  MUSTER_ASSIGN_OR_RETURN(const job::JobDefinition job,
                          job::ParseJob(kept.definition(), options.job));
  return CountTransactions(job, *source);
}

absl::Status ShowQuote(const QuoteOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto mesh,
                          MeshClient::Open(options.common, "batches are quoted by a server"));
  QuoteView view;
  view.job = options.job;
  view.price = options.price;
  MUSTER_ASSIGN_OR_RETURN(view.transactions, TransactionsOf(options, *mesh));
  v1::QuoteRequest request;
  request.set_job(options.job);
  request.set_transactions(*view.transactions);
  if (options.sla.has_value()) *request.mutable_sla() = base::ToProto(*options.sla);
  MUSTER_ASSIGN_OR_RETURN(view.quote, mesh->Call(&v1::BatchService::Stub::Quote, request));
  view.Show(options.common, environment);
  return absl::OkStatus();
}

}  // namespace

void AddQuoteVerb(CLI::App* batch, const Environment& environment) {
  const auto options = std::make_shared<QuoteOptions>();
  CLI::App* const quote =
      AddCommand(batch, "quote",
                 "When a batch would be done, with how many replicas; exit 4 if it would be late",
                 environment, [options, &environment] { return ShowQuote(*options, environment); });
  args::Add(quote, "JOB", &options->job, "The job's name").Required();
  CLI::App* const size = args::AddOptionGroup(quote, "size");
  args::Add(size, "--input", &options->input, "The file with the transactions; it is counted here");
  args::Add(size, "--transactions", &options->transactions, "So many, of no file")
      .Check(args::PositiveNumber());
  args::RequireOptions(size, 1, 1);
  AddSla(quote, kAskedSla, &options->sla);
  args::Add(quote, "--price", &options->price, "Dollars for an hour of a replica")
      .Check(args::NonNegativeNumber());
  AddServer(quote, &options->common);
  AddOutput(quote, &options->common);
}

}  // namespace muster::cli
