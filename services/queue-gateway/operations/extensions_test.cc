// SPDX-License-Identifier: Apache-2.0

// What the gateway does beyond Azure's contract, by the metadata of a queue.
#include "muster/queue/store_decorators.h"
#include "nlohmann/json.hpp"
#include "services/queue-gateway/operations/operations_fixture.h"

namespace muster::queue_gateway::operations {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class ExtensionsTest : public OperationsFixture {
 protected:
  static http::Headers Metadata(const std::vector<std::pair<std::string, std::string>>& pairs) {
    http::Headers headers;
    for (const auto& [name, value] : pairs) headers.emplace_back("x-ms-meta-" + name, value);
    return headers;
  }

  void CreateWith(const std::vector<std::pair<std::string, std::string>>& pairs) {
    EXPECT_EQ(Status("PUT", "/queue", "", Metadata(pairs)), "201");
  }

  json Json(const std::string& path) {
    const http::Reply reply = Ask("GET", path);
    EXPECT_EQ(Said(reply), "200") << reply.body;
    return json::parse(reply.body);
  }

  // Receives and lets the lease lapse.
  std::vector<Received> GetAndForget() {
    std::vector<Received> messages = Get("?visibilitytimeout=1");
    clock_.Advance(absl::Seconds(1));
    return messages;
  }
};

TEST_F(ExtensionsTest, PutsWhatIsReceivedTooOftenIntoThePoisonQueue) {
  CreateWith({{"muster-maxdequeue", "2"}, {"muster-poison", "bad-ones"}});
  const Received put = Put("a");
  Put("b", "?visibilitytimeout=60");
  EXPECT_EQ(GetAndForget().at(0).dequeue_count, "1");
  const http::Headers who = {{"User-Agent", "shop/1"}, {"x-ms-client-request-id", "r-7"}};
  EXPECT_EQ(Status("GET", "/queue/messages?visibilitytimeout=1", "", who), "200");
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(GetAndForget(), IsEmpty());
  const json poison = Json("/bad-ones?comp=muster-poison");
  ASSERT_THAT(poison["messages"], SizeIs(1));
  const json& shown = poison["messages"][0];
  EXPECT_EQ(shown["message_text"], "a");
  EXPECT_EQ(shown["from_queue"], "queue");
  EXPECT_EQ(shown["from_message_id"], put.id);
  EXPECT_EQ(shown["dequeue_count"], 2);
  EXPECT_EQ(shown["cause"],
            "received 2 times from 'queue' and never deleted; muster-maxdequeue is 2");
  EXPECT_THAT(std::string(shown["last_holder"]),
              AllOf(HasSubstr("request r-7"), HasSubstr("shop/1")));
  EXPECT_EQ(poison["next_marker"], shown["message_id"]);
  // Any client may work on it there, with its text as it was.
  const auto messages = MessagesOf(Ask("GET", "/bad-ones/messages"));
  ASSERT_THAT(Texts(messages), ElementsAre("a"));
  EXPECT_EQ(Status("DELETE", absl::StrCat("/bad-ones/messages/", messages[0].id,
                                          "?popreceipt=", messages[0].receipt)),
            "204");
  EXPECT_THAT(Json("/bad-ones?comp=muster-poison")["messages"], IsEmpty());
}

TEST_F(ExtensionsTest, ReturnsGoodMessagesFromBehindPoison) {
  CreateWith({{"muster-maxdequeue", "1"}});
  for (int i = 0; i < 16; ++i) Put("bad");
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Get("?numofmessages=8&visibilitytimeout=1"), SizeIs(8));
  }
  clock_.Advance(absl::Seconds(1));
  Put("good");
  EXPECT_THAT(Texts(Get()), ElementsAre("good"));
  EXPECT_THAT(Json("/queue-poison?comp=muster-poison&numofmessages=32")["messages"], SizeIs(16));
}

// An empty answer ends the loop of an SDK.
TEST_F(ExtensionsTest, ReturnsAGoodMessageFromBehindMuchPoisonToAGetOfOne) {
  CreateWith({{"muster-maxdequeue", "1"}});
  for (int i = 0; i < 96; ++i) Put("bad");
  for (int i = 0; i < 12; ++i) {
    EXPECT_THAT(Get("?numofmessages=8&visibilitytimeout=1"), SizeIs(8));
  }
  clock_.Advance(absl::Seconds(1));
  Put("good");
  EXPECT_THAT(Texts(Get()), ElementsAre("good"));
}

