// SPDX-License-Identifier: Apache-2.0

// muster call JOB [RECORD]
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/batch/batch_output.h"
#include "cli/batch/commands.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/output/record_writer.h"
#include "cli/server/mesh_client.h"
#include "cli/server/options.h"
#include "muster/args/command.h"
#include "muster/args/option.h"
#include "muster/base/status.h"
#include "muster/v1/call_service.grpc.pb.h"

namespace muster::cli {
namespace {

struct CallOptions {
  CommonOptions common;
  v1::CallRequest request;
  std::vector<std::string> fields;  // NAME=TEXT
  OutputFormat format = OutputFormat::kCsv;
};

absl::StatusOr<v1::CallRequest> RequestOf(const CallOptions& options) {
  v1::CallRequest request = options.request;
  for (const std::string& field : options.fields) {
    const std::vector<std::string> parts = absl::StrSplit(field, absl::MaxSplits('=', 1));
    if (parts.size() != 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("--field: '", Printable(field), "' is no NAME=TEXT"));
    }
    if (!request.mutable_fields()->insert({parts[0], parts[1]}).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("--field: '", Printable(parts[0]), "' is given twice"));
    }
  }
  return request;
}

absl::Status Call(const CallOptions& options, const Environment& environment) {
  // All columns would be absent, and a record that is empty would be counted.
  if (options.request.record().empty() && options.fields.empty()) {
    args::RefuseMissing("RECORD or --field");
  }
  MUSTER_ASSIGN_OR_RETURN(const v1::CallRequest request, RequestOf(options));
  MUSTER_ASSIGN_OR_RETURN(const auto mesh,
                          MeshClient::Open(options.common, "records are taken by a server"));
  const auto answer = mesh->Call(&v1::CallService::Stub::Call, request);
  if (absl::IsDeadlineExceeded(answer.status())) {
    environment.Fail(absl::DeadlineExceededError(
        absl::StrCat(answer.status().message(),
                     request.request_id().empty()
                         ? "; the command repeated counts once more: with a --request-id it would "
                           "wait for the same record"
                         : "; the same command goes on waiting")));
    environment.exit_code = kTimedOut;
    return absl::OkStatus();
  }
  MUSTER_RETURN_IF_ERROR(answer.status());
  const v1::CallResponse& response = *answer;
  const std::string place = absl::StrCat("line ", response.line(), " of batch ", response.batch());
  if (response.has_rejected() || response.has_dead_lettered()) {
    *environment.err << "muster: " << place
                     << (response.has_rejected() ? " is rejected: " : " is dead-lettered: ")
                     << Printable(response.has_rejected() ? response.rejected().reason()
                                                          : response.dead_lettered().cause())
                     << "\n";
    environment.exit_code = kPartial;
    return absl::OkStatus();
  }
  if (response.accepted().columns().empty()) {
    *environment.err << "muster: " << place << " is counted; the job has no outputs\n";
    return absl::OkStatus();
  }
  MUSTER_ASSIGN_OR_RETURN(const report::OutputPage page,
                          PageOf(response.accepted().columns(), response.accepted().records()));
  RecordWriter writer(page.columns, options.format, environment.out);
  writer.Begin();
  for (const base::OutputRecord& record : page.records) writer.Add(record);
  return absl::OkStatus();
}

}  // namespace

void AddCall(CLI::App* app, const Environment& environment) {
  const auto options = std::make_shared<CallOptions>();
  CLI::App* const call =
      AddCommand(app, "call", "Submit one record, wait, and print what the handler returned for it",
                 environment, [options, &environment] { return Call(*options, environment); });
  AddServer(call, &options->common);
  args::Add(call, "JOB", &*options->request.mutable_job(), "The job's name").Required();
  const args::Option record = args::Add(
      call, "RECORD", &*options->request.mutable_record(),
      "In the job's input format; of a CSV, the fields of the job's columns without a header");
  args::Add(call, "--field", &options->fields,
            "A column of the record instead; repeatable, and absent columns are empty")
      .Repeatable()
      .TypeName("NAME=TEXT")
      .Excludes(record);
  AddRequestId(call,
               "Repeating the command with the same id finds the same answer, and counts once",
               options->request.mutable_request_id())
      .TypeName("ID");
  AddRecordFormat(call, &options->format);
}

}  // namespace muster::cli
