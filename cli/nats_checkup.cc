#include "cli/nats_checkup.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "muster/nats/connection.h"
#include "muster/nats/jetstream.h"
#include "muster/queue_jetstream/names.h"
#include "muster/queue_jetstream/settings.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(5);
constexpr char kAsItIsOpened[] = "the services set it when they start; restart one, see its log";

// "storage is "memory", not "file"" for each field of `wanted` that is otherwise. The lease is each
// installation's own, and more replicas than were asked for do no harm.
std::string Differences(const nlohmann::json& wanted, const nlohmann::json& got) {
  std::string differences;
  for (const auto& [field, value] : wanted.items()) {
    if (field == "ack_wait") continue;
    const auto found = got.find(field);
    if (found != got.end() && *found == value) continue;
    const bool more = field == "num_replicas" && found != got.end() && found->is_number_integer() &&
                      *found > value;
    if (more) continue;
    absl::StrAppend(&differences, differences.empty() ? "" : ", ", field, " is ",
                    found == got.end() ? "not set" : found->dump(), ", not ", value.dump());
  }
  return differences;
}

Finding Compare(const std::string& what, const nlohmann::json& wanted,
                const absl::StatusOr<nlohmann::json>& got) {
  if (!got.ok()) {
    return {Health::kWrong, what, std::string(got.status().message()), kAsItIsOpened};
  }
  const std::string differences = Differences(wanted, *got);
  if (differences.empty()) return {Health::kOk, what, "is set as it should be"};
  return {Health::kWrong, what, differences, kAsItIsOpened};
}

absl::StatusOr<nlohmann::json> ConsumerConfig(nats::JetStream& jetstream,
                                              const std::string& stream) {
  absl::StatusOr<nlohmann::json> info = jetstream.Call(
      absl::StrCat("CONSUMER.INFO.", stream, ".", queue_jetstream::kConsumer), nullptr);
  if (!info.ok()) return info.status();
  return info->value("config", nlohmann::json::object());
}

void CheckStreams(nats::JetStream& jetstream, int replicas, Findings* findings) {
  const absl::StatusOr<std::vector<std::string>> streams = jetstream.StreamNames("muster.queue.>");
  if (!streams.ok()) {
    return findings->push_back({Health::kWrong, "streams", std::string(streams.status().message()),
                                "let this user call $JS.API.>"});
  }
  queue_jetstream::Settings settings;
  settings.replicas = replicas;
  for (const std::string& stream : *streams) {
    const std::optional<queue::QueueId> queue = queue_jetstream::QueueOfStream(stream);
    if (!queue.has_value()) continue;
    const std::string aside = queue_jetstream::AsideStreamOf(*queue);
    findings->push_back(Compare(absl::StrCat("stream ", stream),
                                queue_jetstream::StreamSettings(*queue, settings),
                                jetstream.StreamConfig(stream)));
    findings->push_back(Compare(absl::StrCat("consumer of stream ", stream),
                                queue_jetstream::ConsumerSettings(settings.lease),
                                ConsumerConfig(jetstream, stream)));
    findings->push_back(Compare(absl::StrCat("stream ", aside),
                                queue_jetstream::AsideStreamSettings(*queue, settings),
                                jetstream.StreamConfig(aside)));
  }
}

// No client can ask a server how often it syncs its disk.
Finding WhatSurvives(int replicas) {
  if (replicas >= 3) {
    return {Health::kOk, "acknowledgements",
            absl::StrCat("survive the end of ", replicas / 2, " of ", replicas,
                         " servers; a power cut of most of them at a time only where the servers "
                         "have sync_interval: always")};
  }
  return {Health::kWarning, "acknowledgements",
          "survive the end of the server, but a power cut only where it has sync_interval: always",
          "set that, or run three servers and the services with --replicas 3"};
}

}  // namespace

Findings CheckNats(const std::string& url, int replicas) {
  const std::string what = absl::StrCat("NATS server ", nats::WithoutSecrets(url));
  nats::ConnectionOptions options;
  options.name = "muster doctor";
  const auto connection = nats::Connection::Open(url, options);
  if (!connection.ok()) {
    return {{Health::kWrong, what, std::string(connection.status().message()),
             "see whether it runs, and whether the URL and who this is are right"}};
  }
  nats::JetStream jetstream(connection->get(), kCallTimeout);
  if (const absl::Status enabled = jetstream.CheckEnabled(); !enabled.ok()) {
    return {{Health::kWrong, what, std::string(enabled.message()),
             "start it with JetStream (-js), and enable it for this account"}};
  }
  Findings findings = {{Health::kOk, what, "answers, and runs JetStream"}};
  CheckStreams(jetstream, replicas, &findings);
  findings.push_back(WhatSurvives(replicas));
  return findings;
}

}  // namespace muster::cli
