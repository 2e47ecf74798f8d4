// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/nats_checkup.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "muster/blob/jetstream/object_layout.h"
#include "muster/nats/connection.h"
#include "muster/nats/jetstream.h"
#include "muster/nats/server_version.h"
#include "muster/queue/jetstream/stream_layout.h"
#include "muster/sync/jetstream/jetstream_sync_store.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(5);
constexpr char kAsItIsOpened[] = "the services set it when they start; restart one, see its log";
constexpr char kOfServers[] =
    "see the logs of the NATS servers: too few of the cluster run or hear each other, or what they "
    "may store is full (max_file_store, max_memory_store)";

// The lease is each installation's own, and more replicas than were asked for do no harm.
std::string DifferencesIn(const nlohmann::json& wanted, const nlohmann::json& got) {
  std::vector<nats::Difference> differences = nats::DifferencesOf(wanted, got, {{"ack_wait"}});
  const auto is_fine = [&](const nats::Difference& difference) {
    if (difference.field != "num_replicas") return false;
    const auto found = got.find(difference.field);
    return found != got.end() && found->is_number_integer() && *found > wanted["num_replicas"];
  };
  differences.erase(std::remove_if(differences.begin(), differences.end(), is_fine),
                    differences.end());
  return nats::Describe(differences);
}

Finding Compare(const std::string& what, const nlohmann::json& wanted,
                const absl::StatusOr<nlohmann::json>& got) {
  if (!got.ok()) {
    return {Health::kWrong, what, std::string(got.status().message()),
            absl::IsUnavailable(got.status()) ? kOfServers : kAsItIsOpened};
  }
  const std::string differences = DifferencesIn(wanted, *got);
  if (differences.empty()) return {Health::kOk, what, "is set as it should be"};
  return {Health::kWrong, what, differences, kAsItIsOpened};
}

absl::StatusOr<nlohmann::json> ConsumerConfig(nats::JetStream& jetstream,
                                              const std::string& stream) {
  absl::StatusOr<nlohmann::json> info = jetstream.Call(
      absl::StrCat("CONSUMER.INFO.", stream, ".", queue::jetstream::kConsumer), nullptr);
  if (!info.ok()) return info.status();
  return info->value("config", nlohmann::json::object());
}

void CheckConsumer(nats::JetStream& jetstream, const std::string& stream,
                   const queue::jetstream::Settings& settings, Findings* findings) {
  const std::string what = absl::StrCat("consumer of stream ", stream);
  findings->push_back(Compare(what, queue::jetstream::ConsumerSettings(settings.lease),
                              ConsumerConfig(jetstream, stream)));
  const auto state = jetstream.GetConsumer(stream, queue::jetstream::kConsumer);
  if (!state.ok() || state->paused <= absl::ZeroDuration()) return;
  findings->push_back(
      {Health::kWarning, what,
       absl::StrCat("is paused by an administrator for another ",
                    absl::FormatDuration(absl::Ceil(state->paused, absl::Seconds(1))),
                    ": no message of it comes"),
       absl::StrCat("nats consumer resume ", stream, " ", queue::jetstream::kConsumer)});
}

// A stream of a cluster, none of whose servers leads it: it takes nothing and gives nothing, and
// its settings are known all the same.
bool HasNoLeader(const nlohmann::json& info) {
  const auto cluster = info.find("cluster");
  return cluster != info.end() && cluster->is_object() && cluster->value("leader", "").empty();
}

Finding CompareStream(nats::JetStream& jetstream, const nlohmann::json& wanted) {
  const std::string stream = wanted["name"];
  const std::string what = absl::StrCat("stream ", stream);
  const absl::StatusOr<nlohmann::json> info =
      jetstream.Call(absl::StrCat("STREAM.INFO.", stream), nullptr);
  if (!info.ok()) return Compare(what, wanted, info.status());
  if (HasNoLeader(*info)) return {Health::kWrong, what, "none of its servers leads it", kOfServers};
  return Compare(what, wanted, info->value("config", nlohmann::json::object()));
}

// Of a stream that a server may have lost, and that running services make with the next `content`.
Finding CompareOnceThere(nats::JetStream& jetstream, const nlohmann::json& wanted,
                         const std::string& content) {
  const std::string stream = wanted["name"];
  if (absl::IsNotFound(jetstream.StreamConfig(stream).status())) {
    return {Health::kOk, absl::StrCat("stream ", stream),
            absl::StrCat("is not there; it is made with the next ", content)};
  }
  return CompareStream(jetstream, wanted);
}

