// SPDX-License-Identifier: Apache-2.0

// AppendLines: standard input as the events of a stream, one a line.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "muster/stream/event_producer.h"

namespace muster::cli {

struct LineOptions {
  int partition = stream::EventProducer::kAnyPartition;
  std::string key;        // of all events
  std::string separator;  // what ends the key in each line; empty: lines have no key
};

// Sends while it reads, so that any number of lines goes through, and returns when all are stored.
// `*sent` counts the events that are, also after an error, which names the line that failed first.
// InvalidArgument: no stream takes the event of that line; those before it are sent, and none
// behind it. After an error of the store, events behind the line may be stored, in other
// partitions. Another error: the input cannot be read any more.
absl::Status AppendLines(stream::EventProducer* producer, const LineOptions& options,
                         int64_t* sent);

}  // namespace muster::cli
