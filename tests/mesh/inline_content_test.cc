// SPDX-License-Identifier: Apache-2.0

// Short uploads that arrive whole, and are stored in the record of their batch.
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/base/failpoint.h"
#include "muster/base/fingerprint.h"
#include "services/initiator/batch/source.h"
#include "tests/mesh/batch_service_fixture.h"

namespace muster {
namespace {

class InlineContentTest : public BatchServiceTest {
 protected:
  static v1::SubmitHeader AtOnce(const std::string& request_id) {
    v1::SubmitHeader header = Header(request_id);
    header.set_at_once(true);
    return header;
  }

  // Returns the end of a submit that claims the content hash `hash`.
  absl::Status Send(const std::string& request_id, const std::string& text,
                    const base::Fingerprint128& hash) {
    Upload upload(stub_.get());
    upload.SendHeader(AtOnce(request_id));
    upload.SendChunk(0, text);
    upload.SendSeal(text.size(), hash);
    return upload.End();
  }

  bool HasFile(uint64_t batch) const { return std::filesystem::exists(uploads_->PathOf(batch)); }
};

TEST_F(InlineContentTest, IsRecordedInOneStepWithItsBatchAndItsItems) {
  const std::string text = Input(100);
  bool recorded_later = false;
  const base::ArmedFailpoint armed("initiator.after_items_recorded", 1,
                                   [&] { recorded_later = true; });
  ASSERT_EQ(Send("short", text, base::Fingerprint(text)), absl::OkStatus());
  EXPECT_EQ(ledger_->Get(1)->content, text);
  EXPECT_EQ(ledger_->Get(1)->items, 5u);
  AwaitQueued(1, 5);
  EXPECT_FALSE(recorded_later);
  EXPECT_FALSE(HasFile(1));
  StartProcessor();
  EXPECT_EQ(Watch(1)->aggregated(), 100);
}

TEST_F(InlineContentTest, SeesItsBatchThroughAfterARestart) {
  counted_queues_.SetDown(true);
  ASSERT_TRUE(Submit("short", Input(100)).ok());
  StopInitiator();
  EXPECT_EQ(ledger_->Get(1)->enqueued_items, 0u);
  counted_queues_.SetDown(false);
  StartInitiator();
  StartProcessor();
  EXPECT_EQ(Watch(1)->aggregated(), 100);
}

TEST_F(InlineContentTest, IsNoBatchBeforeItsSeal) {
  {
    Upload cut_off(stub_.get());
    cut_off.SendHeader(AtOnce("cut off"));
    cut_off.SendChunk(0, Input(100));
    EXPECT_TRUE(absl::IsUnavailable(cut_off.End()));
  }
  EXPECT_TRUE(ledger_->ListOpen()->empty());
  EXPECT_EQ(Submit("cut off", Input(100))->batch(), 1);
}

TEST_F(InlineContentTest, MustFollowAHeaderThatSaysSo) {
  const auto refuse = [this](const auto& send) {
    Upload upload(stub_.get());
    upload.SendHeader(AtOnce("other"));
    send(upload);
    const absl::Status refused = upload.End();
    EXPECT_EQ(rpc::Violations(refused).at(0).field, "header.at_once") << refused;
  };
  refuse([](Upload& upload) {
    upload.SendChunk(0, "key\n");
    upload.SendChunk(4, "k1\n");
  });
  refuse([](Upload& upload) {
    upload.SendSeal(0, base::Fingerprint(""));
    upload.SendChunk(0, "key\n");
  });
  EXPECT_TRUE(ledger_->ListOpen()->empty());
}

TEST_F(InlineContentTest, IsTheSameToWhoeverSendsItInPieces) {
  const std::string text = Input(100);
  ASSERT_EQ(Send("again", text, base::Fingerprint(text)), absl::OkStatus());
  const auto seal = [&](const base::Fingerprint128& hash) {
    Upload pieces(stub_.get());
    pieces.SendHeader(Header("again"));
    EXPECT_EQ(pieces.Hear().accepted().durable_offset(), text.size());
    pieces.SendSeal(text.size(), hash);
    return pieces.End();
  };
  EXPECT_EQ(seal(base::Fingerprint(text)), absl::OkStatus());
  const absl::Status reused = seal(base::Fingerprint("other"));
  ASSERT_TRUE(rpc::Reason(reused).has_value()) << reused;
  EXPECT_EQ(rpc::Reason(reused)->reason, "REQUEST_ID_REUSED");
}

TEST_F(InlineContentTest, HasAFileWhereItIsLong) {
  const std::string text =
      Input(1 + static_cast<int>(initiator::batch::kMaxInlineContentBytes / 6));
  ASSERT_GT(text.size(), initiator::batch::kMaxInlineContentBytes);
  ASSERT_EQ(Send("long", text, base::Fingerprint(text)), absl::OkStatus());
  EXPECT_TRUE(HasFile(1));
  EXPECT_EQ(ledger_->Get(1)->content, "");
  EXPECT_EQ(Submit("long", text)->batch(), 1);
}

TEST_F(InlineContentTest, LeavesNoBatchWhereAnythingIsWrongWithIt) {
  const std::string text = Input(10);
  EXPECT_TRUE(absl::IsDataLoss(Send("damaged", text, base::Fingerprint("other"))));
  EXPECT_TRUE(absl::IsInvalidArgument(Send("none", "", base::Fingerprint(""))));
  const auto send = [&](uint64_t offset, uint64_t size, const std::string& hash) {
    Upload upload(stub_.get());
    upload.SendHeader(AtOnce("odd"));
    upload.SendChunk(offset, text);
    v1::SubmitRequest seal;
    seal.mutable_seal()->set_size(size);
    seal.mutable_seal()->set_content_hash(hash);
    upload.stream->Write(seal);
    return upload.End();
  };
  const std::string hash = base::Fingerprint(text).ToBytes();
  EXPECT_TRUE(absl::IsOutOfRange(send(1, text.size(), hash)));
  EXPECT_TRUE(absl::IsOutOfRange(send(0, text.size() + 1, hash)));
  EXPECT_TRUE(absl::IsInvalidArgument(send(0, text.size(), hash.substr(1))));
  EXPECT_TRUE(ledger_->ListOpen()->empty());
}

// A second submit must not confirm content that the first one failed to sync.
TEST_F(InlineContentTest, IsSyncedBeforeItIsConfirmedAgain) {
  counted_queues_.SetDown(true);
  ASSERT_TRUE(Submit("again", Input(10)).ok());
  scheduler_->Stop();
  bool synced = false;
  const base::ArmedFailpoint armed("rocks.before_sync", 1, [&] { synced = true; });
  ASSERT_TRUE(Submit("again", Input(10)).ok());
  EXPECT_TRUE(synced);
}

TEST_F(InlineContentTest, IsCancelledToWhoeverSubmitsItMeanwhile) {
  counted_queues_.SetDown(true);
  Upload upload(stub_.get());
  ASSERT_TRUE(Submit("given up", Input(10)).ok());
  upload.SendHeader(Header("given up"));
  ASSERT_EQ(upload.Hear().accepted().batch(), 1);
  ASSERT_TRUE(scheduler_->Cancel(1, "").ok());
  upload.SendSeal(Input(10).size(), base::Fingerprint(Input(10)));
  const absl::Status sealed = upload.End();
  EXPECT_TRUE(absl::IsCancelled(sealed)) << sealed;
  ASSERT_TRUE(rpc::Reason(sealed).has_value());
  EXPECT_EQ(rpc::Reason(sealed)->reason, "BATCH_CANCELLED");
}

TEST_F(InlineContentTest, IsRecordedWithItsFirstItemsOnlyWhereThereAreMany) {
  const int lines = 20 * static_cast<int>(initiator::batch::kMaxInlineItems);
  std::string text = "key\n";
  for (int i = 0; i <= lines; ++i) text += "k\n";
  counted_queues_.SetDown(true);
  ASSERT_TRUE(Submit("many", text).ok());
  EXPECT_EQ(ledger_->Get(1)->items, initiator::batch::kMaxInlineItems);
  counted_queues_.SetDown(false);
  StartProcessor();
  EXPECT_EQ(Watch(1)->aggregated(), lines + 1);
}

TEST_F(InlineContentTest, IsForgottenSomeTimeAfterItsBatchIsOver) {
  StartProcessor();
  ASSERT_TRUE(Submit("old", Input(100)).ok());
  ASSERT_TRUE(Watch(1)->complete());
  EXPECT_NE(ledger_->Get(1)->content, "");
  ASSERT_TRUE(ledger_->DropContent(1).ok());
  EXPECT_TRUE(Submit("old", Input(100))->complete());
  EXPECT_TRUE(absl::IsFailedPrecondition(Submit("old", Input(99)).status()));
}

}  // namespace
}  // namespace muster
