// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/replay/oracle.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/decimal.h"
#include "muster/base/fingerprint.h"

namespace muster::scaling::replay {

namespace {

// Whether the line from a to b is steeper than the line from b to c.
bool BendsDown(const StringCorner& a, const StringCorner& b, const StringCorner& c) {
  return base::Int128{b.y - a.y} * (c.x - b.x) > base::Int128{c.y - b.y} * (b.x - a.x);
}

bool BendsUp(const StringCorner& a, const StringCorner& b, const StringCorner& c) {
  return base::Int128{b.y - a.y} * (c.x - b.x) < base::Int128{c.y - b.y} * (b.x - a.x);
}

// From its corner on, the string may still go anywhere between two chains: under the upper wall the
// one that bends up only (its greatest convex minorant), over the lower wall the one that bends
// down only. Where a wall forces one chain across the other, the string bends there for good.
class Funnel {
 public:
  explicit Funnel(StringCorner start) : corners_{start} {}

  void UnderUpper(const StringCorner& point) { Add(point, BendsDown, &upper_, &lower_); }
  void OverLower(const StringCorner& point) { Add(point, BendsUp, &lower_, &upper_); }

  // The walls meet in `last`, so that both chains are the straight way to it by now.
  std::vector<StringCorner> End(const StringCorner& last) {
    if (corners_.back().x != last.x) corners_.push_back(last);
    return std::move(corners_);
  }

 private:
  using Bends = bool (*)(const StringCorner&, const StringCorner&, const StringCorner&);

  void Add(const StringCorner& point, Bends wrong, std::deque<StringCorner>* own,
           std::deque<StringCorner>* other) {
    while (!own->empty() && wrong(Before(*own), own->back(), point)) own->pop_back();
    if (own->empty()) {
      // Where the straight way to the point is cut off by the other chain, it goes round that.
      while (!other->empty() && wrong(corners_.back(), other->front(), point)) {
        corners_.push_back(other->front());
        other->pop_front();
      }
    }
    own->push_back(point);
  }

  const StringCorner& Before(const std::deque<StringCorner>& chain) const {
    return chain.size() > 1 ? chain[chain.size() - 2] : corners_.back();
  }

  std::vector<StringCorner> corners_;
  std::deque<StringCorner> upper_;
  std::deque<StringCorner> lower_;
};

}  // namespace

std::vector<StringCorner> PullTaut(absl::Span<const int64_t> lower,
                                   absl::Span<const int64_t> upper) {
  Funnel funnel({0, upper[0]});
  const auto size = static_cast<int64_t>(upper.size());
  for (int64_t x = 1; x < size; ++x) {
    funnel.UnderUpper({x, upper[static_cast<size_t>(x)]});
    funnel.OverLower({x, lower[static_cast<size_t>(x)]});
  }
  return funnel.End({size - 1, upper.back()});
}

namespace {

// The SLA in whole seconds, rounded up so that the oracle's cost stays a lower bound.
int64_t SlaSeconds(const SimOptions& options) {
  return std::max<int64_t>(1, absl::ToInt64Seconds(absl::Ceil(options.sla, absl::Seconds(1))));
}

// For each second x, the items that arrived before it (upper) and the items that must be done by
// then (lower).
struct Tube {
  std::vector<int64_t> upper;
  std::vector<int64_t> lower;
};

Tube MakeTube(const std::vector<SecondOfTrace>& seconds, int64_t sla_seconds) {
  Tube tube;
  const int64_t last = seconds.empty() ? 0 : seconds.back().second;
  const auto size = static_cast<size_t>(last + sla_seconds + 1);
  tube.upper.assign(size, 0);
  for (const SecondOfTrace& second : seconds) {
    tube.upper[static_cast<size_t>(second.second) + 1] += second.items;
  }
  for (size_t x = 1; x < size; ++x) tube.upper[x] += tube.upper[x - 1];
  tube.lower.assign(size, 0);
  const auto lag = static_cast<size_t>(sla_seconds - 1);
  for (size_t x = lag; x < size; ++x) tube.lower[x] = tube.upper[x - lag];
  return tube;
}

// Walks along the rates of the string and decides for each level whether to keep it.
class LevelFill {
 public:
  LevelFill(double cold_start_seconds, Oracle* oracle)
      : cold_start_seconds_(cold_start_seconds), oracle_(oracle) {}

  void Go(int64_t second, double replicas) {
    Change(second, replicas - level_);
    if (replicas < level_) {
      dropped_.push_back({level_, second});
    } else {
      RaiseTo(second, replicas);
    }
    level_ = replicas;
  }

  void End(int64_t second) {
    Go(second, 0);
    std::sort(changes_.begin(), changes_.end());
    double replicas = 0;
    for (size_t i = 0; i < changes_.size();) {
      const int64_t at = changes_[i].first;
      for (; i < changes_.size() && changes_[i].first == at; ++i) replicas += changes_[i].second;
      oracle_->steps.push_back({at, std::max(0.0, replicas)});
    }
  }

 private:
  // Levels up to `high` that went down at `second`, from the next lower entry's high on.
  struct Dropped {
    double high;
    int64_t second;
  };

  void RaiseTo(int64_t second, double replicas) {
    while (level_ < replicas && !dropped_.empty()) {
      const Dropped& drop = dropped_.back();
      const double reached = std::min(replicas, drop.high);
      Resume(drop.second, second, reached - level_);
      level_ = reached;
      if (reached == drop.high) dropped_.pop_back();
    }
    oracle_->starts += replicas - level_;
  }

