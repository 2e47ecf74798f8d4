#include "cli/scale/quote_command.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "cli/output/structured.h"
#include "cli/scale/quote_view.h"
#include "cli/scale/scale_view.h"
#include "cli/scale/transaction_count.h"
#include "cli/server/mesh.h"
#include "cli/server/place.h"
#include "cli/server/remote_jobs.h"
#include "muster/base/proto_time.h"
#include "muster/base/quantity.h"
#include "muster/base/status_macros.h"
#include "muster/job/job_file.h"
#include "muster/v1/batch_service.grpc.pb.h"

namespace muster::cli {
namespace {

struct QuoteOptions {
  CommonOptions common;
  std::string job;
  std::string input;
  std::optional<int64_t> transactions;  // in place of an input
  std::optional<absl::Duration> sla;
  std::optional<double> price;
};

// Of the input, by the job as the server has it.
absl::StatusOr<int64_t> TransactionsOf(const QuoteOptions& options) {
  if (options.transactions.has_value()) return *options.transactions;
  MUSTER_ASSIGN_OR_RETURN(const auto source, input::FileSource::Open(options.input));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<MeshClient> mesh,
                          MeshClient::Open(options.common.server));
  MUSTER_ASSIGN_OR_RETURN(const v1::Job kept, JobClient(std::move(mesh)).Get(options.job));
  MUSTER_ASSIGN_OR_RETURN(const job::JobDefinition job,
                          job::ParseJob(kept.definition(), options.job));
  return CountTransactions(job, *source);
}

absl::Status ShowQuote(const QuoteOptions& options, const Environment& environment) {
  MUSTER_RETURN_IF_ERROR(RequireServer(options.common, "batches are quoted by a server"));
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<MeshClient> mesh,
                          MeshClient::Open(options.common.server));
  QuoteView view;
  view.job = options.job;
  view.price = options.price;
  MUSTER_ASSIGN_OR_RETURN(view.transactions, TransactionsOf(options));
  v1::QuoteRequest request;
  request.set_job(options.job);
  request.set_transactions(*view.transactions);
  if (options.sla.has_value()) *request.mutable_sla() = base::ToProto(*options.sla);
  const auto stub = v1::BatchService::NewStub(mesh->initiator());
  MUSTER_RETURN_IF_ERROR(mesh->Call(*stub, &v1::BatchService::Stub::Quote, request, &view.quote));
  if (IsStructured(options.common.output)) {
    PrintStructured(view.Json(), options.common.output, environment);
  } else {
    view.PrintTo(*environment.out, environment.clock->Now());
  }
  environment.exit_code = view.Code();
  return absl::OkStatus();
}

}  // namespace

void AddSla(CLI::App* command, std::optional<absl::Duration>* sla) {
  command->add_option_function<std::string>(
      "--sla",
      [sla](const std::string& text) {
        const absl::StatusOr<absl::Duration> parsed = base::ParseDuration(text);
        if (!parsed.ok() || *parsed <= absl::ZeroDuration()) {
          throw CLI::ValidationError("--sla", absl::StrCat("'", text, "' is no time like 5m"));
        }
        *sla = *parsed;
      },
      "How long it may take, such as 5m; without it, what the rules promise");
}

void AddQuoteVerb(CLI::App* batch, const Environment& environment) {
  const auto options = std::make_shared<QuoteOptions>();
  CLI::App* const quote = batch->add_subcommand(
      "quote", "When a batch would be done, with how many replicas; exit 4 if it would be late");
  quote->add_option("JOB", options->job, "The job's name")->required();
  CLI::Option_group* const size = quote->add_option_group("size");
  size->add_option("--input", options->input, "The file with the transactions; it is counted here");
  size->add_option("--transactions", options->transactions, "So many, of no file")
      ->check(CLI::PositiveNumber);
  size->require_option(1);
  AddSla(quote, &options->sla);
  quote->add_option("--price", options->price, "Dollars for an hour of a replica")
      ->check(CLI::NonNegativeNumber);
  AddServer(quote, &options->common);
  AddOutput(quote, &options->common, Csv::kNo);
  quote->callback([options, &environment] {
    if (const absl::Status status = ShowQuote(*options, environment); !status.ok()) {
      environment.Fail(status);
    }
  });
}

}  // namespace muster::cli
