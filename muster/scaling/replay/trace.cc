#include "muster/scaling/replay/trace.h"

#include <algorithm>
#include <map>

#include "muster/base/decimal.h"

namespace muster::scaling::replay {
namespace {

// How many of the items have come before `at_us`.
int64_t ComeBefore(const Arrival& arrival, int64_t at_us) {
  if (at_us <= arrival.at_us) return 0;
  if (at_us - arrival.at_us >= arrival.period_us) return arrival.items;
  // Item j comes at floor(j·period/n): before x where j·period < x·n.
  const base::Int128 reach = base::Int128{at_us - arrival.at_us} * arrival.items;
  return static_cast<int64_t>((reach + arrival.period_us - 1) / arrival.period_us);
}

}  // namespace

std::vector<SecondOfTrace> BySecond(const Trace& trace) {
  std::vector<SecondOfTrace> seconds;
  // Rows are in order, but their periods may reach beyond the next row: those wait here.
  std::map<int64_t, int64_t> open;
  const auto flush_before = [&](int64_t second) {
    while (!open.empty() && open.begin()->first < second) {
      seconds.push_back({open.begin()->first, open.begin()->second});
      open.erase(open.begin());
    }
  };
  for (const Arrival& arrival : trace.arrivals) {
    int64_t second = arrival.at_us / kSecondUs;
    flush_before(second);
    for (int64_t come = 0; come < arrival.items; ++second) {
      const int64_t by_then = ComeBefore(arrival, (second + 1) * kSecondUs);
      if (by_then > come) open[second] += by_then - come;
      come = by_then;
    }
  }
  flush_before(INT64_MAX);
  return seconds;
}

std::vector<Instant> ByInstant(const Trace& trace) {
  std::vector<Instant> instants;
  bool ordered = true;
  const auto add = [&](int64_t at_us, int64_t items) {
    if (!instants.empty() && instants.back().at_us == at_us) {
      instants.back().items += items;
      return;
    }
    ordered &= instants.empty() || instants.back().at_us < at_us;
    instants.push_back({at_us, items});
  };
  for (const Arrival& arrival : trace.arrivals) {
    if (arrival.period_us == 0) {
      add(arrival.at_us, arrival.items);
      continue;
    }
    for (int64_t j = 0; j < arrival.items; ++j) {
      const base::Int128 lapse = base::Int128{arrival.period_us} * j / arrival.items;
      add(arrival.at_us + static_cast<int64_t>(lapse), 1);
    }
  }
  if (!ordered) {
    std::stable_sort(instants.begin(), instants.end(),
                     [](const Instant& a, const Instant& b) { return a.at_us < b.at_us; });
  }
  return instants;
}

}  // namespace muster::scaling::replay
