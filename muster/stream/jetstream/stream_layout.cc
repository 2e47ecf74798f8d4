// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/jetstream/stream_layout.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"

namespace muster::stream::jetstream {
namespace {

using nlohmann::json;

constexpr absl::string_view kPrefix = "EVENTS_";
constexpr int kFormat = 1;
// The shortest that servers take. Ids of messages matter only within one append.
constexpr absl::Duration kDuplicateWindow = absl::Milliseconds(100);
// Of the description's retention: for ever.
constexpr int64_t kForEver = 0;

int64_t MicrosOf(absl::Duration retention) {
  return retention == absl::InfiniteDuration() ? kForEver : absl::ToInt64Microseconds(retention);
}

std::string DescriptionText(const Description& description) {
  const StreamOptions& options = description.options;
  return json{{"muster-events", kFormat},
              {"id", description.id},
              {"partitions", options.partitions},
              {"retention_us", MicrosOf(options.retention)},
              {"max_bytes", options.max_bytes}}
      .dump();
}

// An integer member of a description, which anyone may have written.
int64_t Number(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : -1;
}

}  // namespace

std::string ServerStreamOf(absl::string_view bucket, absl::string_view stream,
                           const Description& description, int partition) {
  const std::string first = absl::StrCat(kPrefix, bucket, "_", stream);
  return partition == 0 ? first : absl::StrCat(first, "_", description.id, "_", partition);
}

std::string SubjectOf(absl::string_view bucket, absl::string_view stream,
                      const Description& description, int partition) {
  const std::string subject = absl::StrCat("muster.events.", bucket, ".", stream, ".");
  return partition == 0 ? absl::StrCat(subject, 0)
                        : absl::StrCat(subject, description.id, ".", partition);
}

std::string FirstPartitionsOf(absl::string_view bucket) {
  return absl::StrCat("muster.events.", bucket, ".*.0");
}

std::string OtherPartitionsOf(absl::string_view bucket, absl::string_view stream) {
  return absl::StrCat("muster.events.", bucket, ".", stream, ".*.*");
}

std::optional<std::string> StreamNameIn(absl::string_view bucket, absl::string_view server_stream) {
  if (!absl::ConsumePrefix(&server_stream, absl::StrCat(kPrefix, bucket, "_")) ||
      !ValidateStreamName(server_stream).ok()) {
    return std::nullopt;
  }
  return std::string(server_stream);
}

std::string IdIn(absl::string_view bucket, absl::string_view stream,
                 absl::string_view server_stream) {
  if (!absl::ConsumePrefix(&server_stream, absl::StrCat(kPrefix, bucket, "_", stream, "_"))) {
    return "";
  }
  return std::string(server_stream.substr(0, server_stream.find('_')));
}

json ConfigOf(absl::string_view bucket, absl::string_view stream, const Description& description,
              int partition, int replicas, bool allows_atomic) {
  const StreamOptions& options = description.options;
  json config = {
      {"name", ServerStreamOf(bucket, stream, description, partition)},
      {"subjects", {SubjectOf(bucket, stream, description, partition)}},
      {"description", DescriptionText(description)},
      {"retention", "limits"},
      {"discard", "old"},
      {"storage", "file"},
      {"num_replicas", replicas},
      {"max_age", MicrosOf(options.retention) * 1000},
      {"max_bytes", options.max_bytes > 0 ? options.max_bytes : -1},
      {"duplicate_window", absl::ToInt64Nanoseconds(kDuplicateWindow)},
  };
  if (allows_atomic) config["allow_atomic"] = true;
  return config;
}

std::optional<Description> DescriptionIn(const json& config) {
  const auto text = config.find("description");
  if (text == config.end() || !text->is_string()) return std::nullopt;
  const json from = json::parse(text->get<std::string>(), nullptr, /*allow_exceptions=*/false);
  if (!from.is_object() || Number(from, "muster-events") != kFormat) return std::nullopt;
  const auto id = from.find("id");
  if (id == from.end() || !id->is_string()) return std::nullopt;
  const int64_t partitions = Number(from, "partitions"), retention = Number(from, "retention_us");
  if (partitions < 1 || partitions > kMaxPartitions) return std::nullopt;
  Description description;
  description.id = id->get<std::string>();
  description.options.partitions = static_cast<int>(partitions);
  description.options.retention =
      retention == kForEver ? absl::InfiniteDuration() : absl::Microseconds(retention);
  description.options.max_bytes = Number(from, "max_bytes");
  if (!ValidateOptions(description.options).ok()) return std::nullopt;
  return description;
}

std::optional<Description> DescriptionWithout(const json& config, absl::string_view bucket,
                                              absl::string_view stream,
                                              const std::vector<std::string>& other_partitions) {
  const auto text = config.find("description");
  const json from = text != config.end() && text->is_string()
                        ? json::parse(text->get<std::string>(), nullptr, /*allow_exceptions=*/false)
                        : json();
  const bool is_newer = from.is_object() && from.contains("muster-events");
  Description description;
  if (!other_partitions.empty()) description.id = IdIn(bucket, stream, other_partitions.front());
  description.options.partitions = static_cast<int>(other_partitions.size()) + 1;
  const int64_t age_ns = Number(config, "max_age");
  description.options.retention =
      age_ns == 0 ? absl::InfiniteDuration() : absl::Nanoseconds(age_ns);
  description.options.max_bytes = std::max<int64_t>(0, Number(config, "max_bytes"));
  std::set<std::string> wanted;
  for (int i = 1; i < description.options.partitions; ++i) {
    wanted.insert(ServerStreamOf(bucket, stream, description, i));
  }
  const bool is_ours =
      config.value("subjects", json()) == json{SubjectOf(bucket, stream, description, 0)} &&
      wanted == std::set<std::string>(other_partitions.begin(), other_partitions.end());
  if (is_newer || !is_ours || !ValidateOptions(description.options).ok()) return std::nullopt;
  return description;
}

// A server says of a stream without messages that its first sequence is 0, 1, or behind the last.
PartitionExtent ExtentOf(const nats::StreamState& state) {
  PartitionExtent extent;
  extent.next = static_cast<int64_t>(state.last_sequence) + 1;
  extent.first = state.messages == 0 ? extent.next : static_cast<int64_t>(state.first_sequence);
  if (state.last_sequence > 0) extent.last_appended = state.last_time;
  // Each partition is made once in the life of its stream, and a stream that is restored from a
  // backup keeps when it was made.
  if (state.created > absl::UnixEpoch()) {
    extent.incarnation = static_cast<uint64_t>(absl::ToUnixNanos(state.created));
  }
  return extent;
}

// $JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.<of the consumer>.<time>.<pending>, or with
// domain and account before the stream, and more behind.
std::optional<Delivery> DeliveryIn(absl::string_view reply) {
  const std::vector<absl::string_view> tokens = absl::StrSplit(reply, '.');
  if (tokens.size() < 9 || tokens[0] != "$JS" || tokens[1] != "ACK") return std::nullopt;
  const size_t stream = tokens.size() > 9 ? 4 : 2;
  if (tokens.size() < stream + 7) return std::nullopt;
  Delivery delivery{.consumer = tokens[stream + 1], .time = {}};
  int64_t nanos = 0;
  if (!absl::SimpleAtoi(tokens[stream + 3], &delivery.sequence) ||
      !absl::SimpleAtoi(tokens[stream + 5], &nanos) ||
      !absl::SimpleAtoi(tokens[stream + 6], &delivery.pending)) {
    return std::nullopt;
  }
  delivery.time = absl::FromUnixNanos(nanos);
  return delivery;
}

}  // namespace muster::stream::jetstream
