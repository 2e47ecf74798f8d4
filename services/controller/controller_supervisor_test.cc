#include "services/controller/controller_supervisor.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/controller/controller_fixture.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ControllerSupervisorTest : public ControllerTest {
 protected:
  // Returns the log lines about job "shop", in order.
  std::vector<std::string> Told() const {
    std::vector<std::string> told;
    for (const std::string& line : log_.lines()) {
      if (absl::StrContains(line, "job=shop")) told.push_back(line);
    }
    return told;
  }

  const base::LogCapture log_;
};

TEST_F(ControllerSupervisorTest, TellsThatItGoesOnWhenAStoreDidNotWork) {
  OpenBatch(1);
  PutQuietly({Result(0)});
  report_->FailNext({.status = absl::InternalError("the connection was closed")});
  ControllerSupervisor counting(item::kLocalAccount, Instantly(), host_->events(), dependencies());
  ASSERT_TRUE(counting.Begin("shop").ok());
  while (Told().empty()) base::LetOthersRun();
  // The lease of the result in progress lapses, too.
  while (GetProgress().items() == 0) {
    clock_.AwaitSleepers(1);
    clock_.Advance(absl::Seconds(1));
  }
  counting.Stop();
  EXPECT_THAT(Told(),
              ElementsAre(testing::AllOf(HasSubstr("level=error"), HasSubstr("it is tried again"),
                                         HasSubstr("the connection was closed")),
                          HasSubstr("are counted again")));
  EXPECT_EQ(GetProgress().items(), 1);
}

}  // namespace
}  // namespace muster::controller
