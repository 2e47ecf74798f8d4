// SPDX-License-Identifier: Apache-2.0

// Runs on each server that NatsServer::Programs names.

#include "muster/sync/jetstream/jetstream_sync_store.h"

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/nats/connection.h"
#include "nlohmann/json.hpp"
#include "tests/conformance/sync/sync_store_conformance.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/nats/nats_server.h"
#include "tests/fakes/nats/nats_tool.h"

namespace muster::sync::conformance {

namespace {

class ServerHome final : public StoreHome {
 public:
  explicit ServerHome(const std::string& program) : server_(program) {}

  // Kills and restarts the server, then opens the store.
  std::unique_ptr<OptimisticSyncStore> Open() override {
    server_.Restart();
    connection_ = nats::Connection::Open(server_.url(), {}).value();
    auto store = sync::jetstream::JetStreamSyncStore::Open(connection_.get());
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

INSTANTIATE_TEST_SUITE_P(JetStream, SyncStoreConformance, ::testing::ValuesIn(Engines()));

}  // namespace muster::sync::conformance

namespace muster::sync::jetstream {

namespace {

using ::testing::HasSubstr;

class JetStreamSyncStoreTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<JetStreamSyncStore> Open(const Options& options = Options()) {
    return JetStreamSyncStore::Open(connection_.get(), options).value();
  }

  // Deletes a key as `nats kv del` does.
  void DeleteWithATool(const std::string& key, const std::string& operation = "DEL") {
    ASSERT_TRUE(
        jetstream_
            .Publish({.subject = "$KV.muster." + key, .headers = {{"KV-Operation", operation}}})
            .ok());
  }

  nats::testing::NatsServer server_{GetParam()};
  const std::unique_ptr<nats::Connection> connection_ =
      nats::Connection::Open(server_.url(), {}).value();
  nats::JetStream jetstream_{connection_.get(), absl::Seconds(10)};
};

TEST_P(JetStreamSyncStoreTest, TakesTheSequenceInTheStreamForTheVersion) {
  const auto store = Open();
  ASSERT_TRUE(*store->TryWrite("a", "1", sync::kAbsent));
  ASSERT_TRUE(*store->TryWrite("ids/batch", "1001", sync::kAbsent));
  const auto message = jetstream_.LastMessage("KV_muster", "$KV.muster.ids/batch");
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->data, "1001");
  EXPECT_EQ(message->sequence, store->Get("ids/batch")->version);
}

TEST_P(JetStreamSyncStoreTest, ReadsWhatAToolPut) {
  const auto store = Open();
  ASSERT_TRUE(jetstream_.Publish({.subject = "$KV.muster.flag", .data = "on"}).ok());
  EXPECT_EQ(store->Get("flag")->data, "on");
  EXPECT_FALSE(*store->TryWrite("flag", "off", sync::kAbsent));
  EXPECT_TRUE(*store->TryWrite("flag", "off", store->Get("flag")->version));
}

TEST_P(JetStreamSyncStoreTest, TakesADeletedKeyForAbsentAndWritesItAgain) {
  const auto store = Open();
  for (const char* operation : {"DEL", "PURGE"}) {
    ASSERT_TRUE(*store->TryWrite("k", "old", store->Get("k")->version));
    const uint64_t old_version = store->Get("k")->version;
    DeleteWithATool("k", operation);
    EXPECT_EQ(store->Get("k")->version, sync::kAbsent);
    EXPECT_EQ(store->Get("k")->data, "");
    EXPECT_FALSE(*store->TryWrite("k", "late", old_version));
    EXPECT_TRUE(*store->TryWrite("k", "new", sync::kAbsent));
    EXPECT_FALSE(*store->TryWrite("k", "second", sync::kAbsent));
    EXPECT_EQ(store->Get("k")->data, "new");
    EXPECT_GT(store->Get("k")->version, old_version);
  }
}

TEST_P(JetStreamSyncStoreTest, LetsOneOfManyWriteOverADeletedKey) {
  const auto store = Open();
  DeleteWithATool("k");
  std::atomic<int> winners = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] { winners += *store->TryWrite("k", "mine", sync::kAbsent); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(winners, 1);
}

TEST_P(JetStreamSyncStoreTest, KeepsKeysApartThatABucketCouldNotHold) {
  const auto store = Open();
  const std::vector<std::string> keys = {".", "..", "a", "a.", ".a", "a..b", "a.b", "_kv", "kv"};
  for (const std::string& key : keys) {
    EXPECT_TRUE(*store->TryWrite(key, key, sync::kAbsent)) << key;
  }
  for (const std::string& key : keys) EXPECT_EQ(store->Get(key)->data, key);
}

TEST_P(JetStreamSyncStoreTest, KeepsTheLastMessageOfAKeyOnly) {
  const auto store = Open();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(*store->TryWrite("k", absl::StrCat(i), store->Get("k")->version));
  }
  EXPECT_EQ(jetstream_.GetStream("KV_muster")->messages, 1u);
}

TEST_P(JetStreamSyncStoreTest, MakesABucketAsItShouldBeThatATooLaxHandMade) {
  nlohmann::json lax = {{"name", "KV_muster"},
                        {"subjects", {"$KV.muster.>"}},
                        {"max_msgs_per_subject", 64},
                        {"max_age", 60'000'000'000},
                        {"allow_direct", true}};
  ASSERT_TRUE(jetstream_.EnsureStream(lax).ok());
  Open();
  const auto config = jetstream_.StreamConfig("KV_muster");
  EXPECT_EQ((*config)["max_msgs_per_subject"], 1);
  EXPECT_EQ((*config)["max_age"], 0);
  EXPECT_EQ((*config)["allow_direct"], false);
}

TEST_P(JetStreamSyncStoreTest, KeepsTheBoundThatAnAdministratorHasGivenItsBucket) {
  Open();
  nlohmann::json config = *jetstream_.StreamConfig("KV_muster");
  config["max_bytes"] = 1 << 20;
  config["description"] = "of the billing team";
  ASSERT_TRUE(jetstream_.Call("STREAM.UPDATE.KV_muster", config).ok());
  Open();
  config = *jetstream_.StreamConfig("KV_muster");
  EXPECT_EQ(config["max_bytes"], 1 << 20);
  EXPECT_EQ(config["description"], "of the billing team");
}

TEST_P(JetStreamSyncStoreTest, RefusesABucketInMemory) {
  ASSERT_TRUE(
      jetstream_
          .EnsureStream(
              {{"name", "KV_muster"}, {"subjects", {"$KV.muster.>"}}, {"storage", "memory"}})
          .ok());
  const absl::Status status = JetStreamSyncStore::Open(connection_.get()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("'muster'"));
}

TEST_P(JetStreamSyncStoreTest, RefusesAnImpossibleBucketOrNumberOfReplicas) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      JetStreamSyncStore::Open(connection_.get(), {.bucket = "a.b"}).status()));
  EXPECT_FALSE(JetStreamSyncStore::Open(connection_.get(), {.replicas = 3}).ok());
}

