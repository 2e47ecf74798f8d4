#include "examples/smart_homes/readings.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster::example {
namespace {

constexpr const char* kSensors[] = {"motion", "door", "window", "glass"};

// SplitMix64.
uint64_t Mix(uint64_t z) {
  z += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

Reading MakeReading(uint64_t seed, uint64_t index, uint64_t homes) {
  const uint64_t drawn = Mix(Mix(seed) + index);
  return {.home = absl::StrCat("home-", drawn % homes),
          .sensor = kSensors[(drawn >> 32) % 4],
          .value = static_cast<int64_t>((drawn >> 40) % 1000)};
}

std::string Encode(const Reading& reading) {
  return absl::StrCat(reading.sensor, " ", reading.value);
}

absl::StatusOr<Reading> Decode(absl::string_view home, absl::string_view body) {
  const size_t space = body.find(' ');
  Reading reading{.home = std::string(home), .sensor = std::string(body.substr(0, space))};
  if (space == absl::string_view::npos ||
      !absl::SimpleAtoi(body.substr(space + 1), &reading.value)) {
    return absl::InvalidArgumentError(absl::StrCat("no reading: '", body, "'"));
  }
  return reading;
}

void Totals::Add(const Reading& reading) {
  ++readings;
  if (reading.is_alarm()) ++alarms;
  sum += reading.value;
}

}  // namespace muster::example
