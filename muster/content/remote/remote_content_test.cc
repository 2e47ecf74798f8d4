// SPDX-License-Identifier: Apache-2.0

// On a real server on loopback.
#include "muster/content/remote/remote_content.h"

#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/ledger/batch_proto.h"
#include "muster/os/temp_dir.h"
#include "muster/rpc/server.h"
#include "muster/v1/ledger_service.grpc.pb.h"
#include "tests/fakes/content/memory_records.h"

namespace muster::content::remote {
namespace {

using ::testing::HasSubstr;

// An initiator with one batch, of three items: "one", "two" and "six".
class Initiator final : public v1::LedgerService::Service {
 public:
  explicit Initiator(std::string path) : path_(std::move(path)) {
    Write(path_);
    rpc::ServerOptions options;
    options.addresses = {"localhost:0"};
    server_ = rpc::Server::Start(options, {{v1::LedgerService::service_full_name(), this}}).value();
  }

  void Write(const std::string& path) { std::ofstream(path, std::ios::binary) << "onetwosix"; }
  void MoveTo(const std::string& path) {
    std::filesystem::rename(path_, path);
    path_ = path;
  }
  const std::string& address() const { return server_->addresses().front(); }
  int reads() const { return reads_; }
  int located() const { return located_; }
  const std::string& path() const { return path_; }
  void Damage(std::string item) { damaged_ = std::move(item); }
  // Answers as if another file had the path.
  void NameAnotherFile() { inode_offset_ = 1; }

  grpc::Status ListItems(grpc::ServerContext*, const v1::ListItemsRequest* request,
                         v1::ListItemsResponse* response) override {
    const auto items = records_.Items(request->batch(), request->first_index(),
                                      static_cast<size_t>(request->max_items()));
    ledger::AddTo(*items, response->mutable_items());
    return grpc::Status::OK;
  }

  grpc::Status LocateContent(grpc::ServerContext*, const v1::LocateContentRequest* request,
                             v1::LocateContentResponse* response) override {
    ++located_;
    if (request->boot_id() != "this host") return grpc::Status::OK;
    struct stat file = {};
    if (stat(path_.c_str(), &file) != 0) return grpc::Status::OK;
    response->set_path(path_);
    response->set_device(file.st_dev);
    response->set_inode(file.st_ino + inode_offset_);
    return grpc::Status::OK;
  }

  grpc::Status ReadItems(grpc::ServerContext*, const v1::ReadItemsRequest* request,
                         grpc::ServerWriter<v1::ReadItemsResponse>* writer) override {
    ++reads_;
    const std::string all = "onetwosix";
    for (const v1::ItemToRead& item : request->items()) {
      const std::string slice = all.substr(item.index() * 3, 3);
      if (slice == damaged_) return {grpc::StatusCode::DATA_LOSS, "it has changed"};
      // In two pieces.
      v1::ReadItemsResponse piece;
      piece.set_index(item.index());
      piece.set_compression(v1::COMPRESSION_NONE);
      piece.set_data(slice.substr(0, 1));
      piece.set_raw_bytes(1);
      writer->Write(piece);
      piece.set_data(slice.substr(1));
      piece.set_raw_bytes(2);
      piece.set_is_last(true);
      writer->Write(piece);
    }
    return grpc::Status::OK;
  }

  std::vector<ItemReference> items() { return items_; }

 private:
  std::string path_;
  MemoryRecords records_;
  std::vector<ItemReference> items_ = records_.Split(7, "onetwosix", 3, "owner");
  std::string damaged_;
  uint64_t inode_offset_ = 0;
  std::atomic<int> reads_ = 0;
  std::atomic<int> located_ = 0;
  std::unique_ptr<rpc::Server> server_;
};

class RemoteContentTest : public ::testing::Test {
 protected:
  std::string Read(RemoteContent& content, int item) {
    std::string slice;
    const absl::Status read = content.Read(initiator_.items()[static_cast<size_t>(item)], &slice);
    return read.ok() ? slice : read.ToString();
  }

  os::TempDir dir_;
  Initiator initiator_{dir_.path() + "/7.part"};
  ledger::remote::RemoteBatchRecords initiators_{
      [this] { return std::vector<std::string>{initiator_.address()}; }, {}};
  RemoteContent here_{&initiators_, "this host"};
  RemoteContent elsewhere_{&initiators_, "another host"};
};

TEST_F(RemoteContentTest, ReadsTheInitiatorsFileOnItsHost) {
  EXPECT_EQ(Read(here_, 0), "one");
  EXPECT_EQ(Read(here_, 2), "six");
  EXPECT_EQ(initiator_.reads(), 0);
  EXPECT_EQ(initiator_.located(), 1);
}

TEST_F(RemoteContentTest, FollowsTheFileToAnotherName) {
  EXPECT_EQ(Read(here_, 0), "one");
  initiator_.MoveTo(dir_.path() + "/7");
  EXPECT_EQ(Read(here_, 1), "two");
  EXPECT_EQ(initiator_.reads(), 0);
}

TEST_F(RemoteContentTest, AsksTheInitiatorWhereItsFileIsAnotherOne) {
  initiator_.NameAnotherFile();
  EXPECT_EQ(Read(here_, 1), "two");
  EXPECT_EQ(initiator_.reads(), 1);
  EXPECT_EQ(Read(here_, 2), "six");
  EXPECT_EQ(initiator_.located(), 2) << "it looks no more for a file of this batch";
}

TEST_F(RemoteContentTest, LeavesItToTheInitiatorToSayThatTheContentIsDamaged) {
  std::ofstream(initiator_.path(), std::ios::binary) << "onetvosix";
  initiator_.Damage("two");
  EXPECT_EQ(Read(here_, 0), "one");
  EXPECT_THAT(Read(here_, 1), HasSubstr("DATA_LOSS: it has changed"));
}

TEST_F(RemoteContentTest, HasAnotherHostSendTheContent) {
  EXPECT_EQ(Read(elsewhere_, 1), "two");
  EXPECT_EQ(initiator_.reads(), 1);
}

TEST_F(RemoteContentTest, FetchesTogetherWhatAWorkerClaimed) {
  elsewhere_.Expect(initiator_.items());
  EXPECT_EQ(initiator_.reads(), 1);
  EXPECT_EQ(Read(elsewhere_, 0), "one");
  EXPECT_EQ(Read(elsewhere_, 1), "two");
  EXPECT_EQ(Read(elsewhere_, 2), "six");
  EXPECT_EQ(initiator_.reads(), 1);
  EXPECT_EQ(Read(elsewhere_, 2), "six") << "asked for anew: what was read is not held";
  EXPECT_EQ(initiator_.reads(), 2);
}

TEST_F(RemoteContentTest, TellsAnErrorOfWhatWasExpectedWhenItIsRead) {
  initiator_.Damage("two");
  elsewhere_.Expect(initiator_.items());
  EXPECT_EQ(Read(elsewhere_, 0), "one");
  EXPECT_THAT(Read(elsewhere_, 1), HasSubstr("DATA_LOSS"));
  EXPECT_EQ(Read(elsewhere_, 2), "six");
}

TEST_F(RemoteContentTest, TakesNothingWithAnotherHash) {
  ItemReference other = initiator_.items()[0];
  other.hash = initiator_.items()[1].hash;
  std::string slice;
  EXPECT_TRUE(absl::IsUnavailable(elsewhere_.Read(other, &slice)));
}

}  // namespace
}  // namespace muster::content::remote
