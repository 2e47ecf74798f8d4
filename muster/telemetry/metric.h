// SPDX-License-Identifier: Apache-2.0

// Metric: what is known of a metric before anything is recorded: its name, kind, unit, labels and
// help. catalogue.h has all of them.
//
// The first label of a metric is open: its values (queues, pools, methods) come and go while the
// service runs. The others have few values, which the code names.
#pragma once

#include <array>
#include <cstddef>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace muster::telemetry {

enum class Kind {
  kCounter,    // only grows, from 0 at the start of the process
  kGauge,      // a value of this moment
  kHistogram,  // how many values lie below each of some bounds, and their sum
};

absl::string_view KindName(Kind kind);  // "counter" …

// How readings of one label set that come from several places, or share the label value "other",
// become one.
enum class Fold { kSum, kMax, kMin };

// The services that have a metric, as bits.
enum Service : unsigned {
  kInitiator = 1,
  kController = 2,
  kProcessor = 4,
  kScalingAgent = 8,
  kEveryRole = 15,  // of the mesh
  kQueueGateway = 16,
  kEveryService = 31,
};

// An entry of the catalogue, with any number of labels.
struct Metric {
  absl::string_view name;
  Kind kind = Kind::kCounter;
  absl::string_view unit;  // "seconds", "bytes"; else what is counted
  unsigned services = 0;
  absl::Span<const absl::string_view> labels;
  absl::string_view help;            // a sentence, without its full stop
  absl::Span<const double> buckets;  // upper bounds, ascending; of a histogram
  Fold fold = Fold::kSum;
};

// A metric with its kind and number of labels in its type, so that the compiler checks both where
// it is used. Metrics are constants: a Metric points to the label names in them.
template <Kind kKind, size_t kLabels>
struct TypedMetric {
  absl::string_view name;
  absl::string_view unit;
  unsigned services = 0;
  std::array<absl::string_view, kLabels> labels;
  absl::string_view help;
  absl::Span<const double> buckets = {};
  Fold fold = Fold::kSum;

  Metric entry() const { return {name, kKind, unit, services, labels, help, buckets, fold}; }
};

template <size_t kLabels>
using CounterMetric = TypedMetric<Kind::kCounter, kLabels>;
template <size_t kLabels>
using GaugeMetric = TypedMetric<Kind::kGauge, kLabels>;
template <size_t kLabels>
using HistogramMetric = TypedMetric<Kind::kHistogram, kLabels>;

}  // namespace muster::telemetry
