// SPDX-License-Identifier: Apache-2.0

// Any sequence of commands, crashes among them: the engine answers as the model of a queue does.
//
// MUSTER_TEST_SEED=random takes other sequences. A failure shows the shortest sequence that fails,
// and how to run it again; RC_PARAMS sets RapidCheck's parameters, such as max_success.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "muster/base/clock.h"
#include "rapidcheck.h"
#include "rapidcheck/detail/Configuration.h"
#include "rapidcheck/detail/TestListenerAdapter.h"
#include "tests/fakes/base/test_seed.h"
#include "tests/fakes/queue/rocksdb/model_command.h"
#include "tests/fakes/queue/rocksdb/model_run.h"

namespace muster::queue::rocksdb {
namespace {

// Replaces rc::check, which prints even when all goes well.
rc::detail::Configuration ConfigurationOf(int sequences) {
  rc::detail::Configuration defaults;
  defaults.testParams.seed = base::testing::TestSeed();
  defaults.testParams.maxSuccess = base::testing::CaseCount(sequences);
  const char* params = getenv("RC_PARAMS");
  return rc::detail::configFromString(params == nullptr ? "" : params, defaults);
}

template <typename Property>
void CheckAll(int sequences, const Property& property) {
  rc::detail::Configuration configuration = ConfigurationOf(sequences);
  rc::detail::TestMetadata metadata;
  metadata.id = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  rc::detail::TestListenerAdapter silent;
  const rc::detail::TestResult result = rc::detail::checkTestable(
      property, metadata, configuration.testParams, silent, configuration.reproduce);
  if (result.template is<rc::detail::SuccessResult>()) return;
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  text << "\nTo run all of it again:  RC_PARAMS=\"seed=" << configuration.testParams.seed << "\"";
  if (result.template is<rc::detail::FailureResult>()) {
    rc::detail::Configuration again;
    again.reproduce[metadata.id] = result.template get<rc::detail::FailureResult>().reproduce;
    text << "\nTo run this sequence again:  RC_PARAMS=\""
         << rc::detail::configToMinimalString(again) << "\"";
  }
  FAIL() << text.str();
}

// Sequences share a store, each with its own queue, until a sequence has opened the store again.
class ModelTest : public ::testing::Test {
 protected:
  void Run(const std::vector<Command>& commands) {
    if (!last_passed_) failing_ = last_;
    if (ShrinkingIsOver() && !(commands == failing_)) return;
    last_ = commands;
    if (!last_passed_ || store_ == nullptr || store_->WasReopened()) {
      store_ = std::make_unique<ModelStore>();
    }
    last_passed_ = false;
    ModelRun run(store_.get(), {"acme", "work"});
    for (const Command& command : commands) run.Do(command);
    run.Finish();
    last_passed_ = true;
  }

 private:
  // After a minute no shorter sequence counts as a failure, so that a slow machine reports the
  // failure, too.
  bool ShrinkingIsOver() {
    const absl::Duration now = base::RealClock()->Monotonic();
    if (!last_passed_) first_failure_ = std::min(first_failure_, now);
    return now - first_failure_ > absl::Minutes(1);
  }

  std::unique_ptr<ModelStore> store_;
  bool last_passed_ = true;
  std::vector<Command> last_, failing_;  // RapidCheck runs the shortest again for its message
  absl::Duration first_failure_ = absl::InfiniteDuration();
};

TEST_F(ModelTest, AnswersAsAQueueDoes) {
  CheckAll(2000, [this] { Run(*AnyCommands(/*with_crashes=*/false)); });
}

TEST_F(ModelTest, KeepsWhatItAcknowledgedAndInventsNothingWhateverEndsIt) {
  CheckAll(250, [this] { Run(*AnyCommands(/*with_crashes=*/true)); });
}

}  // namespace
}  // namespace muster::queue::rocksdb
