// SPDX-License-Identifier: Apache-2.0

// Random targets for property tests of policies. MUSTER_TEST_SEED=random takes other targets; a
// failure shows the smallest target that fails, and how to run it again.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rapidcheck.h"
#include "rapidcheck/detail/Configuration.h"
#include "rapidcheck/detail/TestListenerAdapter.h"
#include "tests/fakes/base/test_seed.h"
#include "tests/fakes/scaling/policy/target_fixture.h"

namespace muster::scaling::policy {

inline constexpr int kTargets = 3000;

// Silent while all goes well, unlike rc::check.
template <typename Property>
void CheckEvery(Property property) {
  rc::detail::Configuration defaults;
  defaults.testParams.seed = base::testing::TestSeed();
  defaults.testParams.maxSuccess = base::testing::CaseCount(kTargets);
  defaults.testParams.maxDiscardRatio = 100;
  const char* params = getenv("RC_PARAMS");
  const auto configuration =
      rc::detail::configFromString(params == nullptr ? "" : params, defaults);
  rc::detail::TestMetadata metadata;
  metadata.id = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  rc::detail::TestListenerAdapter silent;
  const rc::detail::TestResult result = rc::detail::checkTestable(
      property, metadata, configuration.testParams, silent, configuration.reproduce);
  if (result.template is<rc::detail::SuccessResult>()) return;
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  FAIL() << text.str() << "\nTo run it again:  RC_PARAMS=\"seed=" << configuration.testParams.seed
         << "\"";
}

// A target with a history. Tests vary its parts one by one.
struct Scene {
  int sla = 300;
  int aim = 0;  // 0: none
  int patience_percent = 50;
  int cold_start = 30;
  int service_ms = 1000;
  int milli_rate = 40'000;  // items per second and replica, in thousandths
  int ready = 0;
  int idle = 0;
  std::vector<int> starting;              // seconds from now, late ones below 0
  std::vector<std::pair<int, int>> work;  // seconds ago, items
  int tasks = 1, max_tasks = 1;
  int cpu_percent = 0;
  int throttled_percent = 0;
  int parked = 0;
  int min = 0, max = 1000;
  int looks = 0;     // the looks before the decisive one
  int64_t more = 0;  // items added at the last moment
};

inline void Show(const Scene& s, std::ostream& out) {
  out << "sla " << s.sla << " aim " << s.aim << " patience " << s.patience_percent
      << "% cold start " << s.cold_start << " service " << s.service_ms << " ms rate "
      << s.milli_rate << "/1000 ready " << s.ready << " idle " << s.idle << " tasks " << s.tasks
      << " of " << s.max_tasks << " cpu " << s.cpu_percent << "% throttled " << s.throttled_percent
      << "% parked " << s.parked << " bounds " << s.min << ".." << s.max << " looks " << s.looks
      << " more " << s.more << " starting";
  for (int seconds : s.starting) out << ' ' << seconds;
  out << " work";
  for (const auto& [ago, items] : s.work) out << ' ' << items << '@' << ago;
}

inline Scene AnyScene() {
  using rc::gen::inRange;
  Scene s;
  s.sla = *inRange(1, 900);
  s.aim = *inRange(0, 3) == 0 ? *inRange(1, 900) : 0;
  s.patience_percent = *inRange(0, 101);
  s.cold_start = *inRange(0, 120);
  s.service_ms = *inRange(0, 5) == 0 ? *inRange(1, 600'000) : *inRange(1, 2000);
  s.milli_rate = *inRange(0, 20) == 0 ? 0 : *inRange(1, 100'000);
  s.ready = *inRange(0, 50);
  s.starting = *rc::gen::container<std::vector<int>>(inRange(-60, 120));
  s.work = *rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(inRange(0, 1000), inRange(1, 100'000)));
  s.idle = *inRange(0, s.ready + 1);
  s.tasks = *inRange(1, 16);
  s.max_tasks = s.tasks + *inRange(0, 16);
  s.cpu_percent = *inRange(0, 120);
  s.throttled_percent = *inRange(0, 4) == 0 ? *inRange(0, 10) : 0;
  s.parked = *inRange(0, 4) == 0 ? *inRange(1, 30) : 0;
  s.min = *inRange(0, 10);
  s.max = *inRange(0, 2) == 0 ? *inRange(0, 60) : 1'000'000;
  s.looks = *inRange(0, 40);
  return s;
}

inline TargetFixture Play(const Scene& s) {
  std::ostringstream text;
  Show(s, text);
  RC_LOG() << text.str() << "\n";
  TargetFixture target;
  target.options.sla = absl::Seconds(s.sla);
  if (s.aim > 0) target.options.aim = absl::Seconds(s.aim);
  target.options.patience = s.patience_percent / 100.0;
  Observation& seen = target.observation;
  seen.estimates.items_per_second = s.milli_rate / 1000.0;
  seen.estimates.service_time = absl::Milliseconds(s.service_ms);
  seen.estimates.cold_start = absl::Seconds(s.cold_start);
  seen.estimates.release = absl::Seconds(1);
  seen.estimates.cpu_share = s.cpu_percent / 100.0;
  seen.estimates.throttled_share = s.throttled_percent / 100.0;
  seen.bounds = {s.min, s.max, 0};
  seen.fleet.parked = s.parked;
  seen.fleet.tasks = s.tasks;
  seen.fleet.max_tasks = s.max_tasks;
  target.Ready(s.ready);
  target.Idle(s.idle, -5);
  for (int seconds : s.starting) seen.fleet.starting.push_back(target.At(s.looks + seconds));
  int64_t waiting = 0;
  for (const auto& [ago, items] : s.work) {
    target.Announce(-ago, items);
    waiting += items;
  }
  target.Read(waiting);
  if (s.looks > 0) target.LookUntil(s.looks);
  if (s.more > 0) {
    target.Announce(s.looks, s.more);
    target.Read(waiting + s.more);
  }
  return target;
}

}  // namespace muster::scaling::policy
