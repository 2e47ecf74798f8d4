// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/recording/recording.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/scaling/policy/deadline_policy.h"
#include "muster/scaling/recording/recording_replay.h"
#include "muster/scaling/replay/simulator.h"
#include "tests/fakes/os/file_size_limit.h"
#include "tests/fakes/os/watched_disk.h"

namespace muster::scaling::replay {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

scaling::recording::RecordingHeader Header() {
  scaling::recording::RecordingHeader header;
  header.target = "billing";
  header.policy.sla = absl::Minutes(5);
  header.policy.aim = absl::Minutes(1);
  return header;
}

scaling::recording::RecordedStep Step() {
  scaling::recording::RecordedStep step;
  scaling::policy::Observation& seen = step.observation;
  seen.now = absl::FromUnixNanos(1'700'000'000'123'456'789);
  seen.bounds = {1, 40, 2};
  seen.fleet.ready = 3;
  seen.fleet.starting = {absl::FromUnixSeconds(1'700'000'030)};
  seen.fleet.idle_since = {absl::FromUnixSeconds(1'699'999'990)};
  seen.estimates = {40.5, absl::Milliseconds(25), absl::Seconds(30), absl::Seconds(1), 0.5, 0.01};
  seen.queues = {{"in-0", seen.now, 100, 7, absl::Seconds(12), 1000, 893}};
  step.decision.replicas = 7;
  step.decision.binding = scaling::policy::Binding::kDeadline;
  step.decision.wanted = 8;
  step.decision.deadline = absl::FromUnixSeconds(1'700'000'300);
  step.decision.feasibility = {false, 57, absl::Seconds(84), absl::InfiniteFuture()};
  return step;
}

// Version 1, as it stands in files.
constexpr char kGoldenHeader[] =
    R"({"muster_recording":1,"target":"billing","policy":{"sla_ns":300000000000,)"
    R"("aim_ns":60000000000,"patience":0.5,"hold":1.0,"loss_after":3,"loss_keep_current":true,)"
    R"("loss_floor":0,"stale_after_ns":120000000000,"rate_risk":0.01,"forecast":false}})";
constexpr char kGoldenAnnouncement[] =
    R"({"announce":{"at":1700000000000000000,"items":3000,"id":18446744073709551615}})";
constexpr char kGoldenStep[] =
    R"({"see":{"now":1700000000123456789,"bounds":{"min":1,"max":40,"standby":2},)"
    R"("fleet":{"ready":3,"draining":0,"parked":0,"starting":[1700000030000000000],)"
    R"("idle_since":[1699999990000000000],"tasks":1,"max_tasks":1},)"
    R"("estimates":{"items_per_second":40.5,"service_time_ns":25000000,)"
    R"("cold_start_ns":30000000000,"release_ns":1000000000,"cpu_share":0.5,)"
    R"("throttled_share":0.01},)"
    R"("queues":[{"queue":"in-0","at":1700000000123456789,"ready":100,"in_flight":7,)"
    R"("oldest_age_ns":12000000000,"total_in":1000,"total_out":893}]},)"
    R"("decide":{"replicas":7,"tasks":1,"standby":0,"binding":"deadline","wanted":8,)"
    R"("deadline":1700000300000000000,"feasible":false,"needs":57,"late_by_ns":84000000000,)"
    R"("finish":null}})";

TEST(RecordingCodecTest, WritesVersionOneAsItAlwaysDid) {
  EXPECT_EQ(scaling::recording::EncodeHeader(Header()), kGoldenHeader);
  EXPECT_EQ(recording::EncodeEvent(Step()), kGoldenStep);
  EXPECT_EQ(recording::EncodeEvent(scaling::policy::Announcement{
                absl::FromUnixSeconds(1'700'000'000), 3000, UINT64_MAX}),
            kGoldenAnnouncement);
  EXPECT_EQ(recording::EncodeEvent(scaling::recording::RecordedRules{"mode: act\n"}),
            R"({"rules":"mode: act\n"})");
}

TEST(RecordingCodecTest, ReadsVersionOne) {
  EXPECT_EQ(scaling::recording::EncodeHeader(*recording::DecodeHeader(kGoldenHeader)),
            kGoldenHeader);
  EXPECT_EQ(recording::EncodeEvent(*scaling::recording::DecodeEvent(kGoldenStep)), kGoldenStep);
  EXPECT_EQ(recording::EncodeEvent(*scaling::recording::DecodeEvent(kGoldenAnnouncement)),
            kGoldenAnnouncement);
  EXPECT_EQ(std::get<scaling::recording::RecordedRules>(
                *scaling::recording::DecodeEvent(R"({"rules":"a"})"))
                .text,
            "a");
}

TEST(RecordingCodecTest, TellsWhatWasSpentBeforeDecidingBegan) {
  const scaling::policy::Spending spending{
      absl::FromUnixSeconds(1'700'000'000), 7, {{28'333'332, 0.1}, {28'333'333, 3.5}}};
  const std::string line = recording::EncodeEvent(spending);
  EXPECT_EQ(line, R"({"spent":{"until":1700000000000000000,"replicas":7,)"
                  R"("minutes":[[28333332,0.1],[28333333,3.5]]}})");
  EXPECT_EQ(std::get<scaling::policy::Spending>(*recording::DecodeEvent(line)), spending);
  EXPECT_TRUE(absl::IsDataLoss(recording::DecodeEvent(R"({"spent":{"until":0}})").status()));
}

TEST(RecordingCodecTest, WritesLaterPartsAsVersionTwo) {
  scaling::recording::RecordingHeader header = Header();
  header.part = 2;
  header.rules = "mode: act\n";
  std::string golden = kGoldenHeader;
  golden.replace(golden.find(":1,"), 3, ":2,");
  golden.pop_back();
  golden += R"(,"part":2,"rules":"mode: act\n"})";
  EXPECT_EQ(scaling::recording::EncodeHeader(header), golden);
  EXPECT_EQ(scaling::recording::EncodeHeader(*recording::DecodeHeader(golden)), golden);
  EXPECT_TRUE(absl::IsDataLoss(
      recording::DecodeHeader(R"({"muster_recording":2,"target":"x","policy":{},"part":"x"})")
          .status()));
}

TEST(RecordingCodecTest, KeepsEveryBinding) {
  scaling::recording::RecordedStep step = Step();
  for (int i = 0; i <= static_cast<int>(scaling::policy::Binding::kPolicy); ++i) {
    step.decision.binding = static_cast<scaling::policy::Binding>(i);
    const scaling::recording::RecordedEvent event =
        *scaling::recording::DecodeEvent(recording::EncodeEvent(step));
    EXPECT_EQ(std::get<scaling::recording::RecordedStep>(event).decision.binding,
              step.decision.binding);
  }
}

TEST(RecordingCodecTest, RefusesWhatIsNoRecording) {
  for (const char* line : {"", "{", "[]", "5", "null", "{}", R"({"muster_recording":"x"})"}) {
    EXPECT_TRUE(absl::IsDataLoss(recording::DecodeHeader(line).status())) << line;
    EXPECT_TRUE(absl::IsDataLoss(scaling::recording::DecodeEvent(line).status())) << line;
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(
      recording::DecodeHeader(R"({"muster_recording":3,"target":"x"})").status()));
  EXPECT_TRUE(absl::IsDataLoss(
      scaling::recording::DecodeEvent(R"({"announce":{"at":"x","items":1}})").status()));
}

// Records what the deadline policy does in a simulation.
class Recorder final : public scaling::policy::Policy {
 public:
  Recorder(std::unique_ptr<scaling::policy::Policy> policy,
           scaling::recording::RecordingWriter* writer)
      : policy_(std::move(policy)), writer_(writer) {}

  void Announce(const scaling::policy::Announcement& announcement) override {
    EXPECT_TRUE(writer_->Write(announcement).ok());
    policy_->Announce(announcement);
  }
  scaling::policy::Decision Decide(const scaling::policy::Observation& observation) override {
    const scaling::policy::Decision decision = policy_->Decide(observation);
    EXPECT_TRUE(writer_->Write(scaling::recording::RecordedStep{observation, decision}).ok());
    return decision;
  }

 private:
  const std::unique_ptr<scaling::policy::Policy> policy_;
  scaling::recording::RecordingWriter* const writer_;
};

class RecordingTest : public ::testing::Test {
 protected:
  void RecordARun(int64_t most_bytes = scaling::recording::kDefaultRecordingBytes) {
    const std::unique_ptr<scaling::recording::RecordingWriter> writer =
        *scaling::recording::RecordingWriter::Open(path_, Header(), most_bytes);
    EXPECT_TRUE(writer->Write(scaling::recording::RecordedRules{"the rules"}).ok());
    Trace trace;
    trace.start = absl::FromUnixSeconds(1'700'000'000);
    trace.arrivals = {{0, 50'000, 0}, {400 * kSecondUs, 7'000, 0}};
    trace.items = 57'000;
    trace.seconds = 401;
    SimOptions options;
    options.service_time = absl::Milliseconds(25);
    options.cold_start = absl::Seconds(30);
    options.sla = absl::Minutes(5);
    Recorder recorder(*scaling::policy::MakeDeadlinePolicy(Header().policy), writer.get());
    Simulate(trace, options, &recorder, {});
  }

  scaling::recording::RecordingVerdict Verdict(const scaling::policy::DeadlineOptions& policy) {
    return Verdict(policy, path_);
  }
  scaling::recording::RecordingVerdict Verdict(const scaling::policy::DeadlineOptions& policy,
                                               const std::string& path) {
    rules_.clear();
    const std::unique_ptr<scaling::recording::RecordingReader> reader =
        *scaling::recording::RecordingReader::Open(path);
    const std::unique_ptr<scaling::policy::Policy> anew =
        *scaling::policy::MakeDeadlinePolicy(policy);
    return *ReplayRecording(
        reader.get(), anew.get(),
        [this](const std::string& text) {
          rules_ += text;
          return absl::OkStatus();
        },
        [](const scaling::policy::Spending&) {});
  }

  // What a run is alone in one file.
  int64_t WholeSize() {
    RecordARun();
    whole_decisions_ = Verdict(Header().policy).decisions;
    const int64_t size = SizeOf(path_);
    fs::remove(path_);
    return size;
  }
  int64_t SizeOf(const std::string& path) const {
    return static_cast<int64_t>(fs::file_size(path));
  }

  std::string Text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const os::TempDir folder_;
  const std::string path_ = folder_ / "run.jsonl", before_ = path_ + ".1";
  std::string rules_;
  int64_t whole_decisions_ = 0;
};

TEST_F(RecordingTest, IsDecidedAnewInTheSameWay) {
  RecordARun();
  const scaling::recording::RecordingVerdict verdict =
      Verdict(scaling::recording::RecordingReader::Open(path_).value()->header().policy);
  EXPECT_EQ(verdict.announcements, 2);
  EXPECT_GT(verdict.decisions, 400);
  EXPECT_FALSE(verdict.first_difference.has_value()) << verdict.first_difference->replayed;
  EXPECT_EQ(rules_, "the rules");
}

TEST_F(RecordingTest, ShowsTheFirstDifferenceToAnotherPolicy) {
  RecordARun();
  scaling::policy::DeadlineOptions other = Header().policy;
  other.aim.reset();
  const scaling::recording::RecordingVerdict verdict = Verdict(other);
  ASSERT_TRUE(verdict.first_difference.has_value());
  EXPECT_GE(verdict.first_difference->line, 3);
  EXPECT_NE(verdict.first_difference->recorded, verdict.first_difference->replayed);
}

TEST_F(RecordingTest, IsNeverOverwritten) {
  RecordARun();
  EXPECT_TRUE(
      absl::IsAlreadyExists(scaling::recording::RecordingWriter::Open(path_, Header()).status()));
  EXPECT_TRUE(absl::IsUnavailable(
      scaling::recording::RecordingWriter::Open(folder_ / "none/run.jsonl", Header()).status()));
}

TEST_F(RecordingTest, GoesOnInAnotherFileAndIsReadAsOneOrByItsParts) {
  const int64_t most = WholeSize() * 6 / 10;
  RecordARun(most);
  EXPECT_LE(SizeOf(path_), most);
  EXPECT_LE(SizeOf(before_), most);
  const scaling::recording::RecordingVerdict both = Verdict(Header().policy);
  EXPECT_FALSE(both.first_difference.has_value()) << both.first_difference->replayed;
  EXPECT_EQ(both.first_part, 1);
  EXPECT_EQ(both.decisions, whole_decisions_);
  EXPECT_EQ(both.announcements, 2);
  EXPECT_EQ(rules_, "the rules");

  const scaling::recording::RecordingVerdict first = Verdict(Header().policy, before_);
  EXPECT_FALSE(first.first_difference.has_value());
  fs::remove(before_);
  const scaling::recording::RecordingVerdict second = Verdict(Header().policy);
  EXPECT_EQ(second.first_part, 2);
  EXPECT_EQ(rules_, "the rules");
  EXPECT_EQ(first.decisions + second.decisions, both.decisions)
      << "it goes on where it differs, for its beginning is missing";
}

TEST_F(RecordingTest, KeepsItsLastTwoPartsHoweverLongItGrows) {
  const int64_t most = WholeSize() / 7;
  RecordARun(most);
  EXPECT_LE(SizeOf(path_), most);
  EXPECT_LE(SizeOf(before_), most);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 2);
  const scaling::recording::RecordingVerdict verdict = Verdict(Header().policy);
  EXPECT_GT(verdict.first_part, 5);
  EXPECT_GT(verdict.decisions, whole_decisions_ / 10);
  EXPECT_LT(verdict.decisions, whole_decisions_ / 3);
}

TEST_F(RecordingTest, ReadsNoPartOfAnotherRecordingBeforeItsOwn) {
  const int64_t most = WholeSize() * 6 / 10;
  RecordARun(most);
  scaling::recording::RecordingHeader other = Header();
  other.target = "mail";
  std::ofstream(before_, std::ios::trunc) << scaling::recording::EncodeHeader(other) << "\n";
  EXPECT_EQ(Verdict(Header().policy).first_part, 2);
  fs::remove(before_);
  fs::copy_file(path_, before_);
  EXPECT_EQ(Verdict(Header().policy).first_part, 2) << "it is not the part before";
}

// To move it away would take it from all others.
TEST_F(RecordingTest, LeavesADeviceWhereItIs) {
  fs::create_symlink("/dev/null", path_);
  RecordARun(1000);
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_FALSE(fs::exists(before_));
}

TEST_F(RecordingTest, SaysThatTheDiskIsFull) {
  EXPECT_TRUE(absl::IsUnavailable(
      scaling::recording::RecordingWriter::Open("/dev/full", Header()).status()));
}

TEST_F(RecordingTest, IsWholeUpToWhereTheDiskWasFull) {
  const std::unique_ptr<scaling::recording::RecordingWriter> writer =
      *scaling::recording::RecordingWriter::Open(path_, Header());
  ASSERT_TRUE(writer->Write(Step()).ok());
  {
    const os::FileSizeLimit limit(static_cast<rlim_t>(SizeOf(path_)) + 10);
    EXPECT_TRUE(absl::IsUnavailable(writer->Write(Step())));
  }
  const std::unique_ptr<scaling::recording::RecordingReader> reader =
      *scaling::recording::RecordingReader::Open(path_);
  EXPECT_TRUE((*reader->Next()).has_value());
  EXPECT_FALSE((*reader->Next()).has_value());
}

// The part before is gone then: renamed before its content was on disk, the new one could be empty
// after a power cut, and the rest of the recording with it.
TEST_F(RecordingTest, IsOnDiskBeforeItReplacesThePartBefore) {
  const std::unique_ptr<scaling::recording::RecordingWriter> writer =
      *scaling::recording::RecordingWriter::Open(path_, Header(), 1000);
  os::WatchedDisk disk;
  std::vector<std::string> calls;
  for (int i = 0; i < 10 && calls.empty(); ++i) {
    ASSERT_TRUE(writer->Write(Step()).ok());
    calls = disk.TakeCalls();
  }
  EXPECT_THAT(calls, ElementsAre("sync run.jsonl", "rename run.jsonl to run.jsonl.1",
                                 "sync " + fs::path(folder_.path()).filename().string()));
}

TEST_F(RecordingTest, KeepsThePartBeforeWhenItsOwnContentCannotBeSynced) {
  const std::unique_ptr<scaling::recording::RecordingWriter> writer =
      *scaling::recording::RecordingWriter::Open(path_, Header(), 1000);
  std::ofstream(before_) << "the part before";
  os::WatchedDisk disk;
  disk.FailSync("run.jsonl", EIO);
  absl::Status written;
  for (int i = 0; i < 10 && written.ok(); ++i) written = writer->Write(Step());
  EXPECT_TRUE(absl::IsUnavailable(written));
  EXPECT_EQ(SizeOf(before_), 15);
}

TEST_F(RecordingTest, SaysThatTheFileBeforeCannotBeReplaced) {
  fs::create_directories(before_ + "/taken");
  const std::unique_ptr<scaling::recording::RecordingWriter> writer =
      *scaling::recording::RecordingWriter::Open(path_, Header(), 1000);
  absl::Status written;
  for (int i = 0; i < 10 && written.ok(); ++i) written = writer->Write(Step());
  EXPECT_TRUE(absl::IsUnavailable(written));
  EXPECT_THAT(std::string(written.message()), HasSubstr("cannot be moved"));
}

TEST_F(RecordingTest, EndsBeforeALineThatWasCutOff) {
  RecordARun();
  const std::string text = Text();
  std::ofstream(path_, std::ios::trunc) << text.substr(0, text.size() - 10);
  EXPECT_FALSE(Verdict(Header().policy).first_difference.has_value());
}

TEST_F(RecordingTest, NamesTheLineThatIsDamaged) {
  RecordARun();
  std::ofstream(path_, std::ios::app) << "{\"see\":{}}\n";
  const std::unique_ptr<scaling::recording::RecordingReader> reader =
      *scaling::recording::RecordingReader::Open(path_);
  absl::StatusOr<std::optional<scaling::recording::RecordedEvent>> event;
  do {
    event = reader->Next();
  } while (event.ok() && event->has_value());
  EXPECT_TRUE(absl::IsDataLoss(event.status()));
  EXPECT_THAT(std::string(event.status().message()), HasSubstr("run.jsonl line "));
  EXPECT_TRUE(absl::IsNotFound(scaling::recording::RecordingReader::Open(folder_ / "x").status()));
}

}  // namespace
}  // namespace muster::scaling::replay
