// SPDX-License-Identifier: Apache-2.0
#include "muster/actuator/kubernetes/pod_cache.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/kubernetes/scripted_server.h"

namespace muster::actuator::kubernetes {
namespace {

using muster::kubernetes::testing::Respond;
using muster::kubernetes::testing::RespondAndHang;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr char kList[] = R"({"metadata": {"resourceVersion": "5"},
                             "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]})";
constexpr char kChanges[] =
    R"({"type": "DELETED", "object": {"metadata": {"name": "a", "resourceVersion": "6"}}})"
    "\n"
    R"({"type": "ADDED", "object": {"metadata": {"name": "c", "resourceVersion": "7"}}})"
    "\n";

class PodCacheTest : public ::testing::Test {
 protected:
  void Start() { pods_ = std::make_unique<PodCache>(client_.get(), "home", "app=x", &clock_); }
  // Returns the names, or "-" while they are not up to date.
  std::string Names() {
    const auto current = pods_->Current();
    if (!current.has_value()) return "-";
    std::string names;
    for (const muster::kubernetes::Pod& pod : *current) absl::StrAppend(&names, pod.name);
    return names;
  }
  // Polls, because another thread receives the change and only its effect is visible.
  void Await(const std::string& names) {
    while (Names() != names) base::LetOthersRun();
  }

  base::FakeClock clock_;
  muster::kubernetes::testing::ScriptedServer server_;
  std::unique_ptr<muster::kubernetes::Client> client_ =
      server_.NewClient(&clock_, {.max_attempts = 1});
  std::unique_ptr<PodCache> pods_;
};

TEST_F(PodCacheTest, KnowsWhatTheWatchTells) {
  server_.Expect(Respond(200, kList));
  server_.Expect(RespondAndHang(kChanges));
  Start();
  Await("bc");
}

TEST_F(PodCacheTest, KnowsNothingBeforeTheFirstList) {
  Start();
  server_.Await(1);
  EXPECT_EQ(Names(), "-");
}

TEST_F(PodCacheTest, SaysOnceThatTheWatchBrokeAndKnowsNothingUntilItIsBack) {
  const base::LogCapture log;
  server_.Expect(Respond(200, kList));
  server_.Expect(Respond(403, R"({"message": "no"})"));
  server_.Expect(Respond(403, R"({"message": "no"})"));
  server_.Expect(RespondAndHang(kChanges));
  Start();
  for (int i = 0; i < 2; ++i) {
    clock_.AwaitSleepers(1);
    EXPECT_EQ(Names(), "-");
    clock_.Advance(clock_.NextDeadline() - clock_.Monotonic());
  }
  Await("bc");
  ASSERT_EQ(log.lines().size(), 1u);
  EXPECT_THAT(log.lines(), Contains(HasSubstr("verb 'watch' on resource 'pods'")));
}

TEST_F(PodCacheTest, DoesNotTrustALongSilence) {
  server_.Expect(Respond(200, kList));
  server_.Expect(RespondAndHang(kChanges));
  Start();
  Await("bc");
  clock_.Advance(kMaxSilence);
  EXPECT_EQ(Names(), "bc");
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Names(), "-");
}

}  // namespace
}  // namespace muster::actuator::kubernetes
