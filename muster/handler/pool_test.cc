// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/pool.h"

#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "muster/handler/sample_item.h"

namespace muster::handler {
namespace {

class PooledTest : public ::testing::Test {
 protected:
  // Returns its number as a delay. A test can make its end wait for the ends of other handlers.
  class NumberedHandler final : public Handler {
   public:
    NumberedHandler(PooledTest* test, int number) : test_(test), number_(number) {}
    ~NumberedHandler() override { test_->End(); }
    Outcome Process(const WorkItem&, Results&) override {
      return Outcome::Defer(absl::Seconds(number_), "");
    }

   private:
    PooledTest* const test_;
    const int number_;
  };

  absl::StatusOr<std::unique_ptr<Handler>> Make() {
    if (broken_) return absl::NotFoundError("no such program");
    return std::make_unique<NumberedHandler>(this, ++made_);
  }

  std::unique_ptr<Handler> Lend() { return *factory_(schema_); }

  static int NumberOf(Handler& handler) {
    const JobSchema schema;
    const SampleItem item({});
    Results results(&schema, item.size());
    return static_cast<int>(handler.Process(item.get(), results).delay / absl::Seconds(1));
  }

  void End() {
    base::MutexLock lock(&mu_);
    ++ended_;
    changed_.NotifyAll();
    while (ended_ < await_ends_) changed_.Wait(&mu_);
  }

  int ended() {
    base::MutexLock lock(&mu_);
    return ended_;
  }

  base::Mutex mu_;
  base::CondVar changed_;
  int ended_ ABSL_GUARDED_BY(mu_) = 0;
  int await_ends_ = 0;
  int made_ = 0;
  bool broken_ = false;
  const JobSchema schema_{};
  HandlerFactory factory_ = PooledHandlers([this](const JobSchema&) { return Make(); });
};

TEST_F(PooledTest, LendsWhatWasGivenBack) {
  for (int worker = 0; worker < 3; ++worker) EXPECT_EQ(NumberOf(*Lend()), 1);
  EXPECT_EQ(made_, 1);
}

TEST_F(PooledTest, MakesAnotherWhileAllAreLent) {
  const std::unique_ptr<Handler> first = Lend();
  const std::unique_ptr<Handler> second = Lend();
  EXPECT_EQ(NumberOf(*first), 1);
  EXPECT_EQ(NumberOf(*second), 2);
}

TEST_F(PooledTest, LendsTheLastUsedFirst) {
  std::unique_ptr<Handler> first = Lend();
  Lend().reset();
  first.reset();
  EXPECT_EQ(NumberOf(*Lend()), 1);
}

TEST_F(PooledTest, PassesOnWhyNoneCanBeMade) {
  broken_ = true;
  EXPECT_EQ(factory_(schema_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(PooledTest, KeepsWhatItLentBeyondTheFactory) {
  std::unique_ptr<Handler> lent = Lend();
  factory_ = nullptr;
  EXPECT_EQ(NumberOf(*lent), 1);
  lent.reset();
  EXPECT_EQ(ended(), 1);
}

// Each end may take its exit grace: ends one after another would add the graces up.
TEST_F(PooledTest, EndsItsHandlersSideBySide) {
  {
    const std::unique_ptr<Handler> first = Lend();
    const std::unique_ptr<Handler> second = Lend();
    const std::unique_ptr<Handler> third = Lend();
  }
  await_ends_ = 3;
  factory_ = nullptr;  // returns, or the test hangs
  EXPECT_EQ(ended(), 3);
}

}  // namespace
}  // namespace muster::handler
