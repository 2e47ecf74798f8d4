// SPDX-License-Identifier: Apache-2.0
#include "muster/base/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/retry.h"
#include "tests/fakes/base/log_capture.h"

namespace muster::base {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

std::string Line(absl::string_view message, std::initializer_list<LogField> fields = {}) {
  return FormatLogLine(LogFormat::kText, absl::FromUnixMillis(1320969600123), kInfo, message,
                       fields);
}

std::string JsonLine(absl::string_view message, std::initializer_list<LogField> fields) {
  return FormatLogLine(LogFormat::kJson, absl::FromUnixMillis(1320969600123), kWarning, message,
                       fields);
}

TEST(LogTest, WritesOneLineOfPairs) {
  EXPECT_EQ(Line("queue ready", {{"queue", "retail/in"}, {"depth", 42}, {"ratio", 0.5}}),
            "time=2011-11-11T00:00:00.123Z level=info msg=\"queue ready\" queue=retail/in depth=42 "
            "ratio=0.5");
}

TEST(LogTest, QuotesOnlyWhatNeedsIt) {
  EXPECT_THAT(Line("started"), EndsWith(" msg=started"));
  EXPECT_THAT(Line("x", {{"a", ""}}), EndsWith(" a=\"\""));
  EXPECT_THAT(Line("x", {{"a", "b=c"}}), EndsWith(" a=\"b=c\""));
  EXPECT_THAT(Line("x", {{"a", "café"}}), EndsWith(" a=\"café\""));
}

TEST(LogTest, GarbageCannotBreakALine) {
  const std::string line =
      Line("a\nlevel=error", {{"why", "\"\\\r\t\x1b[2J\xff\xc2\x85\xe2\x80\xa8"}});
  EXPECT_THAT(line, EndsWith("msg=\"a\\nlevel=error\" "
                             "why=\"\\\"\\\\\\r\\t\\x1b[2J\\xff\\xc2\\x85\\xe2\\x80\\xa8\""));
  EXPECT_THAT(line, Not(HasSubstr("\n")));
}

TEST(LogTest, WritesAnObjectOfStringsAsJson) {
  EXPECT_EQ(JsonLine("queue ready", {{"queue", "retail/in"}, {"depth", 42}, {"a b", ""}}),
            R"({"time":"2011-11-11T00:00:00.123Z","level":"warning","msg":"queue ready",)"
            R"("queue":"retail/in","depth":"42","a_b":""})");
}

TEST(LogTest, GarbageCannotBreakAJsonLine) {
  EXPECT_THAT(JsonLine("a\n\"}", {{"why", "\\\t\x1b\xff café"}}),
              EndsWith(R"("msg":"a\u000a\"}","why":"\\\u0009\u001b\ufffd café"})"));
  const std::string cut = JsonLine("x", {{"body", std::string(kMaxLogValueBytes - 1, 'y') + "é"}});
  EXPECT_THAT(cut, EndsWith("y\\ufffd…\"}"));
}

TEST(LogTest, WritesInTheFormatThatIsSet) {
  LogCapture capture(kInfo);
  SetLogFormat(LogFormat::kJson);
  LogUnlessOk(kInfo, "gone", absl::NotFoundError("there"), {{"item", 1}});
  SetLogFormat(LogFormat::kText);
  Log(kInfo, "back");
  EXPECT_THAT(capture.lines(),
              ElementsAre(EndsWith(R"("msg":"gone","item":"1","why":"NOT_FOUND: there"})"),
                          EndsWith(" msg=back")));
}

TEST(LogTest, RepairsKeys) { EXPECT_THAT(Line("x", {{"a b=\n", 1}}), EndsWith(" a_b__=1")); }

TEST(LogTest, CutsLongValues) {
  const std::string line = Line("x", {{"body", std::string(1 << 20, 'y')}, {"after", 1}});
  EXPECT_LT(line.size(), kMaxLogValueBytes + 200);
  EXPECT_THAT(line, EndsWith("y…\" after=1"));
}

TEST(LogTest, DropsWhatIsBelowTheMinimumLevel) {
  LogCapture capture(kWarning);
  Log(kInfo, "quiet");
  Log(kWarning, "loud");
  Log(kError, "louder");
  EXPECT_THAT(capture.lines(),
              ElementsAre(EndsWith("level=warning msg=loud"), EndsWith("level=error msg=louder")));
}

TEST(LogTest, CapturesOnlyWhileTheCaptureLives) {
  std::vector<std::string> outer_lines;
  SetLogSink([&](absl::string_view line) { outer_lines.emplace_back(line); });
  {
    LogCapture capture;
    Log(kInfo, "inside");
  }
  Log(kInfo, "outside");
  SetLogSink(nullptr);
  EXPECT_THAT(outer_lines, ElementsAre(EndsWith("msg=outside")));
}

TEST(LogTest, ManyThreadsWriteWholeLines) {
  LogCapture capture;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 100; ++i) Log(kInfo, "x", {{"i", i}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(capture.lines(), SizeIs(400));
}

TEST(LogTest, WritesToStderrByDefault) {
  ::testing::internal::CaptureStderr();
  Log(kError, "disk full", {{"path", "/data"}});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              EndsWith("level=error msg=\"disk full\" path=/data\n"));
}

// A full disk under the log stops no work, and does not pass unsaid.
TEST(LogTest, SaysHowManyLinesAreMissingOnceStderrTakesThemAgain) {
  ::testing::internal::CaptureStderr();
  const int captured = dup(STDERR_FILENO);
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  dup2(full, STDERR_FILENO);
  Log(kInfo, "first");
  Log(kInfo, "second");
  dup2(captured, STDERR_FILENO);
  close(captured);
  close(full);
  Log(kInfo, "third");
  Log(kInfo, "fourth");
  const std::vector<std::string> lines =
      absl::StrSplit(::testing::internal::GetCapturedStderr(), '\n', absl::SkipEmpty());
  EXPECT_THAT(
      lines, ElementsAre(EndsWith("level=warning msg=\"stderr took no lines for a while\" lines=2"),
                         EndsWith("msg=third"), EndsWith("msg=fourth")));
}

TEST(LogTest, LogsAnErrorAfterTheOtherFieldsAndNothingWithoutAnError) {
  LogCapture capture;
  LogUnlessOk(kWarning, "told nobody", absl::OkStatus(), {{"batch", 7}});
  LogUnlessOk(kWarning, "told nobody", absl::UnavailableError("gone"), {{"batch", 7}});
  ASSERT_THAT(capture.lines(), SizeIs(1));
  EXPECT_THAT(capture.lines()[0],
              EndsWith("level=warning msg=\"told nobody\" batch=7 why=\"UNAVAILABLE: gone\""));
}

TEST(LogTest, LeavesOutOfAnErrorWhatIsForPrograms) {
  LogCapture capture;
  LogUnlessOk(kWarning, "told nobody", Throttled("slow down", absl::Seconds(1)));
  ASSERT_THAT(capture.lines(), SizeIs(1));
  EXPECT_THAT(capture.lines()[0], EndsWith(" why=\"RESOURCE_EXHAUSTED: slow down\""));
}

TEST(LogTest, NamesTheTraceOfTheWorkThatIsUnderWay) {
  LogCapture log;
  TraceContext outer{1, 2, 3, 1, ""}, unsampled{4, 5, 6, 0, ""};
  {
    const LogTrace of_batch(&outer);
    Log(kInfo, "a");
    {
      const LogTrace of_item(&unsampled);
      Log(kInfo, "b");
      const LogTrace none(nullptr);
      Log(kInfo, "c");
    }
    Log(kInfo, "d");
  }
  Log(kInfo, "e");
  const std::vector<std::string> lines = log.lines();
  ASSERT_THAT(lines, SizeIs(5));
  const std::string named = " trace_id=00000000000000010000000000000002 span_id=0000000000000003";
  EXPECT_THAT(lines[0], EndsWith(named));
  EXPECT_THAT(lines[1], EndsWith(" trace_id=00000000000000040000000000000005"))
      << "no span of it is recorded";
  EXPECT_THAT(lines[2], EndsWith(" msg=c"));
  EXPECT_THAT(lines[3], EndsWith(named));
  EXPECT_THAT(lines[4], EndsWith(" msg=e"));
}

TEST(LogTest, ShowsRecordsToAnObserverUntilItIsReplaced) {
  const LogCapture log;
  std::vector<std::string> seen;
  TraceContext trace{1, 2, 3, 1, ""};
  SetLogObserver([&](const LogRecord& record) {
    seen.push_back(absl::StrCat(record.message, " ", record.fields[0].key, "=",
                                record.fields[0].value, " ", record.trace == &trace));
  });
  const LogTrace of_batch(&trace);
  Log(kInfo, "a", {{"k", "\xff"}});
  SetLogObserver(nullptr);
  Log(kInfo, "b", {{"k", 1}});
  EXPECT_THAT(seen, ElementsAre("a k=\xff 1"));
}

TEST(LogTest, NamesItsLevels) {
  for (LogLevel level : {kDebug, kInfo, kWarning, kError}) {
    EXPECT_EQ(ParseLogLevel(LogLevelName(level)), level);
  }
  EXPECT_EQ(ParseLogLevel("loud"), std::nullopt);
}

}  // namespace
}  // namespace muster::base