void CheckQueues(nats::JetStream& jetstream, const queue::jetstream::Settings& settings,
                 Findings* findings) {
  const absl::StatusOr<std::vector<std::string>> streams = jetstream.StreamNames("muster.queue.>");
  if (!streams.ok()) {
    return findings->push_back({Health::kWrong, "streams", std::string(streams.status().message()),
                                "let this user call $JS.API.>"});
  }
  for (const std::string& stream : *streams) {
    const std::optional<queue::QueueId> queue = queue::jetstream::QueueOfStream(stream);
    if (!queue.has_value()) continue;
    findings->push_back(
        CompareStream(jetstream, queue::jetstream::StreamSettings(*queue, settings)));
    CheckConsumer(jetstream, stream, settings, findings);
    findings->push_back(
        CompareStream(jetstream, queue::jetstream::AsideStreamSettings(*queue, settings)));
  }
}

void CheckStreams(nats::JetStream& jetstream, const NatsCheckOptions& care, Findings* findings) {
  queue::jetstream::Settings settings;
  settings.replicas = care.replicas;
  findings->push_back(
      CompareStream(jetstream, sync::jetstream::BucketConfig(care.bucket, care.replicas)));
  findings->push_back(CompareOnceThere(jetstream,
                                       blob::jetstream::BucketConfig(care.bucket, care.replicas),
                                       "content that it keeps"));
  // It is in the server's memory, and goes with it.
  findings->push_back(
      CompareOnceThere(jetstream, queue::jetstream::AttemptsStreamSettings(settings), "attempts"));
  CheckQueues(jetstream, settings, findings);
}

// One for each server. Answers the first version that cannot sync; empty: all can, as far as one
// hears.
std::string CheckVersions(const std::string& urls, Findings* findings) {
  std::string cannot;
  for (const std::string& address : nats::AddressesIn(urls)) {
    const std::string what = absl::StrCat("NATS server ", address);
    const absl::StatusOr<std::string> version = nats::ServerVersion(address, kCallTimeout);
    if (!version.ok()) {
      findings->push_back({Health::kUnknown, what, std::string(version.status().message())});
    } else if (nats::CanSyncAlways(*version)) {
      findings->push_back(
          {Health::kOk, what,
           absl::StrCat("has version ", *version, ", which can sync before it acknowledges")});
    } else {
      findings->push_back(
          {Health::kOk, what,
           absl::StrCat("has version ", *version,
                        ", which cannot sync before it acknowledges: 2.10 and later can")});
      if (cannot.empty()) cannot = *version;
    }
  }
  return cannot;
}

// What is promised, and can be kept only if the servers sync; `cannot` as of CheckVersions. No
// client can ask a server how often it does.
Finding WhatIsPromised(const std::string& cannot) {
  if (cannot.empty()) {
    return {
        Health::kOk, "acknowledgements",
        "are said to survive a power cut: they do where the servers have sync_interval: always"};
  }
  return {Health::kWrong, "acknowledgements",
          absl::StrCat("are said to survive a power cut, which server version ", cannot,
                       " cannot promise"),
          "run nats-server 2.10 or later with sync_interval: always, or the services with "
          "--ack-survives process"};
}

Finding WhatSurvives(const NatsCheckOptions& care, const std::string& cannot) {
  if (care.ack_survives == queue::Survives::kPower) return WhatIsPromised(cannot);
  const std::string if_synced =
      cannot.empty() ? "only where it has sync_interval: always" : "never with this version";
  if (care.replicas >= 3) {
    return {Health::kOk, "acknowledgements",
            absl::StrCat("survive the end of ", care.replicas / 2, " of ", care.replicas,
                         " servers; a power cut of most of them at a time ", if_synced)};
  }
  return {Health::kWarning, "acknowledgements",
          absl::StrCat("survive the end of the server, but a power cut ", if_synced),
          absl::StrCat(cannot.empty() ? "set that" : "run 2.10 or later with sync_interval: always",
                       ", or run three servers and the services with --replicas 3")};
}

}  // namespace

Findings CheckNats(const NatsCheckOptions& care) {
  if (care.url.empty()) {
    return {
        {Health::kUnknown, "streams",
         "the doctor has not checked the NATS server, its streams, and what its acknowledgements "
         "survive",
         "say --nats URL, and --bucket, --replicas and --ack-survives where the services have "
         "them; a mesh of one process may have no NATS server"}};
  }
  const std::string what = absl::StrCat("NATS server ", nats::WithoutSecrets(care.url));
  nats::ConnectionOptions options = care.connection;
  options.name = "muster doctor";
  const auto connection = nats::Connection::Open(care.url, options);
  if (!connection.ok()) {
    return {{Health::kWrong, what, std::string(connection.status().message()),
             "check that it runs, and that the URL and the credentials are right"}};
  }
  nats::JetStream jetstream(connection->get(), kCallTimeout);
  if (const absl::Status enabled = jetstream.ApiLevel().status(); !enabled.ok()) {
    return {{Health::kWrong, what, std::string(enabled.message())}};
  }
  Findings findings = {{Health::kOk, what, "answers, and runs JetStream"}};
  const std::string cannot = CheckVersions(care.url, &findings);
  CheckStreams(jetstream, care, &findings);
  findings.push_back(WhatSurvives(care, cannot));
  return findings;
}

}  // namespace muster::cli