// The store must not take a missing bucket for an empty one at once: callers trust the result of a
// read.
TEST_P(JetStreamSyncStoreTest, MakesABucketAnewThatStaysGone) {
  base::FakeClock clock;
  const auto store = Open({.clock = &clock});
  ASSERT_TRUE(*store->TryWrite("k", "1", sync::kAbsent));
  const auto reader = Open({.read_only = true, .clock = &clock});
  ASSERT_TRUE(jetstream_.DeleteStream("KV_muster").ok());
  const absl::Status read = store->Get("k").status();
  EXPECT_TRUE(absl::IsUnavailable(read)) << read;
  const absl::Status written = store->TryWrite("k", "2", 1).status();
  EXPECT_TRUE(absl::IsUnavailable(written)) << written;
  EXPECT_TRUE(absl::IsNotFound(jetstream_.GetStream("KV_muster").status()));
  clock.Advance(nats::kGoneFor);
  const absl::Status looked = reader->Get("k").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(looked)) << looked;
  EXPECT_FALSE(*store->TryWrite("k", "2", 1)) << "what was read before is no more";
  EXPECT_EQ(store->Get("k")->version, sync::kAbsent);
  EXPECT_TRUE(*store->TryWrite("k", "2", sync::kAbsent));
  EXPECT_EQ(reader->Get("k")->data, "2");
}

TEST_P(JetStreamSyncStoreTest, ReadsOnlyAndChangesNothing) {
  const absl::Status none =
      JetStreamSyncStore::Open(connection_.get(), {.read_only = true}).status();
  EXPECT_TRUE(absl::IsNotFound(none)) << none;
  EXPECT_TRUE(absl::IsNotFound(jetstream_.GetStream("KV_muster").status()));
  ASSERT_TRUE(*Open()->TryWrite("k", "1", sync::kAbsent));
  const auto reader = Open({.read_only = true});
  EXPECT_EQ(reader->Get("k")->data, "1");
  const absl::Status written = reader->TryWrite("k", "2", reader->Get("k")->version).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(written)) << written;
}

