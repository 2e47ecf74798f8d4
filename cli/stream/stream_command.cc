// SPDX-License-Identifier: Apache-2.0

// muster stream create | list | describe | append | read | delete
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/server/options.h"
#include "cli/stream/append_lines.h"
#include "cli/stream/commands.h"
#include "cli/stream/stream_admin.h"
#include "muster/args/command.h"
#include "muster/args/option.h"
#include "muster/base/quantity.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/stream/event_producer.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;
using stream::EventStreamStore;

// Of a body, in a table.
constexpr size_t kShownBytes = 60;

struct StreamCommandOptions {
  CommonOptions common;
  std::string name;  // a stream, or a partition of one
  int partitions = 4;
  std::string retention = "7d";
  int64_t max_bytes = 0;
  LineOptions lines;
  int64_t from = 1;
  int64_t max = 100;
  std::string wait = "0s";
};

std::string ShowRetention(absl::Duration retention) {
  return retention == absl::InfiniteDuration() ? "for ever" : base::DurationToString(retention);
}

ordered_json RetentionJson(absl::Duration retention) {
  if (retention == absl::InfiniteDuration()) return nullptr;
  return absl::ToDoubleSeconds(retention);
}

absl::Status Create(const StreamCommandOptions& options, StreamAdmin* admin,
                    const Environment& environment) {
  stream::StreamOptions wanted{.partitions = options.partitions,
                               .retention = absl::InfiniteDuration(),
                               .max_bytes = options.max_bytes};
  if (options.retention != "forever") {
    MUSTER_ASSIGN_OR_RETURN(wanted.retention, base::ParseDuration(options.retention));
  }
  MUSTER_RETURN_IF_ERROR(admin->events()->Create(options.name, wanted));
  const ordered_json json = {{"stream", options.name}, {"partitions", wanted.partitions}};
  if (PrintIfStructured(json, options.common, environment)) return absl::OkStatus();
  *environment.out << "stream " << options.name << ": "
                   << Counted(static_cast<uint64_t>(wanted.partitions), "partition") << "\n";
  return absl::OkStatus();
}

absl::Status List(const StreamCommandOptions& options, StreamAdmin* admin,
                  const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> names, admin->events()->List());
  Table table;
  table.AddColumn("stream");
  table.AddColumns({"partitions", "retention", "max bytes"}, Align::kRight);
  ordered_json json = ordered_json::array();
  for (const std::string& name : names) {
    const absl::StatusOr<stream::StreamOptions> described = admin->events()->Describe(name);
    if (absl::IsNotFound(described.status())) continue;  // deleted meanwhile
    MUSTER_RETURN_IF_ERROR(described.status());
    table.AddRow({name, absl::StrCat(described->partitions), ShowRetention(described->retention),
                  described->max_bytes == 0 ? "-" : absl::StrCat(described->max_bytes)});
    json.push_back({{"stream", name},
                    {"partitions", described->partitions},
                    {"retention_seconds", RetentionJson(described->retention)},
                    {"max_bytes", described->max_bytes}});
  }
  PrintRows(table, json, options.common, environment);
  return absl::OkStatus();
}

absl::Status Describe(const StreamCommandOptions& options, StreamAdmin* admin,
                      const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const stream::StreamOptions described,
                          admin->events()->Describe(options.name));
  Table table;
  table.AddColumns({"partition", "first", "next", "events", "last appended"}, Align::kRight);
  ordered_json rows = ordered_json::array();
  for (int p = 0; p < described.partitions; ++p) {
    MUSTER_ASSIGN_OR_RETURN(const stream::PartitionExtent extent,
                            admin->events()->Extent(options.name, p));
    const bool known = extent.last_appended != absl::InfinitePast();
    table.AddRow({absl::StrCat(p), absl::StrCat(extent.first), absl::StrCat(extent.next),
                  absl::StrCat(extent.count()), known ? Rfc3339(extent.last_appended) : "-"});
    rows.push_back({{"partition", p},
                    {"first", extent.first},
                    {"next", extent.next},
                    {"events", extent.count()}});
    if (known) rows.back()["last_appended"] = Rfc3339(extent.last_appended);
  }
  const ordered_json json = {{"stream", options.name},
                             {"retention_seconds", RetentionJson(described.retention)},
                             {"max_bytes", described.max_bytes},
                             {"partitions", rows}};
  PrintRows(table, json, options.common, environment);
  return absl::OkStatus();
}

