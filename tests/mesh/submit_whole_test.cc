// SPDX-License-Identifier: Apache-2.0

// Batches whose content the initiator has itself, as those of schedules.
#include "services/initiator/submit/submit_whole.h"

#include <string>
#include <tuple>

#include "gtest/gtest.h"
#include "muster/rpc/status.h"
#include "services/initiator/batch/source.h"
#include "tests/mesh/batch_service_fixture.h"

namespace muster {
namespace {

class SubmitWholeTest : public BatchServiceTest {
 protected:
  absl::StatusOr<uint64_t> SubmitWhole(const std::string& request_id, const std::string& content) {
    v1::SubmitHeader header;
    header.set_job("count");
    header.set_request_id(request_id);
    return initiator::submit::SubmitWhole(
        {submissions_.get(), scheduler_.get(), uploads_.get(), ledger_.get()}, header, content);
  }
};

TEST_F(SubmitWholeTest, ShortAndLongContentBecomeOneBatchForEachRequestId) {
  StartProcessor();
  const std::string short_content = Input(100), long_content = Input(20000);
  ASSERT_LE(short_content.size(), initiator::batch::kMaxInlineContentBytes);
  ASSERT_GT(long_content.size(), initiator::batch::kMaxInlineContentBytes);
  for (const auto& [id, content, lines] :
       {std::tuple("short", short_content, 100), std::tuple("long", long_content, 20000)}) {
    const auto batch = SubmitWhole(id, content);
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_EQ(SubmitWhole(id, content).value(), *batch);
    const auto last = Watch(*batch);
    ASSERT_TRUE(last.ok()) << last.status();
    EXPECT_TRUE(last->complete());
    EXPECT_EQ(last->transactions(), lines);
    EXPECT_EQ(SubmitWhole(id, content).value(), *batch);
  }
}

TEST_F(SubmitWholeTest, AnUploadThatDiedInTheMiddleIsGoneOnWith) {
  const std::string content = Input(20000);
  v1::SubmitHeader header;
  header.set_job("count");
  header.set_request_id("cut");
  const auto begun = submissions_->Begin(header);
  ASSERT_TRUE(begun.ok()) << begun.status();
  {
    const auto upload = uploads_->Get(begun->number).value();
    ASSERT_TRUE(upload->Append(upload->TakeOver(), 0, content.substr(0, 5000)).ok());
  }
  EXPECT_EQ(SubmitWhole("cut", content).value(), begun->number);
  StartProcessor();
  EXPECT_EQ(Watch(begun->number)->transactions(), 20000);
}

TEST_F(SubmitWholeTest, ABatchThatWasCancelledOrWhoseJobHasChangedIsTheBatchOfItsRequestId) {
  const std::string content = Input(100);
  const uint64_t first = SubmitWhole("first", content).value();
  const uint64_t second = SubmitWhole("second", content).value();
  ASSERT_TRUE(scheduler_->Cancel(first, "not wanted").ok());
  EXPECT_EQ(SubmitWhole("first", content).value(), first);
  std::string revised = kJob;
  revised.replace(revised.find("transactions: 20"), 16, "transactions: 10");
  ASSERT_TRUE(jobs_.Apply(revised, std::nullopt)->revised);
  EXPECT_EQ(SubmitWhole("second", content).value(), second);
}

TEST_F(SubmitWholeTest, ARefusalIsOne) {
  ASSERT_TRUE(jobs_.Delete("count").ok());
  const absl::Status refused = SubmitWhole("first", Input(1)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(rpc::Reason(refused)->reason, "NO_SUCH_JOB");
}

}  // namespace
}  // namespace muster