TEST_P(JetStreamSyncStoreTest, AnotherClientOfNatsReadsAndDeletesRecords) {
  const auto store = Open();
  ASSERT_TRUE(*store->TryWrite("ids/batch", "1001", sync::kAbsent));
  const auto said = nats::testing::RunNatsTool({server_.url(), "kv-get", "muster", "ids/batch"});
  if (!said.has_value()) GTEST_SKIP() << "nats-py is not installed";
  EXPECT_EQ(*said, absl::StrCat(store->Get("ids/batch")->version, " 1001"));
  ASSERT_EQ(nats::testing::RunNatsTool({server_.url(), "kv-delete", "muster", "ids/batch"}), "");
  EXPECT_EQ(store->Get("ids/batch")->version, sync::kAbsent);
  EXPECT_TRUE(*store->TryWrite("ids/batch", "2001", sync::kAbsent));
}

TEST_P(JetStreamSyncStoreTest, KeepsBucketsApart) {
  const auto one = Open({.bucket = "one"}), two = Open({.bucket = "two"});
  ASSERT_TRUE(*one->TryWrite("k", "1", sync::kAbsent));
  EXPECT_EQ(two->Get("k")->version, sync::kAbsent);
}

INSTANTIATE_TEST_SUITE_P(Servers, JetStreamSyncStoreTest,
                         ::testing::ValuesIn(nats::testing::NatsServer::Programs()),
                         [](const auto& server) { return absl::StrCat("Server", server.index); });

// Returns whether NATS tools accept this key for a bucket.
bool IsBucketKey(const std::string& key) {
  const std::string allowed = "-/_=.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  return !key.empty() && key.find_first_not_of(allowed) == std::string::npos &&
         key.front() != '.' && key.back() != '.' && key.find("..") == std::string::npos &&
         key.rfind("_kv", 0) != 0;
}

// Returns every text of up to `bytes` bytes from an alphabet with all special characters.
std::vector<std::string> KeysUpTo(size_t bytes) {
  std::vector<std::string> keys = {""};
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].size() == bytes) break;
    for (const char c : {'.', '_', 'k', 'v', '/', '2', 'E'}) keys.push_back(keys[i] + c);
  }
  keys.erase(keys.begin());
  return keys;
}

TEST(KvLayoutTest, LeavesKeysAsTheyAreThatABucketTakes) {
  for (const char* key : {"ids/batch", "ids.batch", "a-b_c", "kv_", "_k", "/"}) {
    EXPECT_EQ(EscapeKey(key), key);
  }
}

TEST(KvLayoutTest, EscapesWhatABucketDoesNotTake) {
  EXPECT_EQ(EscapeKey("."), "=2E");
  EXPECT_EQ(EscapeKey("a."), "a=2E");
  EXPECT_EQ(EscapeKey("a..b"), "a.=2Eb");
  EXPECT_EQ(EscapeKey("_kv/x"), "=5Fkv/x");
}

TEST(KvLayoutTest, EveryKeyHasABucketKeyOfItsOwnThatLeadsBackToIt) {
  std::set<std::string> seen;
  for (const std::string& key : KeysUpTo(5)) {
    const std::string escaped = EscapeKey(key);
    ASSERT_TRUE(IsBucketKey(escaped)) << key << " became " << escaped;
    ASSERT_EQ(UnescapeKey(escaped), key);
    ASSERT_TRUE(seen.insert(escaped).second) << escaped;
  }
}

TEST(KvLayoutTest, LiesWhereNatsToolsLook) {
  EXPECT_EQ(SubjectOf("muster", "ids/batch"), "$KV.muster.ids/batch");
  const nlohmann::json config = BucketConfig("muster", 3);
  EXPECT_EQ(config["name"], "KV_muster");
  EXPECT_EQ(config["subjects"], nlohmann::json({"$KV.muster.>"}));
  EXPECT_EQ(config["max_msgs_per_subject"], 1);
  EXPECT_EQ(config["num_replicas"], 3);
}

TEST(KvLayoutTest, KnowsTheMarkersOfDeletedKeys) {
  using Headers = std::vector<nats::Header>;
  EXPECT_TRUE(MarksDeletion(Headers{{"KV-Operation", "DEL"}}));
  EXPECT_TRUE(MarksDeletion(Headers{{"Nats-Rollup", "sub"}, {"KV-Operation", "PURGE"}}));
  EXPECT_FALSE(MarksDeletion(Headers{{"KV-Operation", "PUT"}}));
  EXPECT_FALSE(MarksDeletion(Headers{}));
}

}  // namespace

}  // namespace muster::sync::jetstream
