// SPDX-License-Identifier: Apache-2.0
#include "muster/base/trace_context.h"

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/text.h"
#include "tests/fakes/base/test_seed.h"

namespace muster::base {
namespace {

using ::testing::HasSubstr;

constexpr char kParent[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

std::string WhyNot(absl::string_view text) {
  const auto trace = TraceContext::FromTraceparent(text);
  EXPECT_TRUE(absl::IsInvalidArgument(trace.status())) << text;
  return std::string(trace.status().message());
}

TEST(TraceContextTest, ReadsAndWritesATraceparent) {
  const auto trace = TraceContext::FromTraceparent(kParent);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->trace_high, 0x4bf92f3577b34da6u);
  EXPECT_EQ(trace->trace_low, 0xa3ce929d0e0e4736u);
  EXPECT_EQ(trace->parent, 0x00f067aa0ba902b7u);
  EXPECT_TRUE(trace->sampled());
  EXPECT_EQ(trace->ToTraceparent(), kParent);
}

// Stored in ledgers and queues: must never change.
TEST(TraceContextTest, HasTheBytesThatEveryReleaseReads) {
  constexpr char kStored[] = "004bf92f3577b34da6a3ce929d0e0e473600f067aa0ba902b701";
  const TraceContext trace = TraceContext::FromTraceparent(kParent).value();
  EXPECT_EQ(absl::BytesToHexString(trace.ToBytes()), kStored);
  EXPECT_EQ(TraceContext::FromBytes(BytesFromHex(kStored)), trace);
}

TEST(TraceContextTest, ReadsALaterVersionAsFarAsItIsKnown) {
  const auto trace = TraceContext::FromTraceparent(
      "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff-what the future will be like");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->ToTraceparent(), kParent);
}

TEST(TraceContextTest, SaysWhatIsWrongWithATraceparent) {
  const std::string good = kParent;
  EXPECT_THAT(WhyNot(""), HasSubstr("too short"));
  EXPECT_THAT(WhyNot(good.substr(0, 54)), HasSubstr("too short"));
  EXPECT_THAT(WhyNot(good + "-"), HasSubstr("too long"));
  EXPECT_THAT(WhyNot("01" + good.substr(2) + ".more"), HasSubstr("too long"));
  EXPECT_THAT(WhyNot("ff" + good.substr(2)), HasSubstr("version ff"));
  EXPECT_THAT(WhyNot("00_" + good.substr(3)), HasSubstr("dashes"));
  EXPECT_THAT(WhyNot("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"),
              HasSubstr("lower-case"));
  EXPECT_THAT(WhyNot("00-" + std::string(32, '0') + "-00f067aa0ba902b7-01"), HasSubstr("zero"));
  EXPECT_THAT(WhyNot("00-4bf92f3577b34da6a3ce929d0e0e4736-" + std::string(16, '0') + "-01"),
              HasSubstr("zero"));
}

// Puts every byte in every place: the reader accepts only text that equals the writer's output.
TEST(TraceContextTest, ReadsNothingButWhatItWrites) {
  const std::string good = kParent;
  for (size_t place = 0; place < good.size(); ++place) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string text = good;
      text[place] = static_cast<char>(byte);
      const auto trace = TraceContext::FromTraceparent(text);
      const bool is_version_or_flags = place < 2 || place > 52;
      if (!trace.ok() || is_version_or_flags) continue;
      EXPECT_EQ(trace->ToTraceparent(), text);
    }
  }
}

TEST(TraceContextTest, TakesDamagedBytesForNoContext) {
  const std::string good = TraceContext::FromTraceparent(kParent)->ToBytes();
  EXPECT_EQ(TraceContext::FromBytes(""), std::nullopt);
  EXPECT_EQ(TraceContext::FromBytes(good.substr(1)), std::nullopt);
  EXPECT_EQ(TraceContext::FromBytes(good + good), std::nullopt);
  EXPECT_EQ(TraceContext::FromBytes("\1" + good.substr(1)), std::nullopt);
  EXPECT_EQ(TraceContext::FromBytes(std::string(26, '\0')), std::nullopt);
}

TEST(TraceContextTest, BoundsWhatComesWithIt) {
  EXPECT_TRUE(CheckTraceState("").ok());
  EXPECT_TRUE(CheckTraceState("congo=t61rcWkgMzE,rojo=00f067aa0ba902b7").ok());
  EXPECT_TRUE(CheckTraceState(std::string(512, 'x')).ok());
  for (const std::string& bad :
       {std::string(513, 'x'), std::string("a=\n"), std::string("a=\xc3"), std::string(1, '\0')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckTraceState(bad))) << absl::CEscape(bad);
  }
}

TEST(NewTraceTest, SamplesTheShareThatItIsTold) {
  const uint64_t seed = testing::TestSeed();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  constexpr int kTraces = 10'000;
  int sampled = 0;
  for (int i = 0; i < kTraces; ++i) {
    const TraceContext trace = NewTrace(0.25, [&] { return random(); });
    sampled += trace.sampled() ? 1 : 0;
    EXPECT_EQ(TraceContext::FromTraceparent(trace.ToTraceparent()).value(), trace);
  }
  // The tolerance is ten standard deviations.
  EXPECT_NEAR(sampled, kTraces / 4, 10 * std::sqrt(kTraces * 0.25 * 0.75));
}

TEST(NewTraceTest, SamplesAllOrNoneAtTheEnds) {
  for (const uint64_t low : {uint64_t{0}, uint64_t{1}, std::numeric_limits<uint64_t>::max()}) {
    const auto yield = [&, calls = 0]() mutable { return ++calls == 2 ? low : 7; };
    EXPECT_TRUE(NewTrace(1, yield).sampled());
    EXPECT_FALSE(NewTrace(0, yield).sampled());
    EXPECT_FALSE(NewTrace(std::nan(""), yield).sampled());
  }
}

TEST(NewTraceTest, NeverDrawsAnIdThatIsZero) {
  std::vector<uint64_t> drawn = {0, 0, 5, 0, 0, 9};
  const TraceContext trace = NewTrace(1, [&, next = drawn.begin()]() mutable { return *next++; });
  EXPECT_EQ(trace.ToTraceparent(), "00-00000000000000050000000000000000-0000000000000009-01");
  EXPECT_NE(NewTrace(1), NewTrace(1));
}

}  // namespace
}  // namespace muster::base
