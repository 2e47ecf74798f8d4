// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/cli/client_fixture.h"

namespace muster::cli {
namespace {

// Blocks the stop signals before any thread starts, so that every thread inherits the block: only
// the command receives a stop.
const bool kStopsAreBlocked = [] {
  sigset_t stops;
  sigemptyset(&stops);
  sigaddset(&stops, SIGTERM);
  return pthread_sigmask(SIG_BLOCK, &stops, nullptr) == 0;
}();

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class SubmitCommandTest : public ClientTest {
 protected:
  SubmitCommandTest() {
    std::ofstream(dir_ / "input.csv") << "key\n1\n";
    batches_.batches[7].set_batch(7);
    batches_.batches[7].set_state(v1::BATCH_STATE_OPEN);
  }

  static absl::Status TooMuchWaits(absl::Duration retry) {
    return rpc::WithReason(
        rpc::WithRetryAfter(absl::ResourceExhaustedError("too much waits: submit again in a while"),
                            retry),
        {"DRAIN_TOO_LONG", {{"job", "shop"}}});
  }

  Done Submit(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"batch", "submit", "shop", "--input", dir_ / "input.csv"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunOnServer(arguments);
  }
};

TEST_F(SubmitCommandTest, SaysThatTooMuchWaitsAndDoesNotTryAgain) {
  batches_.refusals = {TooMuchWaits(absl::Minutes(5))};
  const Done refused = Submit();
  EXPECT_EQ(refused.code, kUnreachable);
  EXPECT_EQ(refused.err, "muster: too much waits: submit again in a while\n");
  EXPECT_EQ(refused.out, "");
  const Done again = Submit();
  EXPECT_EQ(again.code, kOk);
  EXPECT_THAT(again.out, HasSubstr("batch 7 is submitted"));
}

TEST_F(SubmitCommandTest, WaitsForRoomAsLongAsTheServerSays) {
  batches_.refusals = {TooMuchWaits(absl::Minutes(5)), TooMuchWaits(absl::ZeroDuration())};
  Done done;
  std::thread submitting([&] { done = Submit({"--wait-for-room"}); });
  clock_.AwaitSleepers(1);
  EXPECT_EQ(clock_.NextDeadline() - clock_.Monotonic(), absl::Minutes(5));
  clock_.Advance(absl::Minutes(5));
  clock_.AwaitSleepers(1);
  EXPECT_EQ(clock_.NextDeadline() - clock_.Monotonic(), absl::Seconds(1)) << "whatever it says";
  clock_.Advance(absl::Seconds(1));
  submitting.join();
  EXPECT_EQ(done.code, kOk);
  EXPECT_THAT(done.out, HasSubstr("batch 7 is submitted"));
}

// An export that was still being written lost its last records, and the exit code was 0.
TEST_F(SubmitCommandTest, WarnsOfAnInputThatHasGrownMeanwhile) {
  batches_.refusals = {TooMuchWaits(absl::ZeroDuration())};
  Done done;
  std::thread submitting([&] { done = Submit({"--wait-for-room"}); });
  clock_.AwaitSleepers(1);
  std::ofstream(dir_ / "input.csv", std::ios::app) << "2\n";
  clock_.Advance(absl::Seconds(1));
  submitting.join();
  EXPECT_EQ(done.code, kOk);
  EXPECT_THAT(done.err,
              HasSubstr("input.csv has grown to 8 bytes: batch 7 is made of the 6 that it had"));
  EXPECT_THAT(Submit().err, Not(HasSubstr("has grown")));
}

TEST_F(SubmitCommandTest, DoesNotWaitForAFullDisk) {
  batches_.refusals = {absl::ResourceExhaustedError("the disk is full")};
  const Done refused = Submit({"--wait-for-room"});
  EXPECT_EQ(refused.code, kUnreachable);
  EXPECT_EQ(refused.err, "muster: the disk is full\n");
}

// A command that was stopped must print the batch number and the request id: the user has no other
// source for them.
TEST_F(SubmitCommandTest, SaysHowToGoOnWithAnUploadThatIsStopped) {
  ASSERT_TRUE(kStopsAreBlocked);
  batches_.holds_uploads = true;
  batches_.on_watch = [] { kill(getpid(), SIGTERM); };  // the upload is already accepted
  const Done again = Submit({"--wait", "--quiet"});
  EXPECT_EQ(again.code, kInterrupted);
  EXPECT_EQ(again.err, "muster: stopped; run the same command again to go on with batch 7\n");
  const Done anew = Submit({"--wait", "--quiet", "--new"});
  EXPECT_EQ(anew.code, kInterrupted);
  EXPECT_EQ(anew.err,
            absl::StrCat("muster: stopped; run the same command again with --request-id '",
                         batches_.submitted().request_id(), "' for --new to go on with batch 7\n"));
}

TEST_F(SubmitCommandTest, SaysThatNothingIsKnownOfAnUploadThatIsStoppedBeforeItIsAccepted) {
  ASSERT_TRUE(kStopsAreBlocked);
  batches_.on_upload = [] { kill(getpid(), SIGTERM); };
  const std::string stopped =
      "muster: stopped before the initiator said that it has accepted a batch; run the same "
      "command again";
  EXPECT_EQ(Submit({"--request-id", ""}).code, kUsage);
  const Done named = Submit({"--request-id", "march"});
  EXPECT_EQ(named.code, kInterrupted);
  EXPECT_EQ(named.err, stopped + " to go on: request id march never makes a second batch\n");
  const Done made = Submit();
  EXPECT_EQ(made.code, kInterrupted);
  EXPECT_EQ(made.err,
            absl::StrCat(stopped, " to go on: request id ", batches_.submitted().request_id(),
                         " never makes a second batch\n"));
  const Done anew = Submit({"--new"});
  EXPECT_EQ(anew.code, kInterrupted);
  EXPECT_THAT(anew.err,
              StartsWith(absl::StrCat(stopped, " with --request-id '",
                                      batches_.submitted().request_id(), "' for --new to go on")));
}

// Batch 7, as `muster batch watch` and `muster batch submit --wait` follow it.
class TraceparentTest : public SubmitCommandTest {
 protected:
  static constexpr char kInherited[] = "00-11111111111111111111111111111111-2222222222222222-00";
  static constexpr char kNamed[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

  ~TraceparentTest() override {
    unsetenv("TRACEPARENT");
    unsetenv("TRACESTATE");
  }
};

TEST_F(TraceparentTest, IsThatOfTheCommandLineOrOfTheEnvironment) {
  EXPECT_EQ(Submit().code, kOk);
  EXPECT_EQ(batches_.submitted().traceparent(), "");
  setenv("TRACEPARENT", kInherited, 1);
  setenv("TRACESTATE", "a=b", 1);
  EXPECT_EQ(Submit().code, kOk);
  EXPECT_EQ(batches_.submitted().traceparent(), kInherited);
  EXPECT_EQ(batches_.submitted().tracestate(), "a=b");
  EXPECT_EQ(Submit({"--traceparent", kNamed}).code, kOk);
  EXPECT_EQ(batches_.submitted().traceparent(), kNamed);
  EXPECT_EQ(batches_.submitted().tracestate(), "") << "it came with another one";
}

TEST_F(TraceparentTest, IsRefusedOnTheCommandLineAndIgnoredInTheEnvironmentWhenItIsMalformed) {
  const Done refused = Submit({"--traceparent", "00-4bf92f"});
  EXPECT_EQ(refused.code, kUsage);
  EXPECT_THAT(refused.err, HasSubstr("'00-4bf92f' is no W3C traceparent"));
  setenv("TRACEPARENT", "on", 1);
  const Done ignored = Submit();
  EXPECT_EQ(ignored.code, kOk);
  EXPECT_THAT(ignored.err, HasSubstr("muster: TRACEPARENT is ignored: it is no W3C traceparent"));
  EXPECT_EQ(batches_.submitted().traceparent(), "");
  setenv("TRACEPARENT", kInherited, 1);
  setenv("TRACESTATE", std::string(513, 'x').c_str(), 1);
  EXPECT_EQ(Submit().code, kOk);
  EXPECT_EQ(batches_.submitted().traceparent(), kInherited);
  EXPECT_EQ(batches_.submitted().tracestate(), "");
}

TEST_F(TraceparentTest, IsShownWithTheBatch) {
  batches_.batches[7].set_traceparent(kNamed);
  const Done shown = RunOnServer({"batch", "get", "7", "-o", "json"});
  EXPECT_THAT(shown.out, HasSubstr(absl::StrCat("\"traceparent\":\"", kNamed, "\"")));
}

class WatchCommandTest : public SubmitCommandTest {
 protected:
  static v1::BatchStatus Standing(v1::BatchState state) {
    v1::BatchStatus status;
    status.set_batch(7);
    status.set_job("shop");
    status.set_state(state);
    status.set_complete(state == v1::BATCH_STATE_COMPLETE);
    status.mutable_progress()->set_read(1000);
    status.mutable_progress()->set_split(1);
    status.mutable_progress()->set_committed(status.complete() ? 1000 : 250);
    status.set_transactions(status.progress().committed());
    status.set_aggregated(status.transactions());
    return status;
  }
  static v1::BatchStatus Waiting(const std::string& problem) {
    v1::BatchStatus status = Standing(v1::BATCH_STATE_SEALED);
    status.set_problem(problem);
    return status;
  }

