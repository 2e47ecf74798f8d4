#include "muster/report/progress.h"

#include "gtest/gtest.h"

namespace muster::report {
namespace {

Progress Full() {
  Progress progress;
  progress.batch = 7;
  progress.job = "shop";
  progress.job_revision = "r1";
  progress.items_counted = 2;
  progress.items_dead = 3;
  progress.transactions = 50;
  progress.aggregated = 19;
  progress.rejected = 1;
  progress.dead_lettered = 30;
  progress.duplicates = 4;
  progress.conflicts = 5;
  progress.attempts = 6;
  progress.first_counted = absl::FromUnixMicros(1323435000000042);
  progress.last_counted = absl::FromUnixMicros(1323435001000042);
  progress.receipt_revision = 8;
  return progress;
}

// The message has a field for each; whoever adds one to either must think of the other.
TEST(ProgressForm, CarriesEveryField) {
  const v1::CountingProgress proto = ToProto(Full());
  for (int i = 0; i < v1::CountingProgress::descriptor()->field_count(); ++i) {
    const auto* const field = v1::CountingProgress::descriptor()->field(i);
    EXPECT_TRUE(proto.GetReflection()->HasField(proto, field)) << field->name();
  }
  EXPECT_EQ(ToProto(FromProto(proto)).SerializeAsString(), proto.SerializeAsString());
  EXPECT_EQ(FromProto(proto).last_counted, Full().last_counted);
  EXPECT_EQ(FromProto(proto).conflicts, 5);
}

TEST(ProgressForm, LeavesTimesUnsetWhileNothingWasCounted) {
  const v1::CountingProgress proto = ToProto({});
  EXPECT_FALSE(proto.has_first_counted());
  EXPECT_FALSE(FromProto(proto).last_counted.has_value());
}

}  // namespace
}  // namespace muster::report
