#include "muster/sync/jetstream/kv_layout.h"

#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace muster::sync::jetstream {
namespace {

// What keys of a bucket may be, as its tools check it.
bool IsBucketKey(const std::string& key) {
  const std::string allowed = "-/_=.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  return !key.empty() && key.find_first_not_of(allowed) == std::string::npos &&
         key.front() != '.' && key.back() != '.' && key.find("..") == std::string::npos &&
         key.rfind("_kv", 0) != 0;
}

// Every text of up to `bytes` bytes from an alphabet that holds all that is special.
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
