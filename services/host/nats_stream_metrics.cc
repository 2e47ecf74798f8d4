// SPDX-License-Identifier: Apache-2.0
#include "services/host/nats_stream_metrics.h"

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/telemetry/catalogue.h"

namespace muster::host {
namespace {

absl::Status Read(backend::Backends* backends, telemetry::Samples* samples) {
  backend::NatsKept kept;
  const absl::Status read = backends->ReadStreams(&kept);
  for (const backend::NatsStream& stream : kept.streams) {
    samples->Set(telemetry::kNatsStreamMessages, {stream.name},
                 static_cast<double>(stream.messages));
    samples->Set(telemetry::kNatsStreamBytes, {stream.name}, static_cast<double>(stream.bytes));
    samples->Set(telemetry::kNatsStreamFirstAge, {stream.name},
                 absl::ToDoubleSeconds(stream.first_age));
    samples->Set(telemetry::kNatsStreamConsumers, {stream.name},
                 static_cast<double>(stream.consumers));
    if (stream.max_bytes > 0) {
      samples->Set(telemetry::kNatsStreamLimitUsed, {stream.name},
                   static_cast<double>(stream.bytes) / static_cast<double>(stream.max_bytes));
    }
  }
  if (kept.has_storage) {
    samples->Set(telemetry::kNatsStorage, {"used"}, static_cast<double>(kept.storage_bytes));
    if (kept.max_storage_bytes > 0) {
      samples->Set(telemetry::kNatsStorage, {"limit"}, static_cast<double>(kept.max_storage_bytes));
    }
  }
  return read;
}

}  // namespace

std::unique_ptr<telemetry::Reading> ReadNatsStreams(telemetry::Registry* registry,
                                                    backend::Backends* backends) {
  return telemetry::ReadAtScrape(
      registry, "streams",
      {telemetry::kNatsStreamMessages.entry(), telemetry::kNatsStreamBytes.entry(),
       telemetry::kNatsStreamFirstAge.entry(), telemetry::kNatsStreamConsumers.entry(),
       telemetry::kNatsStreamLimitUsed.entry(), telemetry::kNatsStorage.entry()},
      [backends](telemetry::Samples* samples) { return Read(backends, samples); });
}

}  // namespace muster::host
