// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/api/ledger_service.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/fingerprint.h"
#include "muster/item/work_item_codec.h"
#include "muster/ledger/rocksdb/rocksdb_batch_ledger.h"
#include "muster/os/temp_dir.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"

namespace muster::initiator::api {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr absl::Duration kLong = absl::Minutes(2);  // no machine is that slow
constexpr size_t kPiece = size_t{1} << 20;

// The contents of items, whose index is their place.
class ListedContent final : public content::ItemContent {
 public:
  absl::Status Read(const content::ItemReference& item, std::string* slice) override {
    if (item.index >= items.size()) return absl::DataLossError("it has changed");
    *slice = items[item.index];
    return absl::OkStatus();
  }

  std::vector<std::string> items;
};

// The service of one batch, number 7 of the data directory "mine", behind a server.
class ReadItemsTest : public ::testing::Test {
 protected:
  using Stub = v1::LedgerService::Stub;
  using Stream = std::unique_ptr<grpc::ClientReader<v1::ReadItemsResponse>>;

  void Serve(rpc::StreamLimits limits = kContentLimits) {
    ledger::Batch batch;
    batch.number = 7;
    batch.owner = "mine";
    ASSERT_TRUE(ledger_->Create(batch).ok());
    service_ = std::make_unique<LedgerService>(ledger_.get(), nullptr, &content_, nullptr,
                                               LedgerService::Waiters(), nullptr, limits);
    rpc::ServerOptions options;
    options.addresses = {"localhost:0"};
    server_ =
        rpc::Server::Start(options, {{v1::LedgerService::service_full_name(), service_.get()}})
            .value();
  }

  std::unique_ptr<Stub> Connect() {
    rpc::ChannelOptions options;
    options.retry_unavailable = false;
    const auto channel = rpc::OpenChannel(server_->addresses().front(), options);
    return v1::LedgerService::NewStub(channel.value());
  }

  v1::ReadItemsRequest AskFor(const std::vector<uint32_t>& items) const {
    v1::ReadItemsRequest request;
    request.set_batch(7);
    request.set_owner("mine");
    for (const uint32_t index : items) {
      v1::ItemToRead* const item = request.add_items();
      item->set_index(index);
      item->set_content_hash(base::Fingerprint("any").ToBytes());
    }
    return request;
  }

  // Keeps the pieces in `pieces_`.
  absl::Status Read(const v1::ReadItemsRequest& request) {
    rpc::CallContext context(kLong);
    const Stream stream = Connect()->ReadItems(&context, request);
    pieces_.clear();
    for (v1::ReadItemsResponse piece; stream->Read(&piece);) pieces_.push_back(piece);
    return rpc::FromGrpc(stream->Finish());
  }

  // What was read of the item.
  std::string ItemIn(const std::vector<v1::ReadItemsResponse>& pieces, uint32_t index) const {
    std::string item;
    for (const v1::ReadItemsResponse& piece : pieces) {
      if (piece.index() != index) continue;
      if (piece.compression() == v1::COMPRESSION_NONE) {
        item += piece.data();
        continue;
      }
      std::string raw(piece.raw_bytes(), '\0');
      EXPECT_TRUE(item::Decompress(piece.data(), &raw));
      item += raw;
    }
    return item;
  }

  const os::TempDir dir_;
  const std::unique_ptr<ledger::rocksdb::RocksDbBatchLedger> ledger_ =
      ledger::rocksdb::RocksDbBatchLedger::Open(dir_ / "ledger", {}).value();
  ListedContent content_;
  std::unique_ptr<LedgerService> service_;
  std::unique_ptr<rpc::Server> server_;
  std::vector<v1::ReadItemsResponse> pieces_;
};

TEST_F(ReadItemsTest, SendsTheItemsInTheOrderInWhichTheyAreAskedFor) {
  content_.items = {"zero", "one", "two"};
  Serve();
  ASSERT_EQ(Read(AskFor({2, 0})), absl::OkStatus());
  ASSERT_THAT(pieces_, SizeIs(2));
  EXPECT_EQ(pieces_[0].data(), "two");
  EXPECT_TRUE(pieces_[0].is_last());
  EXPECT_EQ(pieces_[1].data(), "zero");
}

TEST_F(ReadItemsTest, SendsALargeItemInPiecesThatFitIntoAMessage) {
  std::string large;
  for (int i = 0; large.size() < 2 * kPiece + 5; ++i) absl::StrAppend(&large, i, ",");
  content_.items = {large, ""};
  Serve();
  for (const bool compress : {false, true}) {
    v1::ReadItemsRequest request = AskFor({0, 1});
    request.set_compress(compress);
    ASSERT_EQ(Read(request), absl::OkStatus());
    ASSERT_THAT(pieces_, SizeIs(4)) << "an empty item is a piece, too";
    EXPECT_EQ(pieces_[0].compression() == v1::COMPRESSION_LZ4, compress);
    EXPECT_EQ(ItemIn(pieces_, 0), large);
    EXPECT_FALSE(pieces_[1].is_last());
    EXPECT_TRUE(pieces_[2].is_last());
  }
}

TEST_F(ReadItemsTest, EndsWithTheErrorOfAnItemBehindThoseThatAreGood) {
  content_.items = {"zero"};
  Serve();
  EXPECT_TRUE(absl::IsDataLoss(Read(AskFor({0, 9}))));
  EXPECT_EQ(ItemIn(pieces_, 0), "zero");
}

TEST_F(ReadItemsTest, RefusesWhatNobodyMeans) {
  content_.items = {"zero"};
  Serve();
  EXPECT_THAT(std::string(Read(AskFor(std::vector<uint32_t>(65, 0))).message()),
              HasSubstr("at most 64"));
  v1::ReadItemsRequest request = AskFor({0});
  request.mutable_items(0)->set_content_hash("short");
  EXPECT_TRUE(absl::IsInvalidArgument(Read(request)));
  request = AskFor({0});
  request.set_owner("another's");
  EXPECT_TRUE(absl::IsNotFound(Read(request)));
  EXPECT_THAT(pieces_, IsEmpty());
}

// A processor that hangs holds a thread of the initiator, and the content of an item.
TEST_F(ReadItemsTest, GivesThePlaceOfAReaderThatTakesNothingToAnother) {
  // More than fits into the connection's buffers.
  content_.items = {std::string(16 * kPiece, 'x'), "one"};
  Serve({.max_streams = 1, .yields_after = absl::ZeroDuration()});
  rpc::CallContext context(kLong);
  const auto stub = Connect();
  const Stream hangs = stub->ReadItems(&context, AskFor({0}));
  v1::ReadItemsResponse piece;
  ASSERT_TRUE(hangs->Read(&piece));
  absl::Status read;
  do {
    read = Read(AskFor({1}));  // Unavailable until the server waits for the first reader
  } while (absl::IsUnavailable(read));
  EXPECT_EQ(read, absl::OkStatus());
  EXPECT_EQ(ItemIn(pieces_, 1), "one");
  while (hangs->Read(&piece)) {
  }
  EXPECT_TRUE(absl::IsUnavailable(rpc::FromGrpc(hangs->Finish())));
}

}  // namespace
}  // namespace muster::initiator::api
