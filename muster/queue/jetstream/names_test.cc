#include "muster/queue/jetstream/names.h"

#include <set>

#include "gtest/gtest.h"

namespace muster::queue::jetstream {
namespace {

const queue::QueueId kQueue{"acme", "retail-in-0"};

TEST(NamesTest, NameStreamsAndSubjectsAfterTheQueue) {
  EXPECT_EQ(StreamOf(kQueue), "MUSTER_acme_retail-in-0");
  EXPECT_EQ(SubjectOf(kQueue), "muster.queue.acme.retail-in-0");
  EXPECT_EQ(AsideStreamOf(kQueue), "MUSTER-ASIDE_acme_retail-in-0");
  EXPECT_EQ(MetadataSubjectOf(kQueue), "muster.metadata.acme.retail-in-0");
  EXPECT_EQ(PoisonSubjectOf(kQueue, "7"), "muster.poison.acme.retail-in-0.7");
  EXPECT_EQ(AttemptSubjectOf(kQueue, 65536 + 5), "muster.attempts.acme.retail-in-0.5");
  EXPECT_EQ(AttemptPageSubjectOf(kQueue, 31), "muster.attempts.acme.retail-in-0.p0");
  EXPECT_EQ(AttemptPageSubjectOf(kQueue, 65536 + 32), "muster.attempts.acme.retail-in-0.p1");
}

TEST(NamesTest, TellTheQueueOfAStreamAndNoOther) {
  EXPECT_EQ(QueueOfStream(StreamOf(kQueue)), kQueue);
  for (const char* other : {"KV_muster", "MUSTER-ATTEMPTS", "MUSTER_", "", "orders"}) {
    EXPECT_FALSE(QueueOfStream(other).has_value()) << other;
  }
  EXPECT_FALSE(QueueOfStream(AsideStreamOf(kQueue)).has_value());
}

TEST(NamesTest, GiveEachMessageAGuidThatTellsItsSequence) {
  std::set<std::string> ids;
  for (const uint64_t sequence :
       {uint64_t{0}, uint64_t{1}, uint64_t{0xffffffffffff}, (uint64_t{1} << 60) - 1}) {
    const std::string id = MessageIdOf(kQueue, sequence);
    EXPECT_EQ(id.size(), 36u) << id;
    EXPECT_EQ(SequenceOf(kQueue, id), sequence) << id;
    EXPECT_TRUE(ids.insert(id).second);
  }
}

TEST(NamesTest, RefuseIdsOfOtherQueuesAndOtherText) {
  const std::string id = MessageIdOf(kQueue, 5);
  EXPECT_FALSE(SequenceOf({"acme", "retail-in-1"}, id).has_value());
  for (const std::string& text : {std::string(), std::string("nonsense"), id + "0", id.substr(1),
                                  std::string("00000000-0000-4000-8000-000000000000")}) {
    EXPECT_FALSE(SequenceOf(kQueue, text).has_value()) << text;
  }
}

}  // namespace
}  // namespace muster::queue::jetstream
