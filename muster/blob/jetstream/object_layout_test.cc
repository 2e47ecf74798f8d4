// SPDX-License-Identifier: Apache-2.0
#include "muster/blob/jetstream/object_layout.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace muster::blob::jetstream {
namespace {

using ::testing::ElementsAre;
using ::testing::MatchesRegex;

TEST(ObjectLayoutTest, WritesTheMetadataThatNatsToolsRead) {
  const ObjectInfo info = {.name = "b",
                           .bucket = "muster",
                           .nuid = "muster-1",
                           .size = 300'000,
                           .chunks = 3,
                           .digest = DigestOf("x")};
  EXPECT_EQ(EncodeObject(info),
            R"({"bucket":"muster","chunks":3,)"
            R"("digest":"SHA-256=LXEWQrcmsEQBYnyp-6wy9chTD7GQPMTbAiWHF5IaSIE=",)"
            R"("mtime":"0001-01-01T00:00:00Z","name":"b","nuid":"muster-1",)"
            R"("options":{"max_chunk_size":131072},"size":300000})");
  const auto decoded = DecodeObject(EncodeObject(info));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->name, "b");
  EXPECT_EQ(decoded->bucket, "muster");
  EXPECT_EQ(decoded->nuid, "muster-1");
  EXPECT_EQ(decoded->size, 300'000u);
  EXPECT_EQ(decoded->chunks, 3u);
  EXPECT_EQ(decoded->digest, info.digest);
  EXPECT_FALSE(decoded->deleted);
}

TEST(ObjectLayoutTest, ReadsWhatOtherToolsWrite) {
  const auto by_a_tool = DecodeObject(
      R"({"name":"b","description":"","headers":{"a":["b"]},"options":{"max_chunk_size":131072},)"
      R"("bucket":"muster","nuid":"bdZVJBTRXnUzIu7Yfkm6Xr","size":5,"chunks":1,)"
      R"("mtime":"2026-01-01T00:00:00Z","digest":"SHA-256=x"})");
  ASSERT_TRUE(by_a_tool.ok()) << by_a_tool.status();
  EXPECT_EQ(by_a_tool->nuid, "bdZVJBTRXnUzIu7Yfkm6Xr");
  const auto deleted = DecodeObject(R"({"name":"b","bucket":"muster","deleted":true})");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_TRUE(deleted->deleted);
}

TEST(ObjectLayoutTest, CallsMetadataDamagedThatMakesNoSense) {
  for (const char* text :
       {"", "garbage", "[]", "{}", "{\"nuid\":7}", "{\"nuid\":\"n\",\"size\":-1,\"chunks\":0}",
        "{\"nuid\":\"n\",\"size\":1}", "{\"nuid\":\">\",\"size\":1,\"chunks\":1}",
        "{\"nuid\":\"a.b\",\"size\":1,\"chunks\":1}", "{\"nuid\":\"n\",\"size\":\"1\"}",
        "{\"deleted\":\"yes\"}"}) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeObject(text).status())) << text;
  }
}

TEST(ObjectLayoutTest, LiesWhereNatsToolsLook) {
  EXPECT_EQ(ChunkSubject("muster", "n"), "$O.muster.C.n");
  EXPECT_EQ(MetaSubject("muster", "a"), "$O.muster.M.YQ==");
  EXPECT_EQ(MetaSubject("muster", "~~~???"), "$O.muster.M.fn5-Pz8_");
  const nlohmann::json config = BucketConfig("muster", 3);
  EXPECT_EQ(config["name"], "OBJ_muster");
  EXPECT_THAT(config["subjects"], ElementsAre("$O.muster.C.>", "$O.muster.M.>"));
  EXPECT_EQ(config["num_replicas"], 3);
}

TEST(ObjectLayoutTest, ANuidTellsWhenItWasMade) {
  const absl::Time now = absl::FromUnixMillis(1'700'000'000'123);
  const std::string nuid = MakeNuid(now);
  EXPECT_THAT(nuid, MatchesRegex("muster-[0-9a-f]+-[0-9a-f]+"));
  EXPECT_NE(nuid, MakeNuid(now));
  EXPECT_EQ(TimeOfNuid(nuid), now);
}

TEST(ObjectLayoutTest, ANuidOfAnybodyElseTellsNothing) {
  for (const char* nuid :
       {"", "bdZVJBTRXnUzIu7Yfkm6Xr", "muster-", "muster-0123-0123",
        "muster-0123456789ab+0123456789abcdef", "muster-0123456789xx-0123456789abcdef"}) {
    EXPECT_EQ(TimeOfNuid(nuid), std::nullopt) << nuid;
  }
}

}  // namespace
}  // namespace muster::blob::jetstream
