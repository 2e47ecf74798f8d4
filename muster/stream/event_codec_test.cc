// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/event_codec.h"

#include <string>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/text.h"

namespace muster::stream {
namespace {

using ::testing::HasSubstr;

const NewEvent kEvent{.key = "home-7", .body = "21.5", .properties = {{"a", "1"}, {"b", ""}}};
constexpr char kStored[] =
    "01"
    "0600686f6d652d37"
    "0200"
    "010061010031"
    "0100620000"
    "32312e35";

TEST(EventCodecTest, KeepsItsForm) {
  EXPECT_EQ(absl::BytesToHexString(EncodeContent(kEvent)), kStored);
  const auto event = DecodeContent(base::BytesFromHex(kStored), "event 1");
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(event->key, kEvent.key);
  EXPECT_EQ(event->body, kEvent.body);
  EXPECT_EQ(event->properties, kEvent.properties);
}

TEST(EventCodecTest, NoticesWhatIsCutOffBeforeTheBody) {
  const std::string good = EncodeContent(kEvent);
  for (size_t size = 0; size < good.size() - kEvent.body.size(); ++size) {
    const absl::Status cut = DecodeContent(good.substr(0, size), "event 7").status();
    EXPECT_EQ(cut.code(), absl::StatusCode::kDataLoss) << size;
    EXPECT_THAT(std::string(cut.message()), HasSubstr("event 7"));
  }
}

TEST(EventCodecTest, TakesPropertiesOnlyInTheirOrder) {
  const std::string twice = base::BytesFromHex("0100000200010061000001006100005a");
  EXPECT_EQ(DecodeContent(twice, "event 1").status().code(), absl::StatusCode::kDataLoss);
}

TEST(EventCodecTest, SaysThatANewerFormatIsNotDamage) {
  const absl::Status status = DecodeContent("\x02whatever", "event 1").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("format 2"));
}

}  // namespace
}  // namespace muster::stream
