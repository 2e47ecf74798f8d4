// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/base/test_seed.h"

#include <cstdlib>

#include "absl/base/config.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "muster/base/fingerprint.h"
#include "muster/base/random.h"

namespace muster::base::testing {

namespace {

constexpr uint64_t kMask = 0x7fffffff;

uint64_t SeedOfThisTest() {
  const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
  return Fingerprint(absl::StrCat(test->test_suite_name(), ".", test->name())).low;
}

}  // namespace

uint32_t TestSeed() {
  const char* told = getenv("MUSTER_TEST_SEED");
  uint64_t seed = 0;
  if (told == nullptr) {
    seed = SeedOfThisTest();
  } else if (absl::string_view(told) == "random") {
    seed = RandomSeed();
  } else if (!absl::SimpleAtoi(told, &seed)) {
    ADD_FAILURE() << "MUSTER_TEST_SEED is neither a number nor 'random', but " << told;
  }
  return static_cast<uint32_t>(seed & kMask);
}

int CaseCount(int cases) {
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
  return cases / 10;
#else
  return getenv("MUSTER_TEST_SMALL_COUNTS") == nullptr ? cases : cases / 4;
#endif
}

}  // namespace muster::base::testing
