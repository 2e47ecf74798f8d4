// The readings of many homes' sensors, made up from a seed.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::example {

struct Reading {
  std::string home;    // the key: a home's readings stay in order
  std::string sensor;  // "motion", "door", "window" or "glass"
  int64_t value = 0;   // 0 to 999; 990 and more is an alarm

  bool is_alarm() const { return value >= 990; }
};

// The reading number `index` of `homes` homes; the same for the same seed.
Reading MakeReading(uint64_t seed, uint64_t index, uint64_t homes);

// The body of an event: "SENSOR VALUE".
std::string Encode(const Reading& reading);
// InvalidArgument: it is none.
absl::StatusOr<Reading> Decode(absl::string_view home, absl::string_view body);

// What is counted of readings.
struct Totals {
  int64_t readings = 0;
  int64_t alarms = 0;
  int64_t sum = 0;  // of the values

  void Add(const Reading& reading);
  bool operator==(const Totals&) const = default;
};

}  // namespace muster::example
