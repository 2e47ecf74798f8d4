// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "muster/queue/store_decorators.h"
#include "services/queue-gateway/operations/message_text.h"
#include "services/queue-gateway/operations/operations_fixture.h"

namespace muster::queue_gateway::operations {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class MessageOperationsTest : public OperationsFixture {
 protected:
  MessageOperationsTest() { Create("queue"); }
};

TEST_F(MessageOperationsTest, PutsAMessageAndSaysWhatBecameOfIt) {
  const http::Reply reply = Ask("POST", "/queue/messages", Message("hello"));
  EXPECT_EQ(Said(reply), "201");
  const protocol::XmlElement message = Document(reply).children.at(0);
  EXPECT_THAT(*message.TextOf("MessageId"), testing::MatchesRegex("[0-9a-f-]{36}"));
  EXPECT_EQ(message.TextOf("InsertionTime"), protocol::HttpDate(clock_.Now()));
  EXPECT_EQ(message.TextOf("ExpirationTime"), protocol::HttpDate(clock_.Now() + absl::Hours(168)));
  EXPECT_EQ(message.TextOf("TimeNextVisible"), protocol::HttpDate(clock_.Now()));
  EXPECT_EQ(message.Child("MessageText"), nullptr);
}

TEST_F(MessageOperationsTest, GetsMessagesInOrderAndHidesThem) {
  for (const char* text : {"1", "2", "3"}) Put(text);
  EXPECT_THAT(Texts(Get()), ElementsAre("1"));
  EXPECT_THAT(Texts(Get("?numofmessages=32&visibilitytimeout=60")), ElementsAre("2", "3"));
  EXPECT_EQ(Ask("GET", "/queue/messages").body,
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList/>");
  clock_.Advance(absl::Seconds(30));
  const std::vector<Received> again = Get();
  EXPECT_THAT(Texts(again), ElementsAre("1"));
  EXPECT_EQ(again.at(0).dequeue_count, "2");
}

TEST_F(MessageOperationsTest, PeeksWithoutAReceipt) {
  Put("1");
  const http::Reply reply = Ask("GET", "/queue/messages?peekonly=true");
  EXPECT_THAT(reply.body, AllOf(HasSubstr("<DequeueCount>0</DequeueCount>"),
                                Not(HasSubstr("PopReceipt")), Not(HasSubstr("TimeNextVisible"))));
  EXPECT_THAT(Texts(Get()), ElementsAre("1"));
}

TEST_F(MessageOperationsTest, ReturnsTheTextAsItWasPut) {
  const std::string emoji = "\xF0\x9F\x98\x80 \xC3\xA9";
  EXPECT_EQ(Put("").id.size(), 36u);
  Put(emoji);
  Put(" &lt;a&gt; &amp;&#13;\n\t ");
  Put("aGVsbG8=");
  EXPECT_THAT(Texts(Get("?numofmessages=32")), ElementsAre("", emoji, " <a> &\r\n\t ", "aGVsbG8="));
}

TEST_F(MessageOperationsTest, TakesTextOf64KibibytesAndNoMore) {
  const std::string largest(kMaxTextBytes, 'x');
  Put(largest);
  EXPECT_EQ(Get().at(0).text, largest);
  const http::Reply reply = Ask("POST", "/queue/messages", Message(largest + "x"));
  EXPECT_EQ(Said(reply), "413 RequestBodyTooLarge");
  EXPECT_THAT(reply.body, HasSubstr("<MaxLimit>65536</MaxLimit>"));
  // It is the text that is bounded, not the way it is written.
  std::string escaped;
  for (size_t i = 0; i < kMaxTextBytes; ++i) escaped += "&amp;";
  Put(escaped);
}

TEST_F(MessageOperationsTest, RefusesBodiesThatAreNoMessage) {
  for (const char* body : {"", "text", "<QueueMessage/>", "<Other><MessageText/></Other>",
                           "<QueueMessage><MessageText>",
                           "<QueueMessage><MessageText>&#1;"
                           "</MessageText></QueueMessage>",
                           "<QueueMessage><MessageText><b/></MessageText></QueueMessage>"}) {
    EXPECT_EQ(Status("POST", "/queue/messages", body), "400 InvalidXmlDocument") << body;
  }
  EXPECT_EQ(Status("POST", "/none/messages", Message("x")), "404 QueueNotFound");
}

TEST_F(MessageOperationsTest, ChecksTheDigestOfABody) {
  // Of <QueueMessage><MessageText>x</MessageText></QueueMessage>.
  EXPECT_EQ(Status("POST", "/queue/messages", Message("x"),
                   {{"Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA=="}}),
            "400 Md5Mismatch");
  for (const char* none : {"AAAA", "x", "!"}) {
    EXPECT_EQ(Status("POST", "/queue/messages", Message("x"), {{"Content-MD5", none}}),
              "400 InvalidMd5")
        << none;
  }
  version_ = "2008-10-27";
  EXPECT_EQ(
      Status("PUT", "/queue/messages", "hello", {{"Content-MD5", "XUFAKrxLKna5cZ2REBfFkg=="}}),
      "201");
}

TEST_F(MessageOperationsTest, BoundsTheLifeOfAMessage) {
  EXPECT_EQ(Status("POST", "/queue/messages?messagettl=0", Message("x")),
            "400 InvalidQueryParameterValue");
  EXPECT_EQ(Status("POST", "/queue/messages?messagettl=-2", Message("x")),
            "400 InvalidQueryParameterValue");
  const http::Reply forever = Ask("POST", "/queue/messages?messagettl=-1", Message("x"));
  EXPECT_THAT(forever.body,
              HasSubstr("<ExpirationTime>Fri, 31 Dec 9999 23:59:59 GMT</ExpirationTime>"));
  EXPECT_EQ(Status("POST", "/queue/messages?messagettl=604801", Message("x")), "201");
  version_ = "2016-05-31";
  EXPECT_EQ(Status("POST", "/queue/messages?messagettl=-1", Message("x")),
            "400 InvalidQueryParameterValue");
  EXPECT_EQ(Status("POST", "/queue/messages?messagettl=604801", Message("x")),
            "400 OutOfRangeQueryParameterValue");
}

TEST_F(MessageOperationsTest, SaysWhatLifeOfAMessageIsAllowed) {
  for (const char* ttl : {"2147483648", "99999999999999999999"}) {
    const http::Reply reply =
        Ask("POST", absl::StrCat("/queue/messages?messagettl=", ttl), Message("x"));
    EXPECT_EQ(Said(reply), "400 OutOfRangeQueryParameterValue");
    EXPECT_THAT(reply.body, HasSubstr("<MinimumAllowed>1</MinimumAllowed>"));
    EXPECT_THAT(reply.body, HasSubstr("<MaximumAllowed>2147483647</MaximumAllowed>"));
  }
}

TEST_F(MessageOperationsTest, DelaysAMessageWithinItsLife) {
  Put("later", "?visibilitytimeout=10&messagettl=11");
  EXPECT_THAT(Get(), IsEmpty());
  clock_.Advance(absl::Seconds(10));
  EXPECT_THAT(Texts(Get()), ElementsAre("later"));
  const http::Reply reply =
      Ask("POST", "/queue/messages?visibilitytimeout=10&messagettl=10", Message("x"));
  EXPECT_EQ(Said(reply), "400 OutOfRangeQueryParameterValue");
  EXPECT_THAT(reply.body, HasSubstr("<MaximumAllowed>9</MaximumAllowed>"));
  EXPECT_EQ(Status("POST", "/queue/messages?visibilitytimeout=604801", Message("x")),
            "400 OutOfRangeQueryParameterValue");
}

TEST_F(MessageOperationsTest, BoundsAGet) {
  for (const char* query : {"numofmessages=0", "numofmessages=33", "visibilitytimeout=0",
                            "visibilitytimeout=604801", "peekonly=true&numofmessages=33"}) {
    EXPECT_EQ(Status("GET", absl::StrCat("/queue/messages?", query)),
              "400 OutOfRangeQueryParameterValue")
        << query;
  }
  EXPECT_EQ(Status("GET", "/none/messages"), "404 QueueNotFound");
  EXPECT_EQ(Status("GET", "/none/messages?peekonly=true"), "404 QueueNotFound");
}

TEST_F(MessageOperationsTest, DeletesWithTheLatestReceipt) {
  Put("1");
  const Received first = Get("?visibilitytimeout=1").at(0);
  clock_.Advance(absl::Seconds(1));
  const Received second = Get("?visibilitytimeout=1").at(0);
  EXPECT_EQ(Status("DELETE", Settle(first)), "400 PopReceiptMismatch");
  // Its time has passed, but no other has taken it.
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Status("DELETE", Settle(second)), "204");
  EXPECT_EQ(Status("DELETE", Settle(second)), "404 MessageNotFound");
  EXPECT_EQ(Status("DELETE", Settle(first)), "404 MessageNotFound");
}

TEST_F(MessageOperationsTest, SettlesWithTheReceiptOfThePut) {
  const Received put = Put("1");
  EXPECT_EQ(Status("PUT", Settle(put, "&visibilitytimeout=0"), Message("2")), "204");
  EXPECT_THAT(Texts(Get()), ElementsAre("2"));
  EXPECT_EQ(Status("DELETE", Settle(Put("3"))), "204");
}

TEST_F(MessageOperationsTest, AsksForTheIdAndTheReceiptOfOneMessage) {
  const Received one = Put("1"), two = Put("2");
  EXPECT_EQ(Status("DELETE", Settle({two.id, one.receipt, "", ""})), "400 PopReceiptMismatch");
  EXPECT_EQ(Status("DELETE", Settle({one.id, "nonsense", "", ""})), "400 PopReceiptMismatch");
  EXPECT_EQ(Status("PUT", Settle({two.id, one.receipt, "", ""}, "&visibilitytimeout=0")),
            "400 PopReceiptMismatch");
  EXPECT_EQ(Status("DELETE", "/queue/messages/" + one.id), "400 MissingRequiredQueryParameter");
  EXPECT_EQ(Status("DELETE", "/none/messages/x?popreceipt=y"), "404 QueueNotFound");
  const std::string no_id = "00000000-0000-4000-8000-000000000000";
  EXPECT_EQ(Status("DELETE", Settle({no_id, one.receipt, "", ""})), "404 MessageNotFound");
  EXPECT_EQ(Status("PUT", Settle({no_id, one.receipt, "", ""}, "&visibilitytimeout=0")),
            "404 MessageNotFound");
  EXPECT_THAT(Texts(Get("?numofmessages=2")), ElementsAre("1", "2"));
}

// A worker that is late with a message of a queue that was made anew must learn that it is gone.
TEST_F(MessageOperationsTest, TakesAMessageOfAnotherQueueForOneThatIsNotThere) {
  const Received old = Put("1");
  Create("other");
  EXPECT_EQ(Status("POST", "/other/messages", Message("2")), "201");
  EXPECT_EQ(Status("DELETE", absl::StrCat("/other/messages/", old.id, "?popreceipt=", old.receipt)),
            "404 MessageNotFound");
  EXPECT_EQ(Status("DELETE", "/queue"), "204");
  Create("queue");
  Put("3");
  EXPECT_EQ(Status("DELETE", Settle(old)), "404 MessageNotFound");
  EXPECT_EQ(Status("PUT", Settle(old, "&visibilitytimeout=0")), "404 MessageNotFound");
  EXPECT_THAT(Texts(Get()), ElementsAre("3"));
}

TEST_F(MessageOperationsTest, UpdatesVisibilityAndText) {
  Put("1");
  const Received message = Get().at(0);
  const http::Reply reply = Ask("PUT", Settle(message, "&visibilitytimeout=5"), Message("2"));
  EXPECT_EQ(Said(reply), "204");
  EXPECT_EQ(Header(reply, "x-ms-time-next-visible"),
            protocol::HttpDate(clock_.Now() + absl::Seconds(5)));
  EXPECT_EQ(Status("DELETE", Settle(message)), "400 PopReceiptMismatch");
  const std::string receipt = Header(reply, "x-ms-popreceipt");
  // Without a body the text stays.
  const http::Reply again =
      Ask("PUT", Settle({message.id, receipt, "", ""}, "&visibilitytimeout=0"));
  EXPECT_EQ(Said(again), "204");
  EXPECT_THAT(Texts(Get()), ElementsAre("2"));
}

TEST_F(MessageOperationsTest, BoundsAnUpdate) {
  const Received message = Put("1");
  EXPECT_EQ(Status("PUT", Settle(message)), "400 MissingRequiredQueryParameter");
  EXPECT_EQ(Status("PUT", "/queue/messages/x?visibilitytimeout=1"),
            "400 MissingRequiredQueryParameter");
  EXPECT_EQ(Status("PUT", Settle(message, "&visibilitytimeout=604801")),
            "400 OutOfRangeQueryParameterValue");
  EXPECT_EQ(Status("PUT", Settle(message, "&visibilitytimeout=1"), "<a/>"),
            "400 InvalidXmlDocument");
}

TEST_F(MessageOperationsTest, ClearsAllMessages) {
  Put("1");
  Put("2");
  Get();
  EXPECT_EQ(Status("DELETE", "/queue/messages"), "204");
  EXPECT_EQ(Header(Ask("GET", "/queue?comp=metadata"), "x-ms-approximate-messages-count"), "0");
  EXPECT_EQ(Status("DELETE", "/none/messages"), "404 QueueNotFound");
}

TEST_F(MessageOperationsTest, ClearsNothingForTheDeleteOfAMessageWithAnEmptyId) {
  const Received one = Put("1");
  EXPECT_EQ(Status("DELETE", "/queue/messages/?popreceipt=" + one.receipt), "400 InvalidUri");
  EXPECT_THAT(Texts(Get()), ElementsAre("1"));
}

// The forms of the paper: PUT with the message as the body, base64 on the way out.
TEST_F(MessageOperationsTest, SpeaksTheDialectOf2008) {
  version_ = "2008-10-27";
  const std::string binary(
      "\0\xFF"
      "ab",
      4);
  const http::Reply put = Ask("PUT", "/queue/messages?messagettl=3600", binary);
  EXPECT_EQ(Said(put), "201");
  EXPECT_EQ(put.body, "");
  const std::vector<Received> messages = Get("?numofmessages=2&visibilitytimeout=60");
  EXPECT_THAT(Texts(messages), ElementsAre("AP9hYg=="));
  EXPECT_EQ(messages.at(0).dequeue_count, "") << "the count came in 2009";
  EXPECT_EQ(Status("DELETE", Settle(messages.at(0), "&timeout=30")), "204");
  version_ = "2020-02-10";
  EXPECT_EQ(Status("PUT", "/queue/messages", "x"), "405 UnsupportedHttpVerb");
}

TEST_F(MessageOperationsTest, LetsOldAndNewClientsShareAQueue) {
  Put("new");
  version_ = "2008-10-27";
  EXPECT_THAT(Texts(Get()), ElementsAre("bmV3"));
  EXPECT_EQ(Status("PUT", "/queue/messages", "old"), "201");
  EXPECT_EQ(Status("PUT", "/queue/messages", std::string("\0", 1)), "201");
  version_ = "2020-02-10";
  // Bytes that XML cannot carry come as base64.
  EXPECT_THAT(Texts(Get("?numofmessages=2")), ElementsAre("old", "AA=="));
}

// An engine whose messages another call has, for a few tries.
class ContendedStore final : public queue::InterceptedStore {
 public:
  ContendedStore(queue::QueueStore* behind, int tries) : InterceptedStore(behind), tries_(tries) {}