TEST_F(ExtensionsTest, MakesThePoisonQueueWhenItIsNeededAndAgain) {
  CreateWith({{"muster-maxdequeue", "1"}});
  EXPECT_EQ(Status("GET", "/queue-poison?comp=metadata"), "404 QueueNotFound");
  for (int i = 0; i < 2; ++i) {
    Put("a");
    EXPECT_THAT(GetAndForget(), SizeIs(1));
    EXPECT_THAT(GetAndForget(), IsEmpty());
    EXPECT_EQ(Json("/queue?comp=muster-stats")["poison_queue"]["messages"], 1);
    EXPECT_EQ(Status("DELETE", "/queue-poison"), "204");
  }
}

// A queue store whose queue is deleted at the moment at which a message of it is moved.
class QueueThatGoes final : public queue::InterceptedStore {
 public:
  explicit QueueThatGoes(queue::QueueStore* behind) : InterceptedStore(behind), behind_(behind) {}

  absl::StatusOr<std::vector<absl::Status>> Move(
      const queue::QueueId& from, const queue::QueueId& to,
      absl::Span<const queue::MoveRequest> requests) override {
    EXPECT_TRUE(behind_->DeleteQueue(from).ok());
    return behind_->Move(from, to, requests);
  }

 private:
  queue::QueueStore* const behind_;  // not owned
};

TEST_F(ExtensionsTest, MakesNoPoisonQueueForAQueueThatIsGone) {
  CreateWith({{"muster-maxdequeue", "1"}});
  Put("a");
  GetAndForget();
  QueueThatGoes goes(queues_.get());
  stores_.queues = &goes;
  EXPECT_EQ(Status("GET", "/queue/messages"), "404 QueueNotFound");
  EXPECT_EQ(Status("GET", "/queue-poison?comp=metadata"), "404 QueueNotFound");
}

TEST_F(ExtensionsTest, RedrivesPoisonToWhereItCameFrom) {
  CreateWith({{"muster-maxdequeue", "1"}});
  for (const char* text : {"a", "b"}) Put(text);
  Get("?numofmessages=2&visibilitytimeout=1");
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(Get("?numofmessages=2"), IsEmpty());
  EXPECT_EQ(Ask("POST", "/queue-poison?comp=muster-redrive&numofmessages=1").body,
            R"({"queue":"queue-poison","redriven":1})");
  const std::vector<Received> again = Get();
  ASSERT_THAT(Texts(again), ElementsAre("a"));
  EXPECT_EQ(again[0].dequeue_count, "1");
  EXPECT_EQ(Status("POST", "/queue-poison?comp=muster-redrive"),
            "400 MissingRequiredQueryParameter");
  EXPECT_EQ(Status("POST", "/none?comp=muster-redrive&numofmessages=1"), "404 QueueNotFound");
  EXPECT_EQ(Status("GET", "/queue?comp=muster-redrive"), "405 UnsupportedHttpVerb");
}

TEST_F(ExtensionsTest, RefusesSettingsThatCannotBeHeeded) {
  for (const auto& pairs : std::vector<std::vector<std::pair<std::string, std::string>>>{
           {{"muster-maxdequeue", "0"}},
           {{"muster-maxdequeue", "many"}},
           {{"muster-maxdequeue", "1000001"}},
           {{"muster-poison", "bad-ones"}},
           {{"muster-maxdequeue", "1"}, {"muster-poison", "Bad"}},
           {{"muster-maxdequeue", "1"}, {"muster-poison", "queue"}},
           {{"muster-dedup", "0"}},
           {{"muster-dedup", "604801"}},
           {{"muster-dedup-by", "text"}},
           {{"muster-dedup", "1"}, {"muster-dedup-by", "id"}},
           {{"muster-longpoll", "0"}},
           {{"muster-longpoll", "51"}},
           {{"muster-visibility", "soon"}},
           {{"muster-maxdequeu", "1"}}}) {
    const http::Reply reply = Ask("PUT", "/queue", "", Metadata(pairs));
    EXPECT_EQ(Said(reply), "400 InvalidMetadata") << pairs[0].first << " " << pairs[0].second;
    EXPECT_THAT(reply.body, HasSubstr("<Reason>")) << pairs[0].first;
  }
  const std::string long_name(60, 'q');
  EXPECT_EQ(Status("PUT", "/" + long_name, "", Metadata({{"muster-maxdequeue", "1"}})),
            "400 InvalidMetadata");
  Create("queue");
  EXPECT_EQ(Status("PUT", "/queue?comp=metadata", "", Metadata({{"Muster-MaxDequeue", "x"}})),
            "400 InvalidMetadata");
  EXPECT_EQ(Status("PUT", "/queue?comp=metadata", "", Metadata({{"Muster-MaxDequeue", "5"}})),
            "204");
}

