// SPDX-License-Identifier: Apache-2.0
#include "muster/item/labels.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::item {
namespace {

using ::testing::HasSubstr;

std::string Fault(const Labels& labels) { return std::string(CheckLabels(labels).message()); }

TEST(LabelsTest, AreNamesAndValues) {
  EXPECT_EQ(Fault({}), "");
  EXPECT_EQ(Fault({{"team", "billing"}, {"example.org/run-7_a", ""}, {"X", "grün & 1=2"}}), "");
  EXPECT_EQ(Fault({{std::string(63, 'a'), std::string(256, 'b')}}), "");
}

TEST(LabelsTest, RefusesANameThatIsNone) {
  for (const std::string& name : {std::string(), std::string(64, 'a'), std::string("-a"),
                                  std::string("a."), std::string("a b"), std::string("ä")}) {
    EXPECT_THAT(Fault({{name, "x"}}), HasSubstr("is no label: a name has 1 to 63")) << name;
  }
  EXPECT_THAT(Fault({{"a\x1b[31m", "x"}}), HasSubstr("'a?[31m' is no label"))
      << "names go to terminals";
}

TEST(LabelsTest, RefusesAValueThatIsNone) {
  for (const std::string& value :
       {std::string(257, 'b'), std::string("a\nb"), std::string("\xff"), std::string("\0", 1)}) {
    EXPECT_THAT(Fault({{"team", value}}), HasSubstr("the value of label 'team' must have"));
  }
}

TEST(LabelsTest, AreSixteenAtMost) {
  Labels labels;
  for (int i = 0; i < 16; ++i) labels[absl::StrCat("n", i)] = "";
  EXPECT_EQ(Fault(labels), "");
  labels["one-more"] = "";
  EXPECT_EQ(Fault(labels), "17 labels; a batch has at most 16");
}

// A batch whose submitter gave it the label of calls was missing from all lists.
TEST(LabelsTest, AreNotThoseOfMusterItselfWhereAClientChooses) {
  const Labels own = {{"muster/call", "mine"}, {"team", "billing"}};
  EXPECT_EQ(Fault(own), "");
  EXPECT_THAT(std::string(CheckChosenLabels(own).message()),
              HasSubstr("'muster/call' is muster's own label"));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckChosenLabels({{"muster/x", ""}})));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckChosenLabels({{"a b", ""}})));
  EXPECT_TRUE(CheckChosenLabels({{"muster", ""}, {"musters/x", ""}, {"team", ""}}).ok());
}

TEST(LabelsTest, ReadsALabelUpToItsFirstEqualsSign) {
  EXPECT_EQ(ParseLabel("team=a=b").value(),
            std::make_pair(std::string("team"), std::string("a=b")));
  EXPECT_EQ(ParseLabel("team=").value().second, "");
  EXPECT_THAT(std::string(ParseLabel("team").status().message()), HasSubstr("NAME=VALUE"));
  EXPECT_THAT(std::string(ParseLabel("=a").status().message()), HasSubstr("'' is no label"));
}

}  // namespace
}  // namespace muster::item
