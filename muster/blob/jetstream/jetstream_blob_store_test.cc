// SPDX-License-Identifier: Apache-2.0

// Runs on each server that NatsServer::Programs names.

#include "muster/blob/jetstream/jetstream_blob_store.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/fingerprint.h"
#include "muster/blob/jetstream/object_layout.h"
#include "muster/nats/connection.h"
#include "nlohmann/json.hpp"
#include "tests/conformance/blob/blob_store_conformance.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/blob/jetstream/bucket_fixture.h"
#include "tests/fakes/nats/nats_tool.h"

namespace muster::blob::conformance {

namespace {

class ServerHome final : public BlobHome {
 public:
  explicit ServerHome(const std::string& program) : server_(program) {}

  // Kills and restarts the server, then opens the store.
  std::unique_ptr<BlobStore> Open() override {
    server_.Restart();
    connection_ = nats::Connection::Open(server_.url(), {}).value();
    auto store = blob::jetstream::JetStreamBlobStore::Open(connection_.get());
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }

 private:
  nats::testing::NatsServer server_;
  std::unique_ptr<nats::Connection> connection_;
};

std::vector<Engine> Engines() {
  std::vector<Engine> engines;
  for (const std::string& program : nats::testing::NatsServer::Programs()) {
    engines.emplace_back([program] { return std::make_unique<ServerHome>(program); });
  }
  return engines;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(JetStream, BlobStoreConformance, ::testing::ValuesIn(Engines()));

}  // namespace muster::blob::conformance

namespace muster::blob::jetstream {

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr size_t kThreeChunks = 300'000;

class JetStreamBlobStoreTest : public BucketTest {
 protected:
  // Returns the metadata of blob "b" in the bucket.
  nlohmann::json MetaOfB() {
    const auto message = jetstream_.LastMessage("OBJ_muster", "$O.muster.M.Yg==");
    EXPECT_TRUE(message.ok()) << message.status();
    return message.ok() ? nlohmann::json::parse(message->data) : nlohmann::json();
  }
  void OverwriteMetaOfB(const std::string& text) {
    ASSERT_TRUE(jetstream_.Publish({.subject = "$O.muster.M.Yg==", .data = text}).ok());
  }
  void ExpectDamaged(JetStreamBlobStore* store) {
    const absl::Status status = store->Get("b").status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("blob 'b'"));
  }
};

TEST_P(JetStreamBlobStoreTest, LaysABlobOutAsAnObjectOfNats) {
  const auto store = Open();
  const std::string bytes = Bytes(kThreeChunks);
  ASSERT_TRUE(store->Put("b", bytes).ok());
  const nlohmann::json meta = MetaOfB();
  EXPECT_EQ(meta["name"], "b");
  EXPECT_EQ(meta["bucket"], "muster");
  EXPECT_EQ(meta["size"], kThreeChunks);
  EXPECT_EQ(meta["chunks"], 3);
  EXPECT_EQ(meta["digest"], DigestOf(bytes));
  const std::string subject = "$O.muster.C." + meta["nuid"].get<std::string>();
  std::vector<std::string> chunks;
  for (uint64_t next = 1; chunks.size() < 3;) {
    const auto chunk = jetstream_.NextMessage("OBJ_muster", next, subject);
    ASSERT_TRUE(chunk.ok()) << chunk.status();
    chunks.push_back(chunk->data);
    next = chunk->sequence + 1;
  }
  EXPECT_TRUE(chunks[0] + chunks[1] + chunks[2] == bytes);
  EXPECT_THAT(chunks, ElementsAre(SizeIs(131'072), SizeIs(131'072), SizeIs(37'856)));
  EXPECT_EQ(jetstream_.GetStream("OBJ_muster")->messages, 4u);
}

TEST_P(JetStreamBlobStoreTest, AnotherClientOfNatsReadsWhatWasPut) {
  const auto store = Open();
  const std::string bytes = Bytes(kThreeChunks);
  ASSERT_TRUE(store->Put("our.blob", bytes).ok());
  ASSERT_TRUE(store->Put("empty", "").ok());
  const auto said = nats::testing::RunNatsTool({server_.url(), "object-get", "muster", "our.blob"});
  if (!said.has_value()) GTEST_SKIP() << "nats-py is not installed";
  EXPECT_EQ(*said, absl::StrCat(base::Sha256Hex(bytes), " ", kThreeChunks));
  EXPECT_EQ(nats::testing::RunNatsTool({server_.url(), "object-get", "muster", "empty"}),
            base::Sha256Hex("") + " 0");
  EXPECT_EQ(nats::testing::RunNatsTool({server_.url(), "object-list", "muster"}), "empty our.blob");
}

TEST_P(JetStreamBlobStoreTest, ReadsAndReplacesWhatAnotherClientOfNatsPut) {
  const auto store = Open();
  const auto said = nats::testing::RunNatsTool({server_.url(), "object-put", "muster", "b", "500"});
  if (!said.has_value()) GTEST_SKIP() << "nats-py is not installed";
  EXPECT_EQ(*store->Get("b"), Bytes(500));
  ASSERT_TRUE(store->Put("b", "ours").ok());
  EXPECT_EQ(*store->Get("b"), "ours");
  EXPECT_THAT(ChunkSubjects(), SizeIs(1));
  ASSERT_EQ(nats::testing::RunNatsTool({server_.url(), "object-delete", "muster", "b"}), "");
  EXPECT_TRUE(absl::IsNotFound(store->Get("b").status()));
  EXPECT_TRUE(store->Delete("b").ok());
  EXPECT_TRUE(store->Put("b", "again").ok());
  EXPECT_EQ(*store->Get("b"), "again");
}

TEST_P(JetStreamBlobStoreTest, KeepsBlobsOfManyWindows) {
  const auto store = Open();
  const std::string bytes = Bytes(24 << 20);
  ASSERT_TRUE(store->Put("b", bytes).ok());
  const auto read = store->Get("b");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(*read == bytes);
}

TEST_P(JetStreamBlobStoreTest, LeavesNothingOfWhatWasReplacedOrDeleted) {
  const auto store = Open();
  for (char salt = 0; salt < 3; ++salt) {
    ASSERT_TRUE(store->Put("b", Bytes(kThreeChunks, salt)).ok());
  }
  EXPECT_THAT(ChunkSubjects(), SizeIs(1));
  EXPECT_EQ(jetstream_.GetStream("OBJ_muster")->messages, 4u);
  ASSERT_TRUE(store->Delete("b").ok());
  EXPECT_EQ(jetstream_.GetStream("OBJ_muster")->messages, 0u);
}

TEST_P(JetStreamBlobStoreTest, LeavesOneOfManyThatPutTheSameBlobAtOnce) {
  const auto store = Open();
  std::vector<std::thread> threads;
  for (char t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        EXPECT_TRUE(store->Put("b", Bytes(kThreeChunks, t)).ok());
        if (i % 5 == t) {
          EXPECT_TRUE(store->Delete("b").ok());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(store->Put("b", "last").ok());
  EXPECT_EQ(*store->Get("b"), "last");
  EXPECT_EQ(jetstream_.GetStream("OBJ_muster")->messages, 2u);
}

TEST_P(JetStreamBlobStoreTest, CallsABlobDamagedThatLacksAChunk) {
  const auto store = Open();
  ASSERT_TRUE(store->Put("b", Bytes(kThreeChunks)).ok());
  ASSERT_TRUE(jetstream_.DeleteMessage("OBJ_muster", 2).ok());
  ExpectDamaged(store.get());
}

TEST_P(JetStreamBlobStoreTest, CallsABlobDamagedWhoseBytesAreOthers) {
  const auto store = Open();
  ASSERT_TRUE(store->Put("b", Bytes(1000)).ok());
  nlohmann::json meta = MetaOfB();
  meta["digest"] = DigestOf("something else");
  OverwriteMetaOfB(meta.dump());
  ExpectDamaged(store.get());
  meta["digest"] = DigestOf(Bytes(1000));
  for (const uint64_t size : {uint64_t{999}, uint64_t{1001}, uint64_t{1} << 60}) {
    meta["size"] = size;
    OverwriteMetaOfB(meta.dump());
    ExpectDamaged(store.get());
  }
}

TEST_P(JetStreamBlobStoreTest, PutsAndDeletesOverDamagedMetadata) {
  const auto store = Open();
  ASSERT_TRUE(store->Put("b", "old").ok());
  OverwriteMetaOfB("garbage");
  ExpectDamaged(store.get());
  EXPECT_TRUE(store->Put("b", "new").ok());
  EXPECT_EQ(*store->Get("b"), "new");
  OverwriteMetaOfB("{}");
  EXPECT_TRUE(store->Delete("b").ok());
  EXPECT_TRUE(absl::IsNotFound(store->Get("b").status()));
}

TEST_P(JetStreamBlobStoreTest, MakesABucketAnewThatStaysGone) {
  base::FakeClock clock;
  const auto store = Open({.clock = &clock});
  ASSERT_TRUE(store->Put("b", "x").ok());
  ASSERT_TRUE(jetstream_.DeleteStream("OBJ_muster").ok());
  const absl::Status status = store->Get("b").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(absl::IsUnavailable(store->Put("b", "y")));
  EXPECT_TRUE(absl::IsNotFound(jetstream_.GetStream("OBJ_muster").status()));
  clock.Advance(nats::kGoneFor);
  EXPECT_TRUE(store->Put("b", "y").ok());
  EXPECT_EQ(*store->Get("b"), "y");
}

TEST_P(JetStreamBlobStoreTest, HasNoBlobsInABucketThatWasMadeAnew) {
  base::FakeClock clock;
  const auto store = Open({.clock = &clock});
  ASSERT_TRUE(store->Put("b", "x").ok());
  ASSERT_TRUE(jetstream_.DeleteStream("OBJ_muster").ok());
  EXPECT_TRUE(absl::IsUnavailable(store->Delete("b")));
  clock.Advance(nats::kGoneFor);
  EXPECT_TRUE(absl::IsNotFound(store->Get("b").status()));
  EXPECT_TRUE(store->Delete("b").ok());
}

TEST_P(JetStreamBlobStoreTest, AFullServerLeavesTheOldBlobAndNoChunks) {
  const auto store = Open();
  ASSERT_TRUE(store->Put("b", "old").ok());
  nlohmann::json config = *jetstream_.StreamConfig("OBJ_muster");
  config["max_bytes"] = 1 << 20;
  ASSERT_TRUE(jetstream_.Call("STREAM.UPDATE.OBJ_muster", config).ok());
  const absl::Status full = store->Put("b", Bytes(4 << 20));
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(full.message(), HasSubstr("'b'"));
  EXPECT_EQ(*store->Get("b"), "old");
  EXPECT_THAT(ChunkSubjects(), SizeIs(1));
  Open();
  EXPECT_EQ((*jetstream_.StreamConfig("OBJ_muster"))["max_bytes"], 1 << 20) << "the bound stays";
}

TEST_P(JetStreamBlobStoreTest, RefusesAServerThatTakesNoChunks) {
  const nats::testing::NatsServer small(GetParam(), "max_payload: 65536\n");
  const auto connection = nats::Connection::Open(small.url(), {}).value();
  const absl::Status status = JetStreamBlobStore::Open(connection.get()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), AllOf(HasSubstr("65536"), HasSubstr("max_payload")));
}

INSTANTIATE_TEST_SUITE_P(Servers, JetStreamBlobStoreTest, EachServer(), &ServerName);

}  // namespace

// Runs on each server that NatsServer::Programs names.

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The first chunks of an attempt may find no bucket that takes them, and the later ones a bucket
// that another process has just made.
TEST_P(JetStreamBlobStoreTest, NamesTheChunksAnewWhenItBeginsAgainWithABucketThatWasGone) {
  base::FakeClock clock;
  std::vector<std::string> nuids;
  const auto store = Open({.clock = &clock, .make_nuid = [&](absl::Time now) {
                             return nuids.emplace_back(MakeNuid(now));
                           }});
  ASSERT_TRUE(jetstream_.DeleteStream("OBJ_muster").ok());
  while (!store->Put("b", "body").ok()) {
    nuids.clear();
    clock.Advance(absl::Seconds(1));
  }
  ASSERT_THAT(nuids, SizeIs(2));
  EXPECT_THAT(ChunkSubjects(), ElementsAre("$O.muster.C." + nuids[1]));
  EXPECT_EQ(*store->Get("b"), "body");
}

class OrphansTest : public BucketTest {
 protected:
  OrphansTest() { clock_.StepWallClock(absl::Now() - clock_.Now()); }

  // Leaves chunks as a put does that dies before its metadata.
  void LeaveChunks(const std::string& nuid) {
    ASSERT_TRUE(jetstream_.Publish({.subject = "$O.muster.C." + nuid, .data = "x"}).ok());
  }
  std::unique_ptr<JetStreamBlobStore> OpenLater(absl::Duration by) {
    clock_.Advance(by);
    return Open({.clock = &clock_});
  }

  base::FakeClock clock_;
};

TEST_P(OrphansTest, OpeningRemovesWhatAPutThatDiedLongAgoLeft) {
  ASSERT_TRUE(Open()->Put("b", "body").ok());
  LeaveChunks(MakeNuid(clock_.Now()));
  EXPECT_THAT(ChunkSubjects(), SizeIs(2));
  const auto store = OpenLater(kOrphanAge + absl::Hours(1));
  EXPECT_THAT(ChunkSubjects(), SizeIs(1));
  EXPECT_EQ(*store->Get("b"), "body");
}

TEST_P(OrphansTest, ALookAtAllBlobsRemovesWhatAPutThatDiedLongAgoLeft) {
  const auto store = Open({.clock = &clock_});
  ASSERT_TRUE(store->Put("b", "body").ok());
  LeaveChunks(MakeNuid(clock_.Now()));
  clock_.Advance(kOrphanAge + absl::Hours(1));
  ASSERT_TRUE(store->Scan().ok());
  EXPECT_THAT(ChunkSubjects(), SizeIs(1));
  EXPECT_EQ(*store->Get("b"), "body");
}

TEST_P(OrphansTest, OpeningLeavesAPutAloneThatMayBeUnderWay) {
  Open();
  LeaveChunks(MakeNuid(clock_.Now()));
  OpenLater(kOrphanAge - absl::Hours(1));
  EXPECT_THAT(ChunkSubjects(), SizeIs(1));
}

TEST_P(OrphansTest, LeavesWhatOthersLeftInTheBucket) {
  Open();
  LeaveChunks("bdZVJBTRXnUzIu7Yfkm6Xr");
  OpenLater(kOrphanAge + absl::Hours(1));
  EXPECT_THAT(ChunkSubjects(), ElementsAre("$O.muster.C.bdZVJBTRXnUzIu7Yfkm6Xr"));
}

TEST_P(OrphansTest, RemovesNothingWhereItCannotTellWhatIsNamed) {
  Open();
  LeaveChunks(MakeNuid(clock_.Now()));
  ASSERT_TRUE(jetstream_.Publish({.subject = "$O.muster.M.Yg==", .data = "garbage"}).ok());
  const auto removed = RemoveOrphans(&jetstream_, "muster", absl::Now() + absl::Hours(1));
  EXPECT_TRUE(absl::IsFailedPrecondition(removed.status())) << removed.status();
  EXPECT_THAT(ChunkSubjects(), SizeIs(1));
  // The store works nevertheless.
  EXPECT_TRUE(OpenLater(kOrphanAge + absl::Hours(1))->Put("c", "body").ok());
}

TEST_P(OrphansTest, CountsThePuts) {
  Open();
  for (int i = 0; i < 3; ++i) {
    const std::string nuid = MakeNuid(clock_.Now());
    LeaveChunks(nuid);
    LeaveChunks(nuid);
  }
  EXPECT_EQ(*RemoveOrphans(&jetstream_, "muster", absl::Now() + absl::Hours(1)), 3u);
  EXPECT_THAT(ChunkSubjects(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Servers, OrphansTest, EachServer(), &ServerName);

}  // namespace

}  // namespace muster::blob::jetstream