  absl::StatusOr<std::vector<absl::StatusOr<queue::UpdateResult>>> Update(
      const queue::QueueId& queue, absl::Span<const queue::UpdateRequest> requests) override {
    if (tries_-- > 0) return std::vector<absl::StatusOr<queue::UpdateResult>>{Contended()};
    return InterceptedStore::Update(queue, requests);
  }
  absl::StatusOr<std::vector<absl::Status>> Delete(
      const queue::QueueId& queue, absl::Span<const queue::Receipt> receipts) override {
    if (tries_-- > 0) return std::vector<absl::Status>{Contended()};
    return InterceptedStore::Delete(queue, receipts);
  }

 private:
  static absl::Status Contended() { return absl::UnavailableError("settled by another call"); }

  int tries_;
};

class ContendedMessageTest : public MessageOperationsTest {
 protected:
  // What the request is answered in the end; its pauses are over as soon as it makes them.
  std::string SaidInTheEnd(const std::string& method, const std::string& path,
                           int contended_tries) {
    ContendedStore contended(queues_.get(), contended_tries);
    stores_.queues = &contended;
    std::string said;
    std::thread caller([&] { said = Status(method, path); });
    constexpr int kMostPauses = 8;
    for (int i = 0; i < std::min(contended_tries, kMostPauses); ++i) {
      clock_.AwaitSleepers(1);
      clock_.Advance(clock_.NextDeadline() - clock_.Monotonic());
    }
    caller.join();
    stores_.queues = queues_.get();
    return said;
  }
};

// A producer deleted by the receipt of its put while a consumer got the message, and was told that
// the outcome was unknown.
TEST_F(ContendedMessageTest, SettlesOnceNoOtherCallHasTheMessage) {
  const Received first = Put("1");
  EXPECT_EQ(SaidInTheEnd("PUT", Settle(first, "&visibilitytimeout=0"), 2), "204");
  const Received second = Put("2");
  EXPECT_EQ(SaidInTheEnd("DELETE", Settle(second), 3), "204");
}

TEST_F(ContendedMessageTest, SaysAfterAQuarterOfASecondThatTheOutcomeIsUnknown) {
  const absl::Duration began = clock_.Monotonic();
  EXPECT_EQ(SaidInTheEnd("DELETE", Settle(Put("1")), 1000), "500 OperationTimedOut");
  EXPECT_EQ(clock_.Monotonic() - began, absl::Milliseconds(255));
}

// Figure 2 of the paper.
TEST_F(MessageOperationsTest, LetsASecondConsumerFinishWhatACrashedOneHeld) {
  Put("1");
  Put("2");
  Get();  // C1 takes message 1, and crashes
  EXPECT_EQ(Status("DELETE", Settle(Get().at(0))), "204");
  clock_.Advance(absl::Seconds(30));
  const std::vector<Received> again = Get();
  EXPECT_THAT(Texts(again), ElementsAre("1"));
  EXPECT_EQ(Status("DELETE", Settle(again.at(0))), "204");
}

}  // namespace
}  // namespace muster::queue_gateway::operations
