// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/acl.h"

#include <functional>
#include <utility>

#include "absl/strings/str_replace.h"
#include "muster/queue/store_decorators.h"
#include "services/queue-gateway/operations/operations_fixture.h"

namespace muster::queue_gateway::operations {
namespace {

constexpr char kHead[] = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";
constexpr char kOne[] =
    "<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy>"
    "<Start>2020-01-01T00:00:00.0000000Z</Start><Expiry>2020-02-01T00:00:00.0000000Z</Expiry>"
    "<Permission>raup</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";

std::string Policy(absl::string_view id, absl::string_view access) {
  return absl::StrCat("<SignedIdentifier><Id>", id, "</Id><AccessPolicy>", access,
                      "</AccessPolicy></SignedIdentifier>");
}
std::string List(absl::string_view policies) {
  return absl::StrCat("<SignedIdentifiers>", policies, "</SignedIdentifiers>");
}

class AclTest : public OperationsFixture {
 protected:
  AclTest() { Create("queue"); }
};

TEST_F(AclTest, KeepsThePoliciesOfAQueue) {
  EXPECT_EQ(Ask("GET", "/queue?comp=acl").body, absl::StrCat(kHead, "<SignedIdentifiers/>"));
  EXPECT_EQ(Status("PUT", "/queue?comp=acl", kOne), "204");
  EXPECT_EQ(Ask("GET", "/queue?comp=acl").body, absl::StrCat(kHead, kOne));
  EXPECT_EQ(Status("HEAD", "/queue?comp=acl"), "200");
  EXPECT_EQ(ReadAcl({"acct", "queue"}, stores_)->at(0).permission, "raup");
  EXPECT_EQ(Status("PUT", "/queue?comp=acl", ""), "204");
  EXPECT_TRUE(ReadAcl({"acct", "queue"}, stores_)->empty());
}

// The SDK for Go reads no shorter ones.
TEST_F(AclTest, ShowsTimesInFull) {
  const std::string policy =
      "<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy><Start>2026-11-30</Start>"
      "<Expiry>2027-01-01T00:00Z</Expiry></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
  EXPECT_EQ(Status("PUT", "/queue?comp=acl", policy), "204");
  EXPECT_THAT(Ask("GET", "/queue?comp=acl").body,
              testing::HasSubstr("<Start>2026-11-30T00:00:00.0000000Z</Start>"
                                 "<Expiry>2027-01-01T00:00:00.0000000Z</Expiry>"));
}

TEST_F(AclTest, EndsWithItsQueue) {
  EXPECT_EQ(Status("PUT", "/queue?comp=acl", kOne), "204");
  EXPECT_EQ(Status("DELETE", "/queue"), "204");
  EXPECT_EQ(records_.Get("queue-gateway/acl/acct/queue")->version, sync::kAbsent);
  EXPECT_EQ(Status("GET", "/queue?comp=acl"), "404 QueueNotFound");
}

// The gateway died after the queue was deleted, and before its policies were.
TEST_F(AclTest, DoesNotCountForTheNextQueueOfThatName) {
  EXPECT_EQ(Status("PUT", "/queue?comp=acl", kOne), "204");
  EXPECT_TRUE(queues_->DeleteQueue({"acct", "queue"}).ok());
  Create("queue");
  EXPECT_TRUE(ReadAcl({"acct", "queue"}, stores_)->empty());
  EXPECT_EQ(Status("PUT", "/queue?comp=acl", kOne), "204");
  EXPECT_EQ(ReadAcl({"acct", "queue"}, stores_)->size(), 1u);
}

TEST_F(AclTest, IsAnErrorWhenItsRecordIsDamaged) {
  EXPECT_EQ(Status("PUT", "/queue?comp=acl", kOne), "204");
  const std::string record = records_.Get("queue-gateway/acl/acct/queue")->data;
  records_.Overwrite("queue-gateway/acl/acct/queue", record.substr(0, record.size() - 3));
  EXPECT_EQ(Status("GET", "/queue?comp=acl"), "500 InternalError");
}

// Permissions in any order were stored once.
TEST_F(AclTest, StillReadsWhatNoOneMayStoreAnyMore) {
  EXPECT_EQ(Status("PUT", "/queue?comp=acl", kOne), "204");
  const std::string record = records_.Get("queue-gateway/acl/acct/queue")->data;
  records_.Overwrite("queue-gateway/acl/acct/queue",
                     absl::StrReplaceAll(record, {{"raup", "puarr"}}));
  EXPECT_EQ(ReadAcl({"acct", "queue"}, stores_)->at(0).permission, "puarr");
}

// A queue store whose queue is made again by another client before a delete of it returns.
class QueueThatComesBack final : public queue::InterceptedStore {
 public:
  QueueThatComesBack(queue::QueueStore* behind, std::function<void()> again)
      : InterceptedStore(behind), again_(std::move(again)) {}

