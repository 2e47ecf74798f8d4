// SPDX-License-Identifier: Apache-2.0

// The layout of event streams in JetStream: one stream of the server for each partition, so that
// the server's sequence is the offset, and its first and last sequence are the extent.
//
//   partition   stream of the server                 subject
//   0           EVENTS_<bucket>_<stream>             muster.events.<bucket>.<stream>.0
//   n > 0       EVENTS_<bucket>_<stream>_<id>_<n>    muster.events.<bucket>.<stream>.<id>.<n>
//
// The data of a message is the event's content (event_codec.h); its time is the server's. `id` is
// chosen at random when the stream is made. Partition 0 is made last and removed first, and its
// description holds the options: an event stream is there exactly if its partition 0 is. Since its
// name has no id, the server lets one of several makers win. Partitions that a crash left behind
// have another id than the stream of their name, and are removed when they are old.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/nats/jetstream.h"
#include "muster/stream/event_stream_store.h"
#include "nlohmann/json_fwd.hpp"

namespace muster::stream::jetstream {

// An event stream as its partition 0 describes it.
struct Description {
  std::string id;
  StreamOptions options;
};

std::string ServerStreamOf(absl::string_view bucket, absl::string_view stream,
                           const Description& description, int partition);
std::string SubjectOf(absl::string_view bucket, absl::string_view stream,
                      const Description& description, int partition);
// The subjects of partition 0 of all streams, and of the other partitions of one.
std::string FirstPartitionsOf(absl::string_view bucket);
std::string OtherPartitionsOf(absl::string_view bucket, absl::string_view stream);

// The event stream whose partition 0 is `server_stream`; nullopt when it is none.
std::optional<std::string> StreamNameIn(absl::string_view bucket, absl::string_view server_stream);
// The id in the name of another partition; empty when it is none.
std::string IdIn(absl::string_view bucket, absl::string_view stream,
                 absl::string_view server_stream);

// How the server is to keep a partition. `allows_atomic`: it takes atomic batches.
nlohmann::json ConfigOf(absl::string_view bucket, absl::string_view stream,
                        const Description& description, int partition, int replicas,
                        bool allows_atomic);
// The description in the configuration of partition 0; nullopt when it is none of this form.
std::optional<Description> DescriptionIn(const nlohmann::json& config);
// The description of a stream whose partition 0 has a text of an operator's instead: by its other
// settings, and of the names of the other partitions. nullopt: it is a newer muster's, or none of
// muster's, or the names are not those of one stream. `id` is empty if there is one partition, for
// then no name has it.
std::optional<Description> DescriptionWithout(const nlohmann::json& config,
                                              absl::string_view bucket, absl::string_view stream,
                                              const std::vector<std::string>& other_partitions);

// What a partition keeps.
PartitionExtent ExtentOf(const nats::StreamState& state);

// What the server says of a message that a consumer delivers, in its reply subject.
struct Delivery {
  absl::string_view consumer;
  int64_t sequence = 0;
  absl::Time time;
  int64_t pending = 0;  // that the consumer has yet to deliver
};
std::optional<Delivery> DeliveryIn(absl::string_view reply);

}  // namespace muster::stream::jetstream
