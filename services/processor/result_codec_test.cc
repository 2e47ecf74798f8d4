// Results as they lie in output queues: golden forms, which no later change may alter.
#include "services/processor/result_codec.h"

#include <optional>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace muster::processor {
namespace {

constexpr char kAggregated[] =
    "080510071a0672657461696c220272312a013232104ab13d33823a2c3a74749cb852a7488f380340014a0b70726f63"
    "6573736f722d31523f0a270a0a62795f636f756e74727912190a064672616e63650a07323031312d303112062d3132"
    "2e35301214082c121070726963653a206e6f206e756d626572";
constexpr char kDeadLettered[] =
    "080510071a0672657461696c220272312a013232104ab13d33823a2c3a74749cb852a7488f380340054a0b70726f63"
    "6573736f722d315a090a0769742064696564";

wire::WorkItem GoldenItem() {
  wire::WorkItem item;
  item.identity = {5, "retail", "r1", "2", std::nullopt, {}, 0};
  item.index = 7;
  item.transactions = 3;
  item.content = base::Fingerprint("slice");
  return item;
}

TEST(ResultCodecTest, WritesTheBytesThatEveryReleaseReads) {
  const std::vector<handler::GroupPartial> groups = {
      {"by_country", {{{"France", "2011-01"}, {*base::Decimal::TryParse("-12.50")}}}}};
  const auto aggregated = EncodeAggregated(GoldenItem(), {"2", "processor-1", 1}, groups,
                                           {{44, "price: no number"}}, nullptr);
  ASSERT_TRUE(aggregated.ok()) << aggregated.status();
  EXPECT_EQ(absl::BytesToHexString(*aggregated), kAggregated);
  EXPECT_EQ(
      absl::BytesToHexString(EncodeDeadLettered(GoldenItem(), {"2", "processor-1", 5}, "it died")),
      kDeadLettered);
}

}  // namespace
}  // namespace muster::processor