absl::Status Append(const StreamCommandOptions& options, StreamAdmin* admin,
                    const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(
      const auto producer,
      stream::EventProducer::Open(admin->events(), options.name, {}, environment.clock));
  int64_t sent = 0;
  const absl::Status appended = AppendLines(producer.get(), options.lines, &sent);
  if (!appended.ok()) {
    return base::Annotate(
        appended,
        absl::StrCat("appended: ", Counted(static_cast<uint64_t>(sent), "event"), "; failed"));
  }
  const ordered_json json = {{"stream", options.name}, {"events", sent}};
  if (PrintIfStructured(json, options.common, environment)) return absl::OkStatus();
  *environment.out << "appended: " << Counted(static_cast<uint64_t>(sent), "event") << "\n";
  return absl::OkStatus();
}

ordered_json EventJson(const stream::Event& event) {
  ordered_json json = {{"offset", event.offset}, {"appended", Rfc3339(event.appended)}};
  const auto add = [&json](const std::string& name, const std::string& bytes) {
    if (base::IsValidUtf8(bytes)) {
      json[name] = bytes;
    } else {
      json[name + "_base64"] = absl::Base64Escape(bytes);
    }
  };
  add("key", event.key);
  add("body", event.body);
  for (const auto& [name, value] : event.properties) {
    if (base::IsValidUtf8(value)) {
      json["properties"][name] = value;
    } else {
      json["properties_base64"][name] = absl::Base64Escape(value);
    }
  }
  return json;
}

absl::Status Read(const StreamCommandOptions& options, StreamAdmin* admin,
                  const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const PartitionName at, ParsePartition(options.name));
  MUSTER_ASSIGN_OR_RETURN(const absl::Duration wait, base::ParseDuration(options.wait));
  MUSTER_ASSIGN_OR_RETURN(const stream::PartitionExtent extent,
                          admin->events()->Extent(at.stream, at.partition));
  const int64_t from = options.from == 0 ? extent.first : options.from;
  MUSTER_ASSIGN_OR_RETURN(const auto reader,
                          admin->events()->OpenReader(at.stream, at.partition, from));
  Table table;
  table.AddColumn("offset", Align::kRight);
  table.AddColumns({"appended", "key", "body"});
  ordered_json json = ordered_json::array();
  for (int64_t left = options.max; left > 0;) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<stream::Event> events,
                            reader->Next(static_cast<int>(std::min<int64_t>(left, 1000)), wait));
    if (events.empty()) break;
    left -= static_cast<int64_t>(events.size());
    for (const stream::Event& event : events) {
      table.AddRow({absl::StrCat(event.offset), Rfc3339(event.appended),
                    base::Printable(event.key, kShownBytes),
                    base::Printable(event.body, kShownBytes)});
      json.push_back(EventJson(event));
    }
  }
  PrintRows(table, json, options.common, environment);
  return absl::OkStatus();
}

absl::Status Delete(const StreamCommandOptions& options, StreamAdmin* admin,
                    const Environment& environment) {
  MUSTER_RETURN_IF_ERROR(admin->events()->Delete(options.name));
  const ordered_json json = {{"stream", options.name}, {"deleted", true}};
  if (PrintIfStructured(json, options.common, environment)) return absl::OkStatus();
  *environment.out << "stream " << options.name << " is deleted\n";
  return absl::OkStatus();
}

