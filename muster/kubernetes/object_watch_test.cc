// SPDX-License-Identifier: Apache-2.0
#include "muster/kubernetes/object_watch.h"

#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "muster/kubernetes/client.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/kubernetes/scripted_server.h"

namespace muster::kubernetes {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using testing::Hang;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Respond;
using testing::RespondAndHang;

json Object(const std::string& name, const std::string& version) {
  return {{"metadata", {{"name", name}, {"resourceVersion", version}}}};
}

std::string Event(const char* type, const json& object) {
  return json({{"type", type}, {"object", object}}).dump() + "\n";
}

std::string ListOf(const std::vector<json>& items, const std::string& version) {
  return json({{"metadata", {{"resourceVersion", version}}}, {"items", items}}).dump();
}

// Records the reports: "all a b", "changed a", "gone a", "current", "trouble".
class Told final : public WatchListener {
 public:
  void OnAll(const std::vector<json>& objects) override {
    std::string text = "all";
    for (const json& object : objects) absl::StrAppend(&text, " ", NameOf(object));
    Add(text);
  }
  void OnChanged(const json& object) override { Add("changed " + NameOf(object)); }
  void OnGone(const json& object) override { Add("gone " + NameOf(object)); }
  void OnCurrent() override { Add("current"); }
  void OnTrouble(const absl::Status& why) override { Add("trouble"); }

  // Waits for the next report, and returns it.
  std::string Next() {
    base::MutexLock lock(&mu_);
    while (told_.empty()) added_.Wait(&mu_);
    std::string first = std::move(told_.front());
    told_.erase(told_.begin());
    return first;
  }
  // Those that nobody waited for.
  std::vector<std::string> rest() const {
    base::MutexLock lock(&mu_);
    return told_;
  }

 private:
  static std::string NameOf(const json& object) { return TextAt(object, {"metadata", "name"}); }
  void Add(std::string text) {
    base::MutexLock lock(&mu_);
    told_.push_back(std::move(text));
    added_.NotifyAll();
  }

  mutable base::Mutex mu_;
  base::CondVar added_;
  std::vector<std::string> told_ ABSL_GUARDED_BY(mu_);
};

class ObjectWatchTest : public ::testing::Test {
 protected:
  void Start() {
    thread_ = std::jthread([this](const std::stop_token& stop) { watch_.Run(stop); });
  }
  void WakeOnce() {
    clock_.AwaitSleepers(1);
    clock_.Advance(clock_.NextDeadline() - clock_.Monotonic());
  }

  base::FakeClock clock_;
  testing::ScriptedServer server_;
  std::unique_ptr<Client> client_ = server_.NewClient(&clock_, {.max_attempts = 1});
  Told told_;
  ObjectWatch watch_{client_.get(), {kPods, "home", "", ""}, "app=x", &told_, &clock_};
  std::jthread thread_;
};

TEST_F(ObjectWatchTest, ListsThenFollowsFromTheListsVersion) {
  server_.Expect(Respond(200, ListOf({Object("a", "3")}, "10")));
  server_.Expect(RespondAndHang(Event("ADDED", Object("b", "11")) +
                                Event("MODIFIED", Object("a", "12")) +
                                Event("DELETED", Object("b", "13"))));
  Start();
  EXPECT_EQ(told_.Next(), "all a");
  EXPECT_EQ(told_.Next(), "changed b");
  EXPECT_EQ(told_.Next(), "changed a");
  EXPECT_EQ(told_.Next(), "gone b");
  const std::string line = server_.Await(2)[1].line;
  EXPECT_THAT(line, HasSubstr("watch=true"));
  EXPECT_THAT(line, HasSubstr("resourceVersion=10"));
  EXPECT_THAT(line, HasSubstr("labelSelector=app%3Dx"));
}

TEST_F(ObjectWatchTest, ResumesALostConnectionWhereItBroke) {
  server_.Expect(Respond(200, ListOf({}, "10")));
  server_.Expect({"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" +
                  Event("ADDED", Object("a", "11")) + "{\"type\": \"ADD"});
  server_.Expect(RespondAndHang(Event("ADDED", Object("b", "12"))));
  Start();
  EXPECT_EQ(told_.Next(), "all");
  EXPECT_EQ(told_.Next(), "changed a");
  EXPECT_EQ(told_.Next(), "trouble");
  WakeOnce();
  EXPECT_EQ(told_.Next(), "changed b");
  EXPECT_THAT(server_.Await(3)[2].line, HasSubstr("resourceVersion=11"));
}

TEST_F(ObjectWatchTest, ResumesAfterABookmarkWithoutHearingTheOldAgain) {
  server_.Expect(Respond(200, ListOf({}, "10")));
  server_.Expect(Respond(200, Event("BOOKMARK", Object("", "50"))));
  server_.Expect(Hang());
  Start();
  EXPECT_EQ(told_.Next(), "all");
  EXPECT_EQ(told_.Next(), "current");
  EXPECT_THAT(server_.Await(3)[2].line, HasSubstr("resourceVersion=50"));
}

TEST_F(ObjectWatchTest, ListsAgainWhenTheServerHasForgotten) {
  server_.Expect(Respond(200, ListOf({Object("a", "3")}, "10")));
  server_.Expect(Respond(200, Event("ERROR", {{"code", 410}, {"message", "too old"}})));
  server_.Expect(Respond(200, ListOf({Object("b", "90")}, "100")));
  server_.Expect(Respond(410, "{}"));
  server_.Expect(Respond(200, ListOf({}, "200")));
  Start();
  EXPECT_EQ(told_.Next(), "all a");
  EXPECT_EQ(told_.Next(), "trouble");
  WakeOnce();
  EXPECT_EQ(told_.Next(), "all b");
  EXPECT_EQ(told_.Next(), "trouble");
  WakeOnce();
  EXPECT_EQ(told_.Next(), "all");
  EXPECT_THAT(server_.Await(6)[5].line, HasSubstr("resourceVersion=200"));
}

TEST_F(ObjectWatchTest, OutlivesGarbage) {
  server_.Expect(Respond(200, ListOf({}, "10")));
  for (const char* garbage : {"no json\n", "[]\n", "{}\n", "{\"type\":\"ADDED\"}\n",
                              "{\"type\":\"WHAT\",\"object\":{}}\n"}) {
    server_.Expect(Respond(200, garbage));
  }
  server_.Expect(RespondAndHang(Event("ADDED", Object("a", "11"))));
  Start();
  EXPECT_EQ(told_.Next(), "all");
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(told_.Next(), "trouble");
    WakeOnce();
  }
  EXPECT_EQ(told_.Next(), "changed a");
  EXPECT_THAT(server_.Await(7)[6].line, HasSubstr("resourceVersion=10"));
}

