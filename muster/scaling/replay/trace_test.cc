// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/replay/trace.h"

#include <fstream>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"

namespace muster::scaling::replay {
namespace {

using ::testing::HasSubstr;

std::vector<std::pair<int64_t, int64_t>> Seconds(const Trace& trace) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (const SecondOfTrace& second : BySecond(trace))
    pairs.push_back({second.second, second.items});
  return pairs;
}
using Pairs = std::vector<std::pair<int64_t, int64_t>>;

Trace Read(absl::string_view text, const TraceOptions& options = {}) {
  const absl::StatusOr<Trace> trace = ParseTrace(text, "t.csv", options);
  EXPECT_TRUE(trace.ok()) << trace.status();
  return trace.value_or(Trace{});
}

std::string Refusal(absl::string_view text, const TraceOptions& options = {}) {
  return std::string(ParseTrace(text, "t.csv", options).status().message());
}

TEST(TraceReaderTest, SpreadsACountEvenlyUntilTheNextRow) {
  const Trace trace = Read("time,count\n0,4\n2,3\n5,0\n");
  EXPECT_EQ(Seconds(trace), (Pairs{{0, 2}, {1, 2}, {2, 1}, {3, 1}, {4, 1}}));
  EXPECT_EQ(trace.items, 7);
  EXPECT_EQ(trace.seconds, 8);
}

TEST(TraceReaderTest, GivesTheLastRowThePeriodOfTheOneBefore) {
  EXPECT_EQ(Seconds(Read("time,count\n0,2\n2,2\n")), (Pairs{{0, 1}, {1, 1}, {2, 1}, {3, 1}}));
}

TEST(TraceReaderTest, LetsThePeriodBeOverridden) {
  TraceOptions options;
  options.period = absl::ZeroDuration();
  EXPECT_EQ(Seconds(Read("time,count\n0,4\n60,3\n", options)), (Pairs{{0, 4}, {60, 3}}));
  options.period = absl::Seconds(4);
  // Periods may overlap.
  EXPECT_EQ(Seconds(Read("time,count\n0,4\n2,4\n", options)),
            (Pairs{{0, 1}, {1, 1}, {2, 2}, {3, 2}, {4, 1}, {5, 1}}));
}

TEST(TraceReaderTest, TakesARowForAnItemWhereThereIsNoCount) {
  EXPECT_EQ(Seconds(Read("TIMESTAMP,tokens\n2023-11-16 18:17:03.98,10\n2023-11-16 18:17:04.03,9\n"
                         "2023-11-16 18:17:04.03,9\n")),
            (Pairs{{0, 1}, {1, 2}}));
}

TEST(TraceReaderTest, FindsColumnsByName) {
  EXPECT_EQ(Read("a,Value\n0,5\n").items, 5);
  EXPECT_EQ(Read("a,value,COUNT\n0,5,7\n").items, 7);
  TraceOptions options;
  options.time_column = "when";
  options.count_column = "n";
  EXPECT_EQ(Seconds(Read("n,count,when\n3,9,10\n", options)), (Pairs{{0, 3}}));
  EXPECT_THAT(Refusal("n,count,wen\n3,9,10\n", options), HasSubstr("did you mean 'wen'"));
}

TEST(TraceReaderTest, StandsByteOrderMarksCarriageReturnsQuotesAndEmptyLines) {
  EXPECT_EQ(
      Seconds(Read("\xef\xbb\xbf\"time\",\"a \"\"b\"\"\",count\r\n\r\n\"0\",\"x,\ny\",\"2\"\r\n"
                   "1,,3")),
      (Pairs{{0, 2}, {1, 3}}));
}

TEST(TraceReaderTest, CutsTheTimeThatWasAskedFor) {
  TraceOptions options;
  options.from = absl::FromUnixSeconds(10);
  options.to = absl::FromUnixSeconds(30);
  const Trace trace = Read("time,count\n0,1\n10,20\n20,10\n30,5\n", options);
  EXPECT_EQ(trace.items, 30);
  EXPECT_EQ(trace.seconds, 20);
  EXPECT_EQ(trace.start, absl::FromUnixSeconds(10));
  options.from = absl::FromUnixSeconds(50);
  options.to.reset();
  EXPECT_THAT(Refusal("time,count\n0,1\n", options), HasSubstr("no row lies in the time"));
}

TEST(TraceReaderTest, ScalesSumsSoThatNoItemIsLost) {
  TraceOptions options;
  options.scale_counts = 0.1;
  std::string text = "time,count\n";
  for (int i = 0; i < 1000; ++i) text += std::to_string(i) + ",1\n";
  EXPECT_EQ(Read(text, options).items, 100);
}

TEST(TraceReaderTest, NamesFileLineAndReasonOfWhatIsWrong) {
  EXPECT_THAT(Refusal(""), HasSubstr("t.csv line 1: the file is empty"));
  EXPECT_THAT(Refusal("\n\n"), HasSubstr("empty"));
  EXPECT_THAT(Refusal("time,count\n"), HasSubstr("there are no rows"));
  EXPECT_THAT(Refusal("0,1\n1,2\n"), HasSubstr("begins with a header"));
  EXPECT_THAT(Refusal("time,count\n5,1\n\n4,1\n"), HasSubstr("line 4: the row is earlier"));
  EXPECT_THAT(Refusal("time,count\n5,-1\n"), HasSubstr("line 2: the count -1 is negative"));
  EXPECT_THAT(Refusal("time,count\n5,many\n"), HasSubstr("'many' is no count"));
  EXPECT_THAT(Refusal("time,count\n5,nan\n"), HasSubstr("'nan' is no count"));
  EXPECT_THAT(Refusal("time,count\nx,1\n"), HasSubstr("'x' is no time"));
  EXPECT_THAT(Refusal("time,count\n5\n"), HasSubstr("1 fields, but column 2"));
  EXPECT_THAT(Refusal("time,count\n5,\"1\n"), HasSubstr("field 2 opens a quote"));
  EXPECT_THAT(Refusal("time,count\n5,1e300\n"), HasSubstr("more than"));
  EXPECT_THAT(Refusal("time,count\n0,1\n9999999999,1\n"), HasSubstr("longer than"));
  EXPECT_THAT(Refusal("\xff\xfet\0i\0"), HasSubstr("UTF-8"));
}

TEST(TraceReaderTest, NamesTheFileThatItCannotRead) {
  const os::TempDir folder;
  EXPECT_TRUE(absl::IsNotFound(ReadTrace(folder / "none.csv", {}).status()));
  const std::string path = folder / "a.csv";
  std::ofstream(path) << "time\nx\n";
  EXPECT_THAT(std::string(ReadTrace(path, {}).status().message()), HasSubstr("a.csv' line 2"));
}

TEST(TraceTest, SecondsAndInstantsHoldTheSameItems) {
  const Trace trace = Read("time,count\n0.25,7\n3.5,1\n3.5,100\n4.75,13\n");
  std::vector<int64_t> by_second(10);
  for (const SecondOfTrace& second : BySecond(trace)) {
    by_second[static_cast<size_t>(second.second)] += second.items;
  }
  int64_t last = -1;
  for (const Instant& instant : ByInstant(trace)) {
    EXPECT_GT(instant.at_us, last);
    last = instant.at_us;
    by_second[static_cast<size_t>(instant.at_us / kSecondUs)] -= instant.items;
  }
  EXPECT_EQ(by_second, std::vector<int64_t>(10));
}

}  // namespace
}  // namespace muster::scaling::replay