  void Resume(int64_t dropped, int64_t second, double height) {
    const auto gap = static_cast<double>(second - dropped);
    if (gap > cold_start_seconds_) {
      oracle_->starts += height;
      return;
    }
    oracle_->held_seconds += height * gap;
    Change(dropped, height);
    Change(second, -height);
  }

  void Change(int64_t second, double by) {
    if (by != 0) changes_.emplace_back(second, by);
  }

  const double cold_start_seconds_;
  Oracle* const oracle_;
  double level_ = 0;
  std::vector<Dropped> dropped_;  // lowest levels last
  std::vector<std::pair<int64_t, double>> changes_;
};

// Counts when each item is done, one straight piece of the string and one cohort at a time.
class OracleLatencies {
 public:
  OracleLatencies(const Oracle& oracle, int64_t service_us, LatencyHistogram* latencies)
      : corners_(oracle.service), service_us_(service_us), latencies_(latencies) {}

  void Take(const SecondOfTrace& cohort) {
    const int64_t end = done_ + cohort.items;
    while (done_ < end) {
      while (corners_[corner_ + 1].y <= done_) ++corner_;
      const int64_t until = std::min(end, corners_[corner_ + 1].y);
      latencies_->AddRange(Latency(done_ + 1, cohort), Latency(until, cohort), until - done_);
      done_ = until;
    }
  }

 private:
  int64_t Latency(int64_t item, const SecondOfTrace& cohort) const {
    const StringCorner& from = corners_[corner_];
    const StringCorner& to = corners_[corner_ + 1];
    const base::Int128 way = base::Int128{item - from.y} * (to.x - from.x) * kSecondUs;
    const auto done_us = from.x * kSecondUs + static_cast<int64_t>(way / (to.y - from.y));
    return std::max(done_us - cohort.second * kSecondUs, service_us_);
  }

  const std::vector<StringCorner>& corners_;
  const int64_t service_us_;
  LatencyHistogram* const latencies_;
  size_t corner_ = 0;
  int64_t done_ = 0;
};

std::string HashOf(const Oracle& oracle) {
  std::string corners;
  for (const StringCorner& corner : oracle.service) {
    absl::StrAppend(&corners, corner.x, " ", corner.y, "\n");
  }
  return base::Fingerprint(corners).ToHex();
}

void ShowOracle(const Oracle& oracle, const std::vector<SecondOfTrace>& seconds,
                const SeriesSink& sink) {
  size_t step = 0;
  size_t corner = 0;
  size_t next = 0;
  int64_t come = 0;
  double replicas = 0;
  const int64_t last = oracle.service.back().x;
  for (int64_t second = 0; second <= last; ++second) {
    int64_t arrived = 0;
    for (; next < seconds.size() && seconds[next].second <= second; ++next) {
      arrived += seconds[next].items;
    }
    come += arrived;
    for (; step < oracle.steps.size() && oracle.steps[step].second <= second; ++step) {
      replicas = oracle.steps[step].replicas;
    }
    while (corner + 2 < oracle.service.size() && oracle.service[corner + 1].x <= second) ++corner;
    const StringCorner& from = oracle.service[corner];
    const StringCorner to = oracle.service.size() > 1 ? oracle.service[corner + 1] : from;
    const int64_t span = std::max<int64_t>(1, to.x - from.x);
    const base::Int128 way = base::Int128{to.y - from.y} * (second - from.x);
    sink({second, arrived, come - from.y - static_cast<int64_t>(way / span), replicas, 0});
  }
}

}  // namespace

Oracle FindOracle(const Trace& trace, const SimOptions& options) {
  Oracle oracle;
  const Tube tube = MakeTube(BySecond(trace), SlaSeconds(options));
  oracle.service = PullTaut(tube.lower, tube.upper);
  const double rate = options.rate();
  LevelFill fill(absl::ToDoubleSeconds(options.cold_start), &oracle);
  for (size_t i = 1; i < oracle.service.size(); ++i) {
    const StringCorner& from = oracle.service[i - 1];
    const StringCorner& to = oracle.service[i];
    fill.Go(from.x, static_cast<double>(to.y - from.y) / static_cast<double>(to.x - from.x) / rate);
  }
  fill.End(oracle.service.back().x);
  oracle.work_seconds = static_cast<double>(trace.items) / rate;
  oracle.cost_seconds = oracle.work_seconds + oracle.held_seconds +
                        oracle.starts * absl::ToDoubleSeconds(options.cold_start);
  return oracle;
}

Metrics MeasureOracle(const Oracle& oracle, const Trace& trace, const SimOptions& options,
                      const SeriesSink& sink) {
  Metrics metrics;
  metrics.items = trace.items;
  metrics.replica_seconds = oracle.cost_seconds;
  metrics.work_seconds = oracle.work_seconds;
  metrics.ready_seconds = oracle.work_seconds + oracle.held_seconds;
  metrics.actions = static_cast<int64_t>(oracle.steps.size());
  metrics.decision_hash = HashOf(oracle);
  const std::vector<SecondOfTrace> seconds = BySecond(trace);
  OracleLatencies latencies(oracle, absl::ToInt64Microseconds(options.service_time),
                            &metrics.latencies);
  for (const SecondOfTrace& second : seconds) latencies.Take(second);
  if (options.service_time > options.sla) metrics.violations = metrics.items;
  if (sink) ShowOracle(oracle, seconds, sink);
  return metrics;
}

}  // namespace muster::scaling::replay
