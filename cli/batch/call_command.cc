// SPDX-License-Identifier: Apache-2.0

// muster call JOB [RECORD]
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/batch/commands.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/output/record_writer.h"
#include "cli/server/mesh_client.h"
#include "cli/server/options.h"
#include "muster/base/output_proto.h"
#include "muster/base/status.h"
#include "muster/v1/call_service.grpc.pb.h"

namespace muster::cli {
namespace {

struct CallOptions {
  CommonOptions common;
  v1::CallRequest request;
  std::vector<std::string> fields;  // NAME=TEXT
  bool is_json = false;
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

absl::Status PrintRecords(const v1::CallAccepted& accepted, OutputFormat format,
                          std::ostream& out) {
  std::vector<base::OutputColumn> columns;
  for (const v1::OutputColumn& column : accepted.columns()) {
    MUSTER_ASSIGN_OR_RETURN(base::OutputColumn read, base::FromProto(column));
    columns.push_back(std::move(read));
  }
  const size_t width = columns.size();
  RecordWriter writer(std::move(columns), format, &out);
  writer.Begin();
  for (const v1::OutputRecord& record : accepted.records()) {
    if (static_cast<size_t>(record.fields_size()) != width) {
      return absl::DataLossError(
          absl::StrCat("a record has ", record.fields_size(), " fields of ", width));
    }
    writer.Add(base::FromProto(record));
  }
  return absl::OkStatus();
}

absl::Status Call(const CallOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const v1::CallRequest request, RequestOf(options));
  MUSTER_ASSIGN_OR_RETURN(const auto mesh,
                          MeshClient::Open(options.common, "records are taken by a server"));
  MUSTER_ASSIGN_OR_RETURN(const auto response, mesh->Call(&v1::CallService::Stub::Call, request));
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
  return PrintRecords(response.accepted(),
                      options.is_json ? OutputFormat::kJson : OutputFormat::kCsv, *environment.out);
}

}  // namespace

void AddCall(CLI::App* app, const Environment& environment) {
  const auto options = std::make_shared<CallOptions>();
  CLI::App* const call =
      AddCommand(app, "call", "Submit one record, wait, and print what the handler returned for it",
                 environment, [options, &environment] { return Call(*options, environment); });
  AddServer(call, &options->common);
  call->add_option("JOB", *options->request.mutable_job(), "The job's name")->required();
  CLI::Option* const record = call->add_option(
      "RECORD", *options->request.mutable_record(),
      "In the job's input format; of a CSV, the fields of the job's columns without a header");
  call->add_option("--field", options->fields,
                   "A column of the record instead; repeatable, and absent columns are empty")
      ->expected(1)
      ->take_all()
      ->type_name("NAME=TEXT")
      ->excludes(record);
  call->add_option("--request-id", *options->request.mutable_request_id(),
                   "Repeating the command with the same id finds the same answer, and counts once")
      ->type_name("ID");
  call->add_option_function<std::string>(
          "-o,--output",
          [options](const std::string& format) { options->is_json = format == "json"; },
          "CSV with a header, or a line of JSON for each record")
      ->check(CLI::IsMember({"csv", "json"}))
      ->default_str("csv");
}

}  // namespace muster::cli
