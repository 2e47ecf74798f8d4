// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/replay/metrics.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "muster/base/fingerprint.h"

namespace muster::scaling::replay {

namespace {

constexpr int64_t kFinestUs = 1'000;
// The bins for each factor of two, each 1/1024 to 1/2048 of a latency wide; below them lie as many
// of the finest bins.
constexpr int kBinsBits = 10;
constexpr int64_t kBins = int64_t{1} << kBinsBits;

// Bins are numbered in units of kFinestUs: [0, 2048) one each, [2048, 4096) two each, and so on.
size_t BinOf(int64_t latency_us) {
  const auto unit = static_cast<uint64_t>(latency_us / kFinestUs);
  const int shift = std::max(0, static_cast<int>(std::bit_width(unit)) - (kBinsBits + 1));
  return static_cast<size_t>(shift) * kBins + (unit >> shift);
}

int64_t EndOfBin(size_t bin) {
  const auto at = static_cast<int64_t>(bin);
  const int64_t shift = at < 2 * kBins ? 0 : at / kBins - 1;
  return (((at - shift * kBins + 1) << shift) * kFinestUs) - 1;
}

}  // namespace

LatencyHistogram::LatencyHistogram() = default;

void LatencyHistogram::Add(int64_t latency_us, int64_t items) {
  if (items <= 0) return;
  const size_t bin = BinOf(latency_us);
  if (bin >= bins_.size()) bins_.resize(bin + 1);
  bins_[bin] += items;
  items_ += items;
  max_us_ = std::max(max_us_, latency_us);
}

void LatencyHistogram::AddRange(int64_t first_us, int64_t last_us, int64_t items) {
  if (items <= 0) return;
  const int64_t portions = std::min(items, kPortions);
  const int64_t length = last_us - first_us;
  for (int64_t i = 0; i < portions; ++i) {
    const int64_t share = items / portions + (i < items % portions ? 1 : 0);
    // The middle of the portion, but the very items where each is a portion of its own.
    const int64_t at = portions == items && items > 1
                           ? first_us + length * i / (items - 1)
                           : first_us + length * (2 * i + 1) / (2 * portions);
    Add(at, share);
  }
  max_us_ = std::max({max_us_, first_us, last_us});
}

void LatencyHistogram::Merge(const LatencyHistogram& other) {
  if (bins_.size() < other.bins_.size()) bins_.resize(other.bins_.size());
  for (size_t bin = 0; bin < other.bins_.size(); ++bin) bins_[bin] += other.bins_[bin];
  items_ += other.items_;
  max_us_ = std::max(max_us_, other.max_us_);
}

int64_t LatencyHistogram::Percentile(double share) const {
  const auto wanted =
      std::max<int64_t>(1, static_cast<int64_t>(std::ceil(share * static_cast<double>(items_))));
  int64_t passed = 0;
  for (size_t bin = 0; bin < bins_.size(); ++bin) {
    passed += bins_[bin];
    if (passed >= wanted) return std::min(EndOfBin(bin), max_us_);
  }
  return max_us_;
}

namespace {

double Ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

double Metrics::violation_ratio() const {
  return Ratio(static_cast<double>(violations), static_cast<double>(items));
}

double Metrics::cost_over_work() const { return Ratio(replica_seconds, work_seconds); }

double Metrics::idle_share() const {
  return std::max(0.0, Ratio(ready_seconds - work_seconds, ready_seconds));
}

void Metrics::Merge(const Metrics& other) {
  items += other.items;
  violations += other.violations;
  latencies.Merge(other.latencies);
  replica_seconds += other.replica_seconds;
  ready_seconds += other.ready_seconds;
  work_seconds += other.work_seconds;
  actions += other.actions;
  decision_hash = base::Fingerprint(absl::StrCat(decision_hash, other.decision_hash)).ToHex();
}

}  // namespace muster::scaling::replay
