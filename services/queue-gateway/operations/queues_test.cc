// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/store_decorators.h"
#include "services/queue-gateway/operations/operations_fixture.h"

namespace muster::queue_gateway::operations {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class QueueOperationsTest : public OperationsFixture {
 protected:
  static std::vector<std::string> Names(const http::Reply& reply) {
    std::vector<std::string> names;
    const protocol::XmlElement root = Document(reply);
    for (const auto& queue : root.Child("Queues")->children) {
      names.push_back(queue.TextOf("Name").value_or(""));
    }
    return names;
  }
};

TEST_F(QueueOperationsTest, CreatesAQueueOnceAndSaysWhetherItIsTheSame) {
  EXPECT_EQ(Status("PUT", "/queue", "", {{"x-ms-meta-a", "1"}}), "201");
  EXPECT_EQ(Status("PUT", "/queue", "", {{"x-ms-meta-a", "1"}}), "204");
  EXPECT_EQ(Status("PUT", "/queue", "", {{"x-ms-meta-a", "2"}}), "409 QueueAlreadyExists");
  EXPECT_EQ(Status("PUT", "/queue"), "409 QueueAlreadyExists");
}

// As by the SDKs for Python and for JavaScript, of which one sends the names in lower case.
TEST_F(QueueOperationsTest, TakesAQueueForTheSameWhateverTheCaseOfItsMetadataNames) {
  EXPECT_EQ(Status("PUT", "/queue", "", {{"x-ms-meta-Owner", "Me"}, {"x-ms-meta-b", "2"}}), "201");
  EXPECT_EQ(Status("PUT", "/queue", "", {{"x-ms-meta-B", "2"}, {"x-ms-meta-owner", "Me"}}), "204");
  EXPECT_EQ(Status("PUT", "/queue", "", {{"x-ms-meta-b", "2"}, {"x-ms-meta-owner", "me"}}),
            "409 QueueAlreadyExists");
  EXPECT_EQ(Header(Ask("GET", "/queue?comp=metadata"), "x-ms-meta-Owner"), "Me");
}

TEST_F(QueueOperationsTest, DeletesAQueueWithWhatItHolds) {
  Create("queue");
  Put("x");
  EXPECT_EQ(Status("DELETE", "/queue"), "204");
  EXPECT_EQ(Status("DELETE", "/queue"), "404 QueueNotFound");
  Create("queue");
  EXPECT_THAT(Get(), IsEmpty());
}

TEST_F(QueueOperationsTest, RefusesNamesThatAreNone) {
  EXPECT_EQ(Status("PUT", "/ab"), "400 OutOfRangeInput");
  EXPECT_EQ(Status("PUT", "/Queue"), "400 InvalidResourceName");
  EXPECT_EQ(Status("GET", "/que%00ue/messages"), "400 InvalidResourceName");
}

TEST_F(QueueOperationsTest, ReplacesAllMetadataAndCountsMessages) {
  EXPECT_EQ(Status("PUT", "/queue", "", {{"x-ms-meta-CamelCase", "Value"}}), "201");
  Put("1");
  Put("2");
  Get();  // one that is invisible counts too
  const http::Reply reply = Ask("GET", "/queue?comp=metadata");
  EXPECT_EQ(Said(reply), "200");
  EXPECT_THAT(reply.headers, ElementsAre(testing::Pair("x-ms-meta-CamelCase", "Value"),
                                         testing::Pair("x-ms-approximate-messages-count", "2")));
  EXPECT_EQ(Status("PUT", "/queue?comp=metadata", "", {{"x-ms-meta-b", "2"}}), "204");
  const http::Reply head = Ask("HEAD", "/queue?comp=metadata");
  EXPECT_EQ(Header(head, "x-ms-meta-b"), "2");
  EXPECT_EQ(Header(head, "x-ms-meta-camelcase"), "(none)");
  EXPECT_EQ(Status("PUT", "/queue?comp=metadata", "", {{"x-ms-meta-muster-visibility", "long"}}),
            "400 InvalidMetadata");
  EXPECT_EQ(Status("GET", "/none?comp=metadata"), "404 QueueNotFound");
  EXPECT_EQ(Status("PUT", "/none?comp=metadata"), "404 QueueNotFound");
}

TEST_F(QueueOperationsTest, ListsQueuesInPages) {
  for (const char* name : {"b-1", "a-1", "b-2", "b-3"}) Create(name);
  EXPECT_THAT(Names(Ask("GET", "?comp=list")), ElementsAre("a-1", "b-1", "b-2", "b-3"));
  const http::Reply first = Ask("GET", "?comp=list&prefix=b&maxresults=2");
  EXPECT_THAT(Names(first), ElementsAre("b-1", "b-2"));
  EXPECT_EQ(Document(first).TextOf("Prefix"), "b");
  EXPECT_EQ(Document(first).TextOf("MaxResults"), "2");
  EXPECT_EQ(Document(first).TextOf("NextMarker"), "/acct/b-2");
  const http::Reply second = Ask("GET", "?comp=list&prefix=b&maxresults=2&marker=/acct/b-2");
  EXPECT_THAT(Names(second), ElementsAre("b-3"));
  EXPECT_EQ(Document(second).TextOf("Marker"), "/acct/b-2");
  EXPECT_EQ(Document(second).TextOf("NextMarker"), "");
}

TEST_F(QueueOperationsTest, ListsNoMarkerWhenTheLastPageIsFull) {
  Create("a-1");
  Create("a-2");
  EXPECT_EQ(Document(Ask("GET", "?comp=list&maxresults=2")).TextOf("NextMarker"), "");
}

TEST_F(QueueOperationsTest, ListsMetadataWhenAsked) {
  EXPECT_EQ(Status("PUT", "/queue", "", {{"x-ms-meta-A", "<1>"}}), "201");
  EXPECT_THAT(Ask("GET", "?comp=list&include=metadata").body,
              HasSubstr("<Queue><Name>queue</Name><Metadata><A>&lt;1&gt;</A></Metadata></Queue>"));
  EXPECT_THAT(Ask("GET", "?comp=list").body, HasSubstr("<Queue><Name>queue</Name></Queue>"));
  EXPECT_THAT(Ask("GET", "?comp=list").body,
              HasSubstr("<EnumerationResults ServiceEndpoint=\"http://localhost:1/acct\">"));
}

TEST_F(QueueOperationsTest, RefusesListsThatCannotBe) {
  EXPECT_EQ(Status("GET", "?comp=list&maxresults=0"), "400 OutOfRangeQueryParameterValue");
  EXPECT_EQ(Status("GET", "?comp=list&maxresults=x"), "400 InvalidQueryParameterValue");
  EXPECT_EQ(Status("GET", "?comp=list&include=x"), "400 InvalidQueryParameterValue");
  EXPECT_EQ(Status("GET", "?comp=list&marker=x"), "400 InvalidMarker");
  EXPECT_EQ(Status("GET", "?comp=list&marker=/other/queue"), "400 InvalidMarker");
  EXPECT_EQ(Status("GET", "?comp=list&maxresults=5001"), "200");
}

TEST_F(QueueOperationsTest, GivesStatisticsAtTheSecondaryLocationOnly) {
  EXPECT_EQ(Status("GET", "?restype=service&comp=stats"), "400 InvalidQueryParameterValue");
  is_secondary_ = true;
  const http::Reply reply = Ask("GET", "?restype=service&comp=stats");
  EXPECT_THAT(reply.body, HasSubstr("<GeoReplication><Status>live</Status><LastSyncTime>"));
}

TEST_F(QueueOperationsTest, NamesTheRootOfStatisticsAsTheClientReadsIt) {
  is_secondary_ = true;
  const auto root = [this](const std::string& agent) {
    return Document(Ask("GET", "?restype=service&comp=stats", "", {{"User-Agent", agent}})).name;
  };
  EXPECT_EQ(root("mine azsdk-js-storage-queue/12.32.0 core-rest-pipeline/1.1"),
            "QueueServiceStats");
  EXPECT_EQ(root("azsdk-java-azure-storage-queue/12.29.0 (17)"), "QueueServiceStatistics");
  EXPECT_EQ(root("Azure-Storage/2.10.7 (NODE-VERSION v18)"), "StorageServiceStats");
  EXPECT_EQ(root("azsdk-python-storage-queue/12.18.1"), "StorageServiceStats");
  EXPECT_EQ(root(""), "StorageServiceStats");
}

class DeepStore final : public queue::InterceptedStore {
 public:
  using InterceptedStore::InterceptedStore;
  absl::StatusOr<queue::QueueStats> Stats(const queue::QueueId&) override {
    queue::QueueStats stats;
    stats.ready = 3'000'000'000;
    return stats;
  }
};

// Clients read it into 32 bits: one would see a number below 0.
TEST_F(QueueOperationsTest, CountsNoFurtherThanClientsCanRead) {
  Create("queue");
  DeepStore deep(queues_.get());
  stores_.queues = &deep;
  EXPECT_EQ(Header(Ask("GET", "/queue?comp=metadata"), "x-ms-approximate-messages-count"),
            "2147483647");
}

// A client sends every second try of a get to the secondary location; it must find its messages.
TEST_F(QueueOperationsTest, OnlyReadsAndGetsAtTheSecondaryLocation) {
  Create("queue");
  Put("x");
  is_secondary_ = true;
  EXPECT_EQ(Status("GET", "/queue/messages?peekonly=true"), "200");
  EXPECT_THAT(Texts(Get()), ElementsAre("x"));
  EXPECT_EQ(Status("PUT", "/other"), "403 InsufficientAccountPermissions");
  EXPECT_EQ(Status("DELETE", "/queue/messages"), "403 InsufficientAccountPermissions");
}

}  // namespace
}  // namespace muster::queue_gateway::operations
