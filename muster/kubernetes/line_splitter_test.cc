// SPDX-License-Identifier: Apache-2.0
#include "muster/kubernetes/line_splitter.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::kubernetes {

namespace {

using ::testing::ElementsAre;

class LineSplitterTest : public ::testing::Test {
 protected:
  absl::Status Take(absl::string_view piece) {
    return splitter_.Take(piece, [this](absl::string_view line) {
      received_.emplace_back(line);
      return line == "bad" ? absl::DataLossError("bad") : absl::OkStatus();
    });
  }

  LineSplitter splitter_{8};
  std::vector<std::string> received_;
};

TEST_F(LineSplitterTest, PutsLinesTogetherWhereverTheyWereCut) {
  for (const char c : std::string("one\ntwo\n\nthree\nfo")) EXPECT_TRUE(Take({&c, 1}).ok());
  EXPECT_THAT(received_, ElementsAre("one", "two", "three"));
  EXPECT_TRUE(Take("ur\nfive\n").ok());
  EXPECT_THAT(received_, ElementsAre("one", "two", "three", "four", "five"));
}

TEST_F(LineSplitterTest, RefusesALineThatHasNoEnd) {
  EXPECT_TRUE(Take("12345678\n").ok());
  EXPECT_TRUE(Take("1234").ok());
  EXPECT_EQ(Take("56789").code(), absl::StatusCode::kUnavailable);
}

TEST_F(LineSplitterTest, StopsAtAnError) {
  EXPECT_EQ(Take("good\nbad\nmore\n").code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(received_, ElementsAre("good", "bad"));
}

}  // namespace

}  // namespace muster::kubernetes
