// SPDX-License-Identifier: Apache-2.0
#include "muster/job/job_file.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "muster/base/fingerprint.h"
#include "muster/base/status.h"
#include "muster/input/byte_source.h"
#include "muster/job/limits.h"
#include "muster/job/sections.h"
#include "muster/yaml/yaml_value.h"

namespace muster::job {
namespace {

void ReadJob(const yaml::YamlValue& root, JobDefinition* job) {
  const yaml::YamlMap map(root, JobFileKeys().at(kTop));
  map.Required("name").ReadName(&job->name);
  const auto section = [&](const char* key, bool required, auto read, auto* out) {
    const yaml::YamlValue value = required ? map.Required(key) : map.Optional(key);
    if (value.present()) read(value, out);
  };
  section("input", true, ReadInput, &job->input);
  section("item", false, ReadItem, &job->item);
  const yaml::YamlValue order = map.Optional("order_by");
  if (order.present()) ReadOrder(order, job->input, &job->order_by);
  const yaml::YamlValue on_poison = map.Optional("on_poison");
  if (on_poison.present()) ReadOnPoison(on_poison, order.present(), &job->on_poison);
  section("handler", true, ReadHandler, &job->handler);
  section("groups", true, ReadGroups, &job->groups);
  const yaml::YamlValue outputs = map.Optional("outputs");
  if (outputs.present()) ReadOutputs(outputs, job->order_by.has_value(), &job->outputs);
  section("queue", false, ReadQueue, &job->queue);
  section("tolerate", false, ReadTolerance, &job->tolerate);
  section("sla", false, ReadSla, &job->sla_max);
  section("retention", false, ReadRetention, &job->retention);
  section("upload", false, ReadUpload, &job->upload_expires);
}

// The job that `text` defines, if there are no problems.
JobDefinition ReadDefinition(absl::string_view text, yaml::Problems* problems) {
  JobDefinition job;
  const YAML::Node document = yaml::ReadDocument(text, kMaxJobFileBytes, problems);
  if (!problems->empty()) return job;
  ReadJob(yaml::YamlValue(document, "", problems), &job);
  if (!problems->empty()) return job;
  job.text = std::string(text);
  job.revision = base::Fingerprint(CanonicalText(job)).ToHex();
  return job;
}

// Absolute; "" when the file was moved away meanwhile.
std::string FolderOf(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr),
                                                         &std::free);
  if (real == nullptr) return "";
  const std::string absolute = real.get();
  return absolute.substr(0, std::max<size_t>(absolute.rfind('/'), 1));
}

}  // namespace

const std::map<std::string, std::vector<std::string>>& JobFileKeys() {
  static const auto* const keys = new std::map<std::string, std::vector<std::string>>{
      {kTop,
       {"name", "input", "item", "order_by", "on_poison", "handler", "groups", "outputs", "queue",
        "tolerate", "sla", "retention", "upload"}},
      {kInput, {"format", "header", "delimiter", "quote", "multiline", "columns", "optional"}},
      {kItem, {"transactions", "max_bytes"}},
      {kHandler, {"linked", "command", "grpc", "deadline", "version", "env"}},
      {kGroup, {"name", "keys", "measures"}},
      {kOutputs, {"columns"}},
      {kQueue, {"partitions", "visibility", "max_attempts", "ttl", "max_drain", "content"}},
      {kTolerate, {"rejected"}},
      {kSla, {"max"}},
      {kRetention, {"content", "items", "batch"}},
      {kUpload, {"expires"}},
  };
  return *keys;
}

absl::StatusOr<JobDefinition> ParseJob(absl::string_view text, absl::string_view file_name) {
  yaml::Problems problems(file_name);
  JobDefinition job = ReadDefinition(text, &problems);
  MUSTER_RETURN_IF_ERROR(problems.ToStatus());
  return job;
}

std::vector<yaml::Problem> CheckJob(absl::string_view text, JobDefinition* job) {
  yaml::Problems problems("");
  *job = ReadDefinition(text, &problems);
  std::vector<yaml::Problem> found = problems.InOrder();
  if (found.size() > yaml::kMaxProblems) found.resize(yaml::kMaxProblems);
  return found;
}

absl::StatusOr<std::string> ReadJobText(const std::string& path) {
  return input::ReadTextFile(path, "job file", kMaxJobFileBytes);
}

absl::StatusOr<JobDefinition> LoadJobFile(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadJobText(path));
  MUSTER_ASSIGN_OR_RETURN(JobDefinition job, ParseJob(text, path));
  job.folder = FolderOf(path);
  return job;
}

}  // namespace muster::job