TEST_F(ObjectWatchTest, AsksWithGrowingPatienceWhatOnlyEnds) {
  server_.Expect(Respond(200, ListOf({}, "10")));
  for (int i = 0; i < 8; ++i) server_.Expect(Respond(200, ""));
  Start();
  EXPECT_EQ(told_.Next(), "all");
  absl::Duration waited;
  for (int i = 0; i < 8; ++i) {
    clock_.AwaitSleepers(1);
    const absl::Duration wait = clock_.NextDeadline() - clock_.Monotonic();
    EXPECT_GE(wait, waited);
    EXPECT_LE(wait, kMaxBackoff);
    waited = wait;
    clock_.Advance(wait);
  }
  EXPECT_EQ(waited, kMaxBackoff);
}

// As after a restore of etcd: each list succeeds, and no watch of it.
TEST_F(ObjectWatchTest, ListsWithGrowingPatienceWhereEachVersionIsGoneAtOnce) {
  const std::string gone = Event("ERROR", {{"code", 410}, {"message", "too old"}});
  for (int i = 0; i < 8; ++i) {
    server_.Expect(Respond(200, ListOf({}, "10")));
    server_.Expect(i % 2 == 0 ? Respond(410, "{}") : Respond(200, gone));
  }
  server_.Expect(Respond(200, ListOf({}, "10")));
  server_.Expect(Respond(200, Event("ADDED", Object("a", "11"))));  // ends in order
  server_.Expect(Respond(410, "{}"));
  Start();
  absl::Duration first, waited;
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(told_.Next(), "all");
    EXPECT_EQ(told_.Next(), "trouble");
    clock_.AwaitSleepers(1);
    const absl::Duration wait = clock_.NextDeadline() - clock_.Monotonic();
    EXPECT_GE(wait, waited);
    EXPECT_LE(wait, kMaxBackoff);
    waited = wait;
    if (i == 0) first = wait;
    clock_.Advance(wait);
  }
  EXPECT_EQ(waited, kMaxBackoff);
  EXPECT_EQ(told_.Next(), "all");
  EXPECT_EQ(told_.Next(), "changed a");
  EXPECT_EQ(told_.Next(), "trouble");
  clock_.AwaitSleepers(1);
  EXPECT_EQ(clock_.NextDeadline() - clock_.Monotonic(), first) << "a watch has worked since";
}

TEST_F(ObjectWatchTest, StopsAtOnceInTheMiddleOfAWatch) {
  server_.Expect(Respond(200, ListOf({}, "10")));
  server_.Expect(Hang());
  Start();
  server_.Await(2);
  thread_.request_stop();
  thread_.join();
  EXPECT_THAT(told_.rest(), ElementsAre("all")) << "a stop is no trouble";
  EXPECT_EQ(server_.requests().size(), 2u);
}

TEST_F(ObjectWatchTest, StopsAtOnceWhileItWaitsToTryAgain) {
  server_.Expect(Respond(500, "{}"));
  Start();
  EXPECT_EQ(told_.Next(), "trouble");
  clock_.AwaitSleepers(1);
  thread_.request_stop();
  thread_.join();
  EXPECT_THAT(told_.rest(), IsEmpty());
  EXPECT_EQ(server_.requests().size(), 1u);
}

}  // namespace
}  // namespace muster::kubernetes