  // Adds a processor with that version of the job's handler.
  void Employ(const std::string& job, const std::string& version) {
    v1::Instance processor;
    processor.mutable_info()->set_role(v1::ROLE_PROCESSOR);
    v1::HandlerVersion* const handler = processor.mutable_info()->add_handlers();
    handler->set_job(job);
    handler->set_version(version);
    mesh_.others.push_back(processor);
  }

  // Returns the messages about batch 7 after a wait that timed out.
  std::string WaitInVain() {
    Done done;
    std::thread waiting([&] {
      done = RunOnServer({"batch", "watch", "7", "-q", "--wait-timeout", "30s"});
    });
    clock_.AwaitSleepers(2);
    clock_.Advance(absl::Seconds(30));
    waiting.join();
    EXPECT_EQ(done.code, kTimedOut);
    return done.err;
  }

  static constexpr v1::BatchState kDone = v1::BATCH_STATE_COMPLETE;
  static constexpr char kTolerant[] = R"(name: shop
input: {format: csv, columns: {key: key}}
item: {transactions: 20}
handler: {linked: count}
queue: {partitions: 2}
groups:
  - {name: by_key, keys: [key], measures: {lines: int}}
tolerate: {rejected: 1%}
)";
};

TEST_F(WatchCommandTest, ShowsHowFarABatchIsUntilItIsComplete) {
  batches_.news = {Standing(v1::BATCH_STATE_SEALED), Standing(kDone)};
  const Done done = RunOnServer({"batch", "watch", "7"});
  EXPECT_EQ(done.code, kOk) << done.err;
  EXPECT_THAT(done.err, HasSubstr("100% · read 1,000"));
  EXPECT_THAT(done.out, AllOf(HasSubstr("batch 7: 1,000 transactions = 1,000 aggregated"),
                              HasSubstr("receipt: muster batch receipt 7")));
  const Done quiet = RunOnServer({"batch", "watch", "7", "-q", "-o", "yaml"});
  EXPECT_EQ(quiet.err, "");
  EXPECT_THAT(quiet.out, AllOf(StartsWith("batch: 7\njob: shop\n"), HasSubstr("complete: true\n")));
}

TEST_F(WatchCommandTest, DrawsABarWhileItWaitsForWhatItSubmits) {
  batches_.news = {Standing(kDone)};
  const Done done = Submit({"--watch"});
  EXPECT_EQ(done.code, kOk) << done.err;
  EXPECT_THAT(done.err, HasSubstr("100% · read 1,000"));
}

TEST_F(WatchCommandTest, SaysWhyABatchWaitsOnceForEachReason) {
  batches_.news = {Waiting("no queue answers"),      Waiting("no queue answers"),
                   Standing(v1::BATCH_STATE_SEALED), Waiting("no queue answers"),
                   Waiting("no \x1b room"),          Standing(kDone)};
  const Done done = RunOnServer({"batch", "watch", "7", "--quiet"});
  EXPECT_EQ(done.code, kOk);
  EXPECT_EQ(done.err,
            "\nmuster: batch 7 waits: no queue answers\n\nmuster: batch 7 waits: no queue answers\n"
            "\nmuster: batch 7 waits: no ? room\n");
}

TEST_F(WatchCommandTest, ShowsWhyABatchWaitsAmongTheOthers) {
  batches_.batches[7] = Waiting("no queue answers");
  EXPECT_THAT(RunOnServer({"batch", "list"}).out, HasSubstr("sealed, waits"));
  EXPECT_THAT(RunOnServer({"batch", "get", "7"}).out, HasSubstr("\nproblem: no queue answers\n"));
  for (const char* verb : {"list", "get"}) {
    std::vector<std::string> ask = {"batch", verb, "-o", "json"};
    if (std::string(verb) == "get") ask.emplace_back("7");
    EXPECT_THAT(RunOnServer(ask).out, HasSubstr("\"problem\":\"no queue answers\""));
  }
  batches_.batches[7].clear_problem();
  EXPECT_THAT(RunOnServer({"batch", "list", "-o", "json"}).out, Not(HasSubstr("problem")));
}

TEST_F(WatchCommandTest, WaitsNoLongerThanItIsTold) {
  batches_.batches[7] = Standing(v1::BATCH_STATE_SEALED);
  batches_.news = {Standing(v1::BATCH_STATE_SEALED)};
  Employ("shop", "1");
  for (const bool submits : {false, true}) {
    Done done;
    std::thread waiting([&] {
      done = submits ? Submit({"--wait", "--wait-timeout", "30s"})
                     : RunOnServer({"batch", "watch", "7", "-q", "--wait-timeout", "30s"});
    });
    clock_.AwaitSleepers(2);  // the limit of all that it does, and the wait
    EXPECT_EQ(clock_.NextDeadline() - clock_.Monotonic(), absl::Seconds(30));
    clock_.Advance(absl::Seconds(30));
    waiting.join();
    EXPECT_EQ(done.code, kTimedOut);
    EXPECT_EQ(done.out, "");
    EXPECT_EQ(done.err,
              "muster: batch 7 is not complete yet, 250 of its transactions are counted\n");
  }
}

// With no time to wait it said that a batch was not complete which it had shown at 100 %.
TEST_F(WatchCommandTest, SeesAtItsLastLookThatABatchHasEnded) {
  batches_.news = {Standing(v1::BATCH_STATE_SEALED)};
  batches_.batches[7] = Standing(kDone);
  const Done done = RunOnServer({"batch", "watch", "7", "-q", "--wait-timeout", "0s"});
  EXPECT_EQ(done.code, kOk) << done.err;
  EXPECT_THAT(done.out, HasSubstr("batch 7: 1,000 transactions = 1,000 aggregated"));
  batches_.batches[7] = Standing(v1::BATCH_STATE_CANCELLED);
  const Done cancelled = RunOnServer({"batch", "watch", "7", "-q", "--wait-timeout", "0s"});
  EXPECT_EQ(cancelled.code, kError);
  EXPECT_EQ(cancelled.err, "muster: batch 7 was cancelled\n");
}

// A submit that waits tells the number nowhere else.
TEST_F(WatchCommandTest, NamesTheBatchThatGoesOnWhenItIsStopped) {
  ASSERT_TRUE(kStopsAreBlocked);
  batches_.news = {Standing(v1::BATCH_STATE_SEALED)};
  batches_.on_watch = [] { kill(getpid(), SIGTERM); };
  const Done done = RunOnServer({"batch", "watch", "7", "-q"});
  EXPECT_EQ(done.code, kInterrupted);
  EXPECT_EQ(done.err,
            "muster: stopped waiting; batch 7 goes on, and `muster batch watch 7` shows it\n");
}

// It had the time of any call: against a frozen server the command ended half a minute late.
TEST_F(WatchCommandTest, EndsSoonAfterItsTimeIsUpAlsoIfTheServerIsFrozen) {
  batches_.batches[7] = Waiting("no queue answers");
  batches_.holds_answers = true;
  EXPECT_THAT(WaitInVain(), HasSubstr("batch 7 is not complete yet; "));
  EXPECT_GT(batches_.milliseconds_left, 0);
  EXPECT_LE(batches_.milliseconds_left, 1000);
}

// Only the wait for the end of the batch was bounded: the command uploaded for ever to a server
// that had stopped.
TEST_F(WatchCommandTest, EndsAnUploadWhenItsTimeIsUp) {
  batches_.holds_uploads = true;
  batches_.on_watch = [this] { clock_.Advance(absl::Seconds(30)); };  // the upload is accepted
  const Done known = Submit({"--wait", "-q", "--wait-timeout", "30s"});
  EXPECT_EQ(known.code, kTimedOut);
  EXPECT_EQ(known.err,
            "muster: the time to wait is up; run the same command again to go on with batch 7\n");
  batches_.on_upload = [this] { clock_.Advance(absl::Seconds(30)); };
  const Done unknown = Submit({"--wait-timeout", "30s", "--request-id", "march"});
  EXPECT_EQ(unknown.code, kTimedOut);
  EXPECT_EQ(
      unknown.err,
      "muster: the time to wait is up before the initiator said that it has accepted a batch; "
      "run the same command again to go on: request id march never makes a second batch\n");
}

TEST_F(WatchCommandTest, WaitsForRoomNoLongerThanItIsTold) {
  batches_.refusals = {TooMuchWaits(absl::Minutes(5))};
  Done done;
  std::thread submitting([&] { done = Submit({"--wait-for-room", "--wait-timeout", "30s"}); });
  clock_.AwaitSleepers(2);
  clock_.Advance(absl::Seconds(30));
  submitting.join();
  EXPECT_EQ(done.code, kTimedOut);
  EXPECT_THAT(done.err, HasSubstr("the time to wait is up before there was room"));
}

TEST_F(WatchCommandTest, SaysWhyTheBatchWaitsThatItWaitsForNoLonger) {
  constexpr char kNotYet[] =
      "muster: batch 7 is not complete yet, 250 of its transactions are counted; it waits: ";
  v1::BatchStatus& batch = batches_.batches[7];
  batch = Waiting("no \x1b queue answers");
  EXPECT_EQ(WaitInVain(), absl::StrCat(kNotYet, "no ? queue answers\n"));
  batch.clear_problem();
  EXPECT_EQ(WaitInVain(),
            "muster: batch 7 is not complete yet, 250 of its transactions are counted\n");
}

TEST_F(WatchCommandTest, TellsALateBatchFromOneThatIsPartial) {
  v1::BatchStatus late = Standing(kDone);
  *late.mutable_sla() = base::ToProto(absl::Seconds(30));
  *late.mutable_deadline() = base::ToProto(absl::FromUnixSeconds(100));
  *late.mutable_late_by() = base::ToProto(absl::ZeroDuration());
  batches_.news = {late};
  EXPECT_EQ(RunOnServer({"batch", "watch", "7", "-q"}).code, kOk) << "just in time";
  *late.mutable_late_by() = base::ToProto(absl::Milliseconds(1));
  batches_.news = {late};
  const Done watched = RunOnServer({"batch", "watch", "7", "-q"});
  EXPECT_EQ(watched.code, kDeadlineMissed);
  EXPECT_THAT(watched.out, HasSubstr("\nlate: 1ms later than promised (30s)\n"));
  EXPECT_THAT(RunOnServer({"batch", "watch", "7", "-q", "-o", "json"}).out,
              HasSubstr(R"("sla_seconds":30.0,"deadline":"1970-01-01T00:01:40.000Z",)"
                        R"("late_by_seconds":0.001,"at_risk":false)"));
  EXPECT_EQ(Submit({"--wait"}).code, kDeadlineMissed);
  late.set_dead_lettered(1);
  batches_.news = {late};
  EXPECT_EQ(RunOnServer({"batch", "watch", "7", "-q"}).code, kPartial) << "which counts for more";
}

TEST_F(WatchCommandTest, SaysWhatIsNotInTheTotals) {
  const auto wait = [this] { return Submit({"--wait"}); };
  v1::BatchStatus status = Standing(kDone);
  batches_.news = {status};
  EXPECT_EQ(wait().err, "");
  status.set_rejected(2);
  status.set_aggregated(998);
  batches_.news = {status};
  const Done rejected = wait();
  EXPECT_EQ(rejected.code, kPartial);
  EXPECT_EQ(rejected.err, "2 transactions were rejected: muster batch rejections 7\n");
  std::ofstream(dir_ / "job.yaml") << kTolerant;
  ASSERT_EQ(RunOnServer({"job", "apply", dir_ / "job.yaml"}).code, kOk);
  status.set_job("name");  // the fake job service takes this name from the definition
  batches_.news = {status};
  const Done tolerated = wait();
  EXPECT_EQ(tolerated.code, kOk);
  EXPECT_EQ(tolerated.err, "2 transactions were rejected (tolerated): muster batch rejections 7\n");
  status.set_items_dead(1);
  status.set_dead_lettered(500);
  batches_.news = {status};
  const Done given_up = wait();
  EXPECT_EQ(given_up.code, kPartial);
  EXPECT_THAT(given_up.err, HasSubstr("1 item was given up: muster batch dead-letters 7\n"));
}

TEST_F(WatchCommandTest, SaysThatABatchWasCancelledAndWhy) {
  v1::BatchStatus cancelled = Standing(v1::BATCH_STATE_CANCELLED);
  cancelled.set_cancel_reason("a mistake");
  batches_.news = {cancelled};
  const Done done = RunOnServer({"batch", "watch", "7", "-q"});
  EXPECT_EQ(done.code, kError);
  EXPECT_EQ(done.err, "muster: batch 7 was cancelled: a mistake\n");
}

TEST_F(WatchCommandTest, DrawsNoBarForABatchThatIsNotThere) {
  const Done done = RunOnServer({"batch", "watch", "99"});
  EXPECT_EQ(done.code, kError);
  EXPECT_EQ(done.err, "muster: no such batch; `muster batch list` shows those there are\n");
}

}  // namespace
}  // namespace muster::cli
