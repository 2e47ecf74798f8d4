// SPDX-License-Identifier: Apache-2.0
#include "muster/input/json_members.h"

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/input/byte_source.h"
#include "muster/input/content_kind.h"
#include "muster/input/slice_reader.h"

namespace muster::input {
namespace {

using ::testing::HasSubstr;

// Columns id and customer.
InputFormat CustomerFormat(const std::string& customer, bool optional = false) {
  InputFormat format;
  format.kind = InputFormat::Kind::kJsonl;
  format.header = false;
  format.columns = {{"id", std::string("Id")}, {"customer", customer, optional}};
  return format;
}

std::string JsonRecords(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&text, "{\"Id\": ", i, ", \"Customer\": \"c\"}\n");
  }
  return text;
}

TEST(JsonMembersTest, AreThere) {
  EXPECT_TRUE(CheckMembers(CustomerFormat("Customer"), JsonRecords(5), true).ok());
  EXPECT_TRUE(CheckMembers(CustomerFormat("Customer"), "", true).ok());
}

TEST(JsonMembersTest, AMistypedOneIsRefusedAtTheFirstRecordWithTheOneThatIsMeant) {
  const absl::Status refused = CheckMembers(CustomerFormat("Custommer"), JsonRecords(1), true);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("none of the first 1 records has the member 'Custommer' of column "
                        "'customer'; did you mean 'Customer'? (their members: 'Customer', 'Id'"));
}

TEST(JsonMembersTest, OneThatIsLikeNoneIsRefusedOnceManyRecordsLackIt) {
  EXPECT_TRUE(CheckMembers(CustomerFormat("Region"), JsonRecords(kLookedAtRecords - 1), true).ok());
  const absl::Status refused =
      CheckMembers(CustomerFormat("Region"), JsonRecords(kLookedAtRecords), true);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("none of the first 100 records has the member 'Region'"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("`input.optional`"));
}

TEST(JsonMembersTest, AnOptionalOneMayBeMissing) {
  EXPECT_TRUE(
      CheckMembers(CustomerFormat("Custommer", true), JsonRecords(kLookedAtRecords), true).ok());
}

TEST(JsonMembersTest, OneThatSomeRecordHasIsThere) {
  const std::string text = absl::StrCat(JsonRecords(50), "{\"Region\": null}\n", JsonRecords(60));
  EXPECT_TRUE(CheckMembers(CustomerFormat("Region"), text, true).ok());
}

TEST(JsonMembersTest, ANameThatAnotherColumnTakesIsNotMeant) {
  InputFormat format = CustomerFormat("Customer");
  format.columns.push_back({"again", std::string("Customers")});
  EXPECT_TRUE(CheckMembers(format, JsonRecords(5), true).ok());
}

TEST(JsonMembersTest, MayLieWithinOthers) {
  const std::string text = "{\"Id\": 1, \"Customer\": {\"city\": \"Ulm\"}}\n";
  EXPECT_TRUE(CheckMembers(CustomerFormat("Customer.city"), text, true).ok());
  EXPECT_THAT(std::string(CheckMembers(CustomerFormat("Customer.citty"), text, true).message()),
              HasSubstr("did you mean 'Customer.city'?"));
}

TEST(JsonMembersTest, WhatIsNoObjectSaysNothing) {
  EXPECT_TRUE(CheckMembers(CustomerFormat("Custommer"), "17\n[]\n{\"Customer\n\n", true).ok());
}

TEST(JsonMembersTest, TheLastLineCountsOnlyWhereItIsWhole) {
  const std::string text = "{\"Id\": 1, \"Customer\": \"c\"}";
  EXPECT_TRUE(CheckMembers(CustomerFormat("Custommer"), text, false).ok());
  EXPECT_FALSE(CheckMembers(CustomerFormat("Custommer"), text, true).ok());
}

TEST(JsonMembersTest, AreLookedAtWhereTheContentIsNew) {
  const std::string text = absl::StrCat("\xef\xbb\xbf", JsonRecords(3));
  const TextSource input(text);
  EXPECT_EQ(CheckContentKind(input, CustomerFormat("Custommer")).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(CheckContentKind(input, CustomerFormat("Customer")).ok());
}

TEST(JsonMembersTest, AreLookedForInAsManyRecordsWhereTheseAreWide) {
  std::string text;
  for (int i = 0; i < kLookedAtRecords; ++i) {
    absl::StrAppend(&text, "{\"Id\": 1, \"Customer\": \"", std::string(10000, 'c'), "\"}\n");
  }
  ASSERT_GT(text.size(), kLookedAtBytes);
  const TextSource input(text);
  EXPECT_THAT(std::string(CheckContentKind(input, CustomerFormat("Region")).message()),
              HasSubstr("none of the first 100 records has the member 'Region'"));
  EXPECT_TRUE(CheckContentKind(TextSource(absl::StrCat("{\"Region\": 1}\n", text)),
                               CustomerFormat("Region"))
                  .ok());
}

// A retry has those records of a batch that were rejected: all of them may lack what they were
// rejected for, while others of the batch had it.
TEST(JsonMembersTest, MayBeInNoneOfTheRecordsThatAreReadAgain) {
  const std::string text = absl::StrCat("\xef\xbb\xbf", JsonRecords(kLookedAtRecords));
  const TextSource input(text);
  const absl::StatusOr<Header> header = ReadHeader(input, CustomerFormat("Region"));
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->data.offset, 3u);
}

}  // namespace
}  // namespace muster::input
