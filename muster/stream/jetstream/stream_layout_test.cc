// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/jetstream/stream_layout.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace muster::stream::jetstream {
namespace {

const Description kDescription{
    "5f0a", {.partitions = 16, .retention = absl::Hours(1), .max_bytes = 1 << 20}};

TEST(StreamLayoutTest, NamesTheStreamsOfTheServer) {
  EXPECT_EQ(ServerStreamOf("muster", "meters", kDescription, 0), "EVENTS_muster_meters");
  EXPECT_EQ(ServerStreamOf("muster", "meters", kDescription, 7), "EVENTS_muster_meters_5f0a_7");
  EXPECT_EQ(SubjectOf("muster", "meters", kDescription, 0), "muster.events.muster.meters.0");
  EXPECT_EQ(SubjectOf("muster", "meters", kDescription, 7), "muster.events.muster.meters.5f0a.7");
  EXPECT_EQ(StreamNameIn("muster", "EVENTS_muster_meters"), "meters");
  EXPECT_EQ(StreamNameIn("muster", "EVENTS_muster_meters_5f0a_7"), std::nullopt);
  EXPECT_EQ(StreamNameIn("muster", "EVENTS_other_meters"), std::nullopt);
  EXPECT_EQ(IdIn("muster", "meters", "EVENTS_muster_meters_5f0a_7"), "5f0a");
  EXPECT_EQ(IdIn("muster", "meters", "EVENTS_muster_meters"), "");
}

TEST(StreamLayoutTest, KeepsTheFormOfADescription) {
  const nlohmann::json config = ConfigOf("muster", "meters", kDescription, 0, 3, true);
  EXPECT_EQ(config["description"],
            R"({"id":"5f0a","max_bytes":1048576,"muster-events":1,"partitions":16,)"
            R"("retention_us":3600000000})");
  EXPECT_EQ(config["max_age"], int64_t{3600} * 1000 * 1000 * 1000);
  EXPECT_EQ(config["num_replicas"], 3);
  const auto description = DescriptionIn(config);
  ASSERT_TRUE(description.has_value());
  EXPECT_EQ(description->id, "5f0a");
  EXPECT_EQ(description->options, kDescription.options);
}

TEST(StreamLayoutTest, KeepsForEverWhatHasNoRetention) {
  const Description description{"5f0a", {.retention = absl::InfiniteDuration()}};
  const nlohmann::json config = ConfigOf("muster", "meters", description, 0, 1, false);
  EXPECT_EQ(config["max_age"], 0);
  EXPECT_EQ(config["max_bytes"], -1);
  EXPECT_FALSE(config.contains("allow_atomic"));
  EXPECT_EQ(DescriptionIn(config)->options, description.options);
}

TEST(StreamLayoutTest, TakesNoDescriptionOfOthers) {
  for (const char* const text :
       {"", "meters", "{}", "[1]", R"({"muster-events":2,"id":"a","partitions":1})",
        R"({"muster-events":1,"id":"a","partitions":0,"retention_us":0,"max_bytes":0})",
        R"({"muster-events":1,"id":7,"partitions":1,"retention_us":0,"max_bytes":0})",
        R"({"muster-events":1,"id":"a","partitions":1,"retention_us":1.5,"max_bytes":0})"}) {
    EXPECT_FALSE(DescriptionIn({{"description", text}}).has_value()) << text;
  }
  EXPECT_FALSE(DescriptionIn(nlohmann::json::object()).has_value());
}

TEST(StreamLayoutTest, KnowsAStreamWhoseDescriptionIsAnOperators) {
  const Description two{"5f0a",
                        {.partitions = 3, .retention = absl::Hours(1), .max_bytes = 1 << 20}};
  const std::vector<std::string> others = {"EVENTS_muster_meters_5f0a_2",
                                           "EVENTS_muster_meters_5f0a_1"};
  nlohmann::json config = ConfigOf("muster", "meters", two, 0, 1, false);
  config["description"] = "of the meters' team";
  const auto description = DescriptionWithout(config, "muster", "meters", others);
  ASSERT_TRUE(description.has_value());
  EXPECT_EQ(description->id, "5f0a");
  EXPECT_EQ(description->options, two.options);

  const auto known = [&](const std::vector<std::string>& partitions) {
    return DescriptionWithout(config, "muster", "meters", partitions).has_value();
  };
  EXPECT_TRUE(known({})) << "one partition";
  EXPECT_FALSE(known({"EVENTS_muster_meters_5f0a_2"})) << "one is missing";
  EXPECT_FALSE(known({others[0], others[1], "EVENTS_muster_meters_77_1"})) << "of two streams";
  config["subjects"] = {"their.own"};
  EXPECT_FALSE(known(others));
  config = ConfigOf("muster", "meters", two, 0, 1, false);
  config["description"] = R"({"muster-events":2})";
  EXPECT_FALSE(known(others)) << "of a newer muster";
}

TEST(StreamLayoutTest, ReadsWhatTheServerSaysOfADelivery) {
  for (const char* const reply :
       {"$JS.ACK.EVENTS_m_a.c-1.1.42.7.1600000000000000000.3",
        "$JS.ACK.hub.ACCOUNT.EVENTS_m_a.c-1.1.42.7.1600000000000000000.3.token"}) {
    const auto delivery = DeliveryIn(reply);
    ASSERT_TRUE(delivery.has_value()) << reply;
    EXPECT_EQ(delivery->consumer, "c-1");
    EXPECT_EQ(delivery->sequence, 42);
    EXPECT_EQ(delivery->time, absl::FromUnixSeconds(1600000000));
    EXPECT_EQ(delivery->pending, 3);
  }
  for (const char* const reply :
       {"", "$JS.ACK", "$JS.ACK.s.c.1.x.7.1.3", "_INBOX.a.b.c.d.e.f.g.h"}) {
    EXPECT_FALSE(DeliveryIn(reply).has_value()) << reply;
  }
}

TEST(StreamLayoutTest, FindsTheExtentOfAnyState) {
  const auto extent = [](uint64_t messages, uint64_t first, uint64_t last) {
    nats::StreamState state;
    state.messages = messages;
    state.first_sequence = first;
    state.last_sequence = last;
    const PartitionExtent found = ExtentOf(state);
    return std::make_pair(found.first, found.next);
  };
  EXPECT_EQ(extent(0, 0, 0), std::make_pair(int64_t{1}, int64_t{1}));
  EXPECT_EQ(extent(0, 1, 0), std::make_pair(int64_t{1}, int64_t{1}));
  EXPECT_EQ(extent(3, 5, 7), std::make_pair(int64_t{5}, int64_t{8}));
  EXPECT_EQ(extent(0, 8, 7), std::make_pair(int64_t{8}, int64_t{8}));
}

}  // namespace
}  // namespace muster::stream::jetstream
