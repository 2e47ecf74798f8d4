// SPDX-License-Identifier: Apache-2.0

// muster batch output BATCH

#include "cli/batch/batch_output.h"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <ostream>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/batch/commands.h"
#include "cli/output/record_writer.h"
#include "cli/server/mesh_client.h"
#include "cli/server/options.h"
#include "muster/args/option.h"
#include "muster/backend/backend.h"
#include "muster/base/output_proto.h"
#include "muster/base/status.h"
#include "muster/os/durable_file.h"
#include "muster/v1/report_service.grpc.pb.h"

namespace muster::cli {
namespace {

std::string PartOf(const std::string& path) { return path + ".part"; }

// As the system follows links.
constexpr int kMaxLinks = 40;

// Such as /dev/stdout: it leads to whatever file is behind it.
bool IsDescriptor(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(path, error).parent_path();
  const std::string real = std::filesystem::weakly_canonical(folder, error).string();
  const std::string name = path.filename().string();
  return absl::StartsWith(absl::StrCat(real, "/"), "/proc/") ||
         (real == "/dev" && (name == "stdin" || name == "stdout" || name == "stderr"));
}

// The file that is meant: where a link is there, what it leads to, which need not be there yet.
// InvalidArgument: a descriptor, or links without an end.
absl::StatusOr<std::string> FileAt(const std::string& named) {
  std::filesystem::path path = named;
  for (int links = 0; links <= kMaxLinks; ++links) {
    if (IsDescriptor(path)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--output-file would replace ", named,
                       ", which is an open file; `muster batch output` prints the records"));
    }
    std::error_code error;
    if (!std::filesystem::is_symlink(path, error)) return path.string();
    const std::filesystem::path target = std::filesystem::read_symlink(path, error);
    path = target.is_absolute() ? target : path.parent_path() / target;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--output-file: the links at ", named, " lead nowhere"));
}

// However deep; also by a link.
bool LiesIn(const std::string& path, const std::string& folder) {
  std::error_code error;  // of what is not there: nothing lies in it
  std::filesystem::path at = std::filesystem::absolute(path, error);
  for (at = std::filesystem::weakly_canonical(at, error); at.has_relative_path();) {
    at = at.parent_path();
    if (std::filesystem::equivalent(at, folder, error)) return true;
  }
  return false;
}

}  // namespace

absl::Status WriteOutputs(ReadPage read, OutputFormat format, std::ostream& out) {
  std::optional<RecordWriter> writer;
  std::string token;
  do {
    MUSTER_ASSIGN_OR_RETURN(const report::OutputPage page, read(token));
    if (!writer.has_value()) {
      writer.emplace(page.columns, format, &out);
      writer->Begin();
    }
    for (const base::OutputRecord& record : page.records) writer->Add(record);
    if (!out.flush()) {
      return absl::ResourceExhaustedError("the output cannot be written: is there room for it?");
    }
    token = page.next_page_token;
  } while (!token.empty());
  return absl::OkStatus();
}

absl::StatusOr<report::OutputPage> PageOf(
    const google::protobuf::RepeatedPtrField<v1::OutputColumn>& columns,
    const google::protobuf::RepeatedPtrField<v1::OutputRecord>& records) {
  report::OutputPage page;
  for (const v1::OutputColumn& column : columns) {
    MUSTER_ASSIGN_OR_RETURN(page.columns.emplace_back(), base::FromProto(column));
  }
  for (const v1::OutputRecord& record : records) {
    if (static_cast<size_t>(record.fields_size()) != page.columns.size()) {
      return absl::DataLossError(absl::StrCat("a record of line ", record.line(), " has ",
                                              record.fields_size(), " fields"));
    }
    page.records.push_back(base::FromProto(record));
  }
  return page;
}

void AddRecordFormat(CLI::App* command, OutputFormat* format) {
  args::AddFunction(
      command, "-o,--output",
      [format](const std::string& name) {
        *format = name == "json" ? OutputFormat::kJson : OutputFormat::kCsv;
      },
      "CSV with a header, or a line of JSON for each record")
      .Check(args::IsMember({"csv", "json"}))
      .DefaultStr("csv");
}

