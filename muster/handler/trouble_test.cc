#include "muster/handler/trouble.h"

#include <string>

#include "gtest/gtest.h"

namespace muster::handler {
namespace {

TEST(TroubleTest, IsUnknownAtFirst) {
  const Trouble trouble;
  EXPECT_EQ(trouble.why(), "");
  EXPECT_FALSE(trouble.works());
}

TEST(TroubleTest, LastsUntilAHandlerWorks) {
  Trouble trouble;
  trouble.Note("it is down");
  EXPECT_EQ(trouble.why(), "it is down");
  trouble.Works();
  EXPECT_EQ(trouble.why(), "");
  EXPECT_TRUE(trouble.works());
  trouble.Note("it is down again");
  EXPECT_EQ(trouble.why(), "it is down again");
  EXPECT_FALSE(trouble.works());
}

TEST(TroubleTest, FitsOnALineHoweverMuchIsSaid) {
  Trouble trouble;
  trouble.Note("two\nlines\x1b[31m" + std::string(1 << 20, 'x'));
  EXPECT_EQ(trouble.why().size(), kMaxTroubleBytes);
  EXPECT_EQ(trouble.why().substr(0, 15), "two?lines?[31mx");
  trouble.SetProbe([] { return "a\n" + std::string(1 << 20, 'y'); });
  trouble.Works();
  EXPECT_EQ(trouble.why().size(), kMaxTroubleBytes);
  EXPECT_EQ(trouble.why().substr(0, 3), "a?y");
}

TEST(TroubleTest, AsksItsProbeWhileNothingIsNoted) {
  Trouble trouble;
  std::string found = "nobody answers";
  trouble.SetProbe([&] { return found; });
  EXPECT_EQ(trouble.why(), "nobody answers");
  trouble.Note("it refuses");
  EXPECT_EQ(trouble.why(), "it refuses");
  trouble.Works();
  found = "";
  EXPECT_EQ(trouble.why(), "");
}

}  // namespace
}  // namespace muster::handler