// It was taken, and did nothing where leases are not the engine's.
TEST_F(ExtensionsTest, LeasesForTheTimeOfTheQueueWhereAGetNamesNone) {
  CreateWith({{"muster-visibility", "2m"}});
  Put("a");
  EXPECT_THAT(Ask("GET", "/queue/messages").body, HasSubstr("<MessageText>a<"));
  clock_.Advance(absl::Seconds(119));
  EXPECT_THAT(Ask("GET", "/queue/messages").body, Not(HasSubstr("<MessageText>")));
  clock_.Advance(absl::Seconds(2));
  EXPECT_THAT(Ask("GET", "/queue/messages?visibilitytimeout=5").body, HasSubstr("<MessageText>a<"));
  clock_.Advance(absl::Seconds(6));
  EXPECT_THAT(Ask("GET", "/queue/messages").body, HasSubstr("<MessageText>a<"));
}

TEST_F(ExtensionsTest, StoresEqualTextsOnceWithinTheWindow) {
  CreateWith({{"muster-dedup", "60"}});
  const http::Reply first = Ask("POST", "/queue/messages", Message("a"));
  clock_.Advance(absl::Seconds(59));
  EXPECT_EQ(Ask("POST", "/queue/messages", Message("a")).body, first.body);
  Put("b");
  clock_.Advance(absl::Seconds(1));
  Put("a");
  EXPECT_THAT(Texts(Get("?numofmessages=32")), ElementsAre("a", "b", "a"));
}

TEST_F(ExtensionsTest, StoresAPutOnceByItsRequestId) {
  CreateWith({{"muster-dedup", "60"}, {"muster-dedup-by", "request-id"}});
  for (const char* text : {"a", "b"}) {
    EXPECT_EQ(Status("POST", "/queue/messages", Message(text), {{"x-ms-client-request-id", "1"}}),
              "201");
  }
  EXPECT_EQ(Status("POST", "/queue/messages", Message("c"), {{"x-ms-client-request-id", "2"}}),
            "201");
  for (int i = 0; i < 2; ++i) Put("d");
  EXPECT_THAT(Texts(Get("?numofmessages=32")), ElementsAre("a", "c", "d", "d"));
}

TEST_F(ExtensionsTest, AnswersADuplicateOfADeletedMessageLikeTheFirst) {
  CreateWith({{"muster-dedup", "60"}});
  const Received first = Put("a");
  EXPECT_EQ(Status("DELETE", Settle(first)), "204");
  const Received again = Put("a");
  EXPECT_EQ(again.id, first.id);
  EXPECT_EQ(Status("DELETE", Settle(again)), "404 MessageNotFound");
  EXPECT_THAT(Get(), IsEmpty());
}

TEST_F(ExtensionsTest, CountsInOneSnapshot) {
  CreateWith({});
  for (const char* text : {"1", "2", "3"}) Put(text);
  Put("later", "?visibilitytimeout=60");
  Get();
  clock_.Advance(absl::Seconds(5));
  EXPECT_EQ(Json("/queue?comp=muster-stats"), json::parse(R"({
    "queue": "queue", "ready": 2, "in_flight": 1, "delayed": 1, "poison": 0,
    "oldest_age_seconds": 5.0, "total_in": 4, "total_out": 0, "total_expired": 0,
    "stale_receipts": 0})"));
  EXPECT_EQ(Status("GET", "/none?comp=muster-stats"), "404 QueueNotFound");
}

TEST_F(ExtensionsTest, RefusesAMarkerThatNoPageGave) {
  CreateWith({});
  EXPECT_EQ(Status("GET", "/queue?comp=muster-poison&marker=x"), "400 InvalidMarker");
  EXPECT_EQ(Status("GET", "/queue?comp=muster-poison&numofmessages=33"),
            "400 OutOfRangeQueryParameterValue");
  EXPECT_EQ(Status("GET", "/none?comp=muster-poison"), "404 QueueNotFound");
}

}  // namespace
}  // namespace muster::queue_gateway::operations