absl::Status CheckOutputFile(const std::string& named, absl::Span<const std::string> sources,
                             const std::string& data_dir) {
  MUSTER_ASSIGN_OR_RETURN(const std::string path, FileAt(named));
  std::error_code error;  // of what is not there: it is not lost
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--output-file: there is no folder ", folder.string()));
  }
  for (const std::string& written : {path, PartOf(path)}) {
    if (LiesIn(written, data_dir)) {
      return absl::InvalidArgumentError(absl::StrCat("--output-file lies in the data directory ",
                                                     data_dir, ", which is muster's own"));
    }
    const std::filesystem::file_status there = std::filesystem::status(written, error);
    if (!std::filesystem::exists(there)) continue;
    if (!std::filesystem::is_regular_file(there)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--output-file would replace ", written,
                       ", which is no regular file; `muster batch output` prints the records"));
    }
    for (const std::string& source : sources) {
      if (!std::filesystem::equivalent(written, source, error)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("--output-file would overwrite ", source, ", which is read"));
    }
  }
  return absl::OkStatus();
}

absl::Status WriteOutputFile(report::ReportStore& store, uint64_t batch, const std::string& named) {
  const bool is_json = absl::EndsWith(named, ".json") || absl::EndsWith(named, ".jsonl");
  MUSTER_ASSIGN_OR_RETURN(const std::string path, FileAt(named));
  const std::string part = PartOf(path);
  std::ofstream out(part, std::ios::binary | std::ios::trunc);
  if (!out) return os::FileError(errno, "creating", part);
  const auto read = [&](const std::string& token) -> absl::StatusOr<report::OutputPage> {
    MUSTER_ASSIGN_OR_RETURN(const auto reader, store.Read());
    return report::ReadOutputPage(*reader, batch, token);
  };
  absl::Status written =
      WriteOutputs(read, is_json ? OutputFormat::kJson : OutputFormat::kCsv, out);
  out.close();
  if (written.ok() && !out) written = os::FileError(errno, "writing", part);
  if (written.ok()) written = os::SyncPath(part);
  if (written.ok()) written = os::Rename(part, path);
  if (!written.ok()) std::remove(part.c_str());
  return base::Annotate(written, path);
}

namespace {

struct OutputOptions {
  CommonOptions common;
  uint64_t batch = 0;
  OutputFormat format = OutputFormat::kCsv;
};

absl::Status PrintLocal(const OutputOptions& options, const Environment& environment) {
  MUSTER_RETURN_IF_ERROR(RequireDataDir(options.common.data_dir));
  MUSTER_ASSIGN_OR_RETURN(
      const auto store,
      backend::OpenReportStore(backend::DataDirUrls(options.common.data_dir).report,
                               backend::Mode::kReadOnly, environment.clock));
  const auto read = [&](const std::string& token) -> absl::StatusOr<report::OutputPage> {
    MUSTER_ASSIGN_OR_RETURN(const auto reader, store->Read());
    return report::ReadOutputPage(*reader, options.batch, token);
  };
  return WriteOutputs(read, options.format, *environment.out);
}

absl::Status PrintRemote(const OutputOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto mesh, MeshClient::Open(options.common.server));
  MUSTER_ASSIGN_OR_RETURN(const Peer controller, mesh->Controller());
  v1::GetOutputRequest request;
  request.set_batch(options.batch);
  const auto read = [&](const std::string& token) -> absl::StatusOr<report::OutputPage> {
    request.set_page_token(token);
    MUSTER_ASSIGN_OR_RETURN(const v1::GetOutputResponse response,
                            mesh->Call(&v1::ReportService::Stub::GetOutput, request, controller));
    MUSTER_ASSIGN_OR_RETURN(report::OutputPage page,
                            PageOf(response.columns(), response.records()));
    page.next_page_token = response.next_page_token();
    return page;
  };
  return WriteOutputs(read, options.format, *environment.out);
}

absl::Status PrintOutput(const OutputOptions& options, const Environment& environment) {
  const absl::Status printed = options.common.server.named() ? PrintRemote(options, environment)
                                                             : PrintLocal(options, environment);
  // muster::cli::Main tells a reader that has left from a disk that is full, for all commands.
  return environment.out->good() ? printed : absl::OkStatus();
}

}  // namespace

void AddBatchOutput(CLI::App* batch, const Environment& environment) {
  const auto options = std::make_shared<OutputOptions>();
  CLI::App* const output = AddCommand(
      batch, "output", "The records that the handler returned, in the order of the input",
      environment, [options, &environment] {
        return WithListHint(PrintOutput(*options, environment), "muster batch list",
                            options->common);
      });
  args::Add(output, "BATCH", &options->batch, "The batch's number").Required();
  AddDataDirOrServer(output, &options->common);
  AddController(output, &options->common);
  AddRecordFormat(output, &options->format);
}

}  // namespace muster::cli