  absl::Status DeleteQueue(const queue::QueueId& queue) override {
    absl::Status deleted = InterceptedStore::DeleteQueue(queue);
    again_();
    return deleted;
  }

 private:
  const std::function<void()> again_;
};

// Who deleted a queue took the policies of the next one away, and so all its signatures.
TEST_F(AclTest, StaysWithAQueueThatIsMadeAgainDuringTheDelete) {
  EXPECT_EQ(Status("PUT", "/queue?comp=acl", kOne), "204");
  QueueThatComesBack comes_back(queues_.get(), [this] {
    stores_.queues = queues_.get();
    Create("queue");
    EXPECT_EQ(Status("PUT", "/queue?comp=acl", List(Policy("two", ""))), "204");
  });
  stores_.queues = &comes_back;
  EXPECT_EQ(Status("DELETE", "/queue"), "204");
  ASSERT_EQ(ReadAcl({"acct", "queue"}, stores_)->size(), 1u);
  EXPECT_EQ(ReadAcl({"acct", "queue"}, stores_)->at(0).id, "two");
}

// The write left an ACL of the deleted queue, which no queue has, in the place of the new queue's.
TEST_F(AclTest, IsThatOfTheQueueThatIsThereWhenItIsWritten) {
  RivalledStore rivalled(&records_, [this] {
    stores_.records = &records_;
    EXPECT_EQ(Status("DELETE", "/queue"), "204");
    Create("queue");
    EXPECT_EQ(Status("PUT", "/queue?comp=acl", List(Policy("two", ""))), "204");
  });
  stores_.records = &rivalled;
  EXPECT_EQ(Status("PUT", "/queue?comp=acl", kOne), "204");
  ASSERT_EQ(ReadAcl({"acct", "queue"}, stores_)->size(), 1u);
  EXPECT_EQ(ReadAcl({"acct", "queue"}, stores_)->at(0).id, "one");
}

TEST_F(AclTest, ChecksTheDigestOfItsBody) {
  EXPECT_EQ(Status("PUT", "/queue?comp=acl", kOne, {{"Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA=="}}),
            "400 Md5Mismatch");
  EXPECT_EQ(Status("PUT", "/queue?comp=acl", "", {{"Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg=="}}),
            "204");
}

TEST_F(AclTest, HasAStoredForm) {
  EXPECT_EQ(Status("PUT", "/queue?comp=acl", kOne), "204");
  const std::string incarnation = queues_->Extent({"acct", "queue"})->incarnation;
  EXPECT_EQ(records_.Get("queue-gateway/acl/acct/queue")->data,
            absl::StrCat(incarnation, absl::string_view("\0", 1), kHead, kOne));
}

TEST_F(AclTest, RefusesListsThatAreNone) {
  std::string six, characters;
  for (int i = 0; i < 6; ++i) six += Policy(absl::StrCat("id", i), "");
  for (int i = 0; i < 64; ++i) characters += "\xC3\xA9";
  for (const std::string& document :
       {List(six), List(Policy("", "")), List(Policy(characters + "x", "")), std::string("<a/>"),
        List("<Other/>"), List(Policy("a", "") + Policy("a", "")), std::string("<"),
        List(Policy("a", "<Permission>rx</Permission>")),
        List(Policy("a", "<Permission>rr</Permission>")),
        List(Policy("a", "<Permission>ar</Permission>")),
        List(Policy("a", "<Start>soon</Start>"))}) {
    EXPECT_EQ(Status("PUT", "/queue?comp=acl", document), "400 InvalidXmlDocument") << document;
  }
  EXPECT_EQ(Status("PUT", "/queue?comp=acl", List(Policy(characters, ""))), "204");
  EXPECT_EQ(Status("PUT", "/none?comp=acl", kOne), "404 QueueNotFound");
}

}  // namespace
}  // namespace muster::queue_gateway::operations
