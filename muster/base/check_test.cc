// SPDX-License-Identifier: Apache-2.0
#include "muster/base/check.h"

#include "gtest/gtest.h"

namespace muster::base {
namespace {

TEST(CheckTest, PassesWithoutEvaluatingItsValues) {
  int evaluated = 0;
  MUSTER_CHECK(1 < 2, ++evaluated);
  MUSTER_DCHECK(1 < 2, ++evaluated);
  MUSTER_CHECK(1 < 2);
  EXPECT_EQ(evaluated, 0);
}

TEST(CheckDeathTest, StopsTheProcessAndSaysWhatIsBrokenAndWhere) {
  const int durable = 7, written = 5;
  EXPECT_DEATH(MUSTER_CHECK(durable <= written, "durable ", durable, ", written ", written),
               "invariant.*check_test.cc:.*durable <= written.*durable 7, written 5");
}

TEST(CheckDeathTest, ADebugCheckIsEvaluatedOnlyInBuildsForTests) {
  int evaluated = 0;
  const auto broken = [&] { return ++evaluated > 1; };
#ifdef NDEBUG
  MUSTER_DCHECK(broken());
  EXPECT_EQ(evaluated, 0);
#else
  EXPECT_DEATH(MUSTER_DCHECK(broken()), "broken\\(\\)");
#endif
}

}  // namespace
}  // namespace muster::base
