// muster job check FILE
#include <memory>
#include <string>
#include <variant>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "cli/environment.h"
#include "muster/base/status_macros.h"
#include "muster/job/job_file.h"
#include "services/processor/job_handler.h"

namespace muster::cli {
namespace {

// As far as a job can be checked without its input: the file, and that its handler is there and
// finds the columns and groups that it needs.
absl::Status CheckJob(const std::string& file, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const job::JobDefinition job, job::LoadJobFile(file));
  MUSTER_ASSIGN_OR_RETURN(const processor::JobHandler handler,
                          processor::FindHandler(job, *environment.handlers, environment.clock));
  const absl::Status made = handler.factory(job.schema()).status();
  if (!made.ok()) return base::Annotate(made, file);
  *environment.out << file << ": job " << job.name << " is fine (revision "
                   << job.revision.substr(0, 12) << ", handler version " << handler.version
                   << ")\n";
  return absl::OkStatus();
}

}  // namespace

void AddJob(CLI::App* app, const Environment& environment) {
  CLI::App* const job = app->add_subcommand("job", "Look after job files");
  job->require_subcommand(1);
  CLI::App* const check = job->add_subcommand("check", "Validate a job file without running it");
  const auto file = std::make_shared<std::string>();
  check->add_option("FILE", *file, "The job file (YAML)")->required();
  check->callback([file, &environment] {
    if (const absl::Status status = CheckJob(*file, environment); !status.ok()) {
      environment.Fail(status);
    }
  });
}

void AddServeHandler(CLI::App* app, const Environment& environment) {
  CLI::App* const serve = app->add_subcommand(processor::kServeHandler, "Serve a linked handler");
  serve->group("");  // not for people: muster starts it
  serve->callback([&environment] {
    if (const absl::Status status = processor::ServeHandler(*environment.handlers); !status.ok()) {
      environment.Fail(status);
    }
  });
}

}  // namespace muster::cli