std::string RefuseDuration(const std::string& text) {
  return base::ParseDuration(text).ok() ? "" : absl::StrCat("'", text, "' is no time like 30s");
}

std::string RefuseRetention(const std::string& text) {
  return text == "forever" ? "" : RefuseDuration(text);
}

// One verb of the family.
using Verb = absl::Status (*)(const StreamCommandOptions&, StreamAdmin*, const Environment&);

CLI::App* AddVerb(CLI::App* parent, const VerbFace& face, Access access, Verb verb,
                  const std::shared_ptr<StreamCommandOptions>& options,
                  const Environment& environment) {
  const auto run = [options, access, verb, &environment]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const auto admin,
                            OpenStreamAdmin(options->common, access, environment));
    return WithListHint(admin->Explained(verb(*options, admin.get(), environment)),
                        "muster stream list", options->common);
  };
  CLI::App* const command = AddCommand(parent, face.name, face.about, environment, run);
  AddDataDirOrServer(command, &options->common);
  AddOutput(command, &options->common);
  return command;
}

}  // namespace

void AddStream(CLI::App* app, const Environment& environment) {
  CLI::App* const parent = args::AddSubcommand(app, "stream", "Make, feed and read event streams");
  args::RequireSubcommand(parent);
  const auto options = std::make_shared<StreamCommandOptions>();
  const auto add = [&](const VerbFace& face, Access access, Verb verb) {
    return AddVerb(parent, face, access, verb, options, environment);
  };
  const auto add_for_one = [&](const VerbFace& face, Access access, Verb verb) {
    CLI::App* const command = add(face, access, verb);
    args::Add(command, "STREAM", &options->name, "Its name: [a-z0-9-]").Required();
    return command;
  };
  CLI::App* const create = add_for_one({"create", "Make a stream"}, Access::kMake, Create);
  args::Add(create, "--partitions", &options->partitions, "How many; they never change")
      .CaptureDefaultStr()
      .Check(args::Range(1, stream::kMaxPartitions));
  args::Add(create, "--retention", &options->retention, "How long events are kept, or forever")
      .CaptureDefaultStr()
      .Check(RefuseRetention);
  args::Add(create, "--max-bytes", &options->max_bytes, "Of a partition; 0: no bound")
      .Check(args::NonNegativeNumber());
  add({"list", "All streams"}, Access::kLook, List);
  add_for_one({"describe", "What each partition of a stream keeps"}, Access::kLook, Describe);
  CLI::App* const append = add_for_one(
      {"append", "Append an event for each line of standard input"}, Access::kChange, Append);
  const args::Option key = args::Add(append, "--key", &options->lines.key, "Of all these events");
  args::Add(append, "--separator", &options->lines.separator, "What ends the key in each line")
      .Excludes(key)
      .Check([](const std::string& text) -> std::string {
        return text.empty() ? "an empty text ends no key; without --separator events have none"
                            : "";
      });
  args::Add(append, "--partition", &options->lines.partition,
            "Where to, instead of where the key leads")
      .Check(args::NonNegativeNumber());
  CLI::App* const read =
      add({"read", "Events of a partition from an offset on"}, Access::kLook, Read);
  args::Add(read, "STREAM/PARTITION", &options->name, "For instance homes/3").Required();
  args::Add(read, "--from", &options->from, "The first offset; 0: the first that is kept")
      .CaptureDefaultStr()
      .Check(args::NonNegativeNumber());
  args::Add(read, "--max", &options->max, "Events to show")
      .CaptureDefaultStr()
      .Check(args::Range(int64_t{1}, int64_t{1'000'000}));
  args::Add(read, "--wait", &options->wait, "For a next event, when there is none")
      .CaptureDefaultStr()
      .Check(RefuseDuration);
  add_for_one({"delete", "Remove a stream with its events"}, Access::kChange, Delete);
}

}  // namespace muster::cli
