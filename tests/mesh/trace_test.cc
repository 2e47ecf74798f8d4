// SPDX-License-Identifier: Apache-2.0

// The trace of a batch, on everything that belongs to the batch.
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/trace_context.h"
#include "muster/client/batch.h"
#include "muster/handler/handler.h"
#include "muster/input/byte_source.h"
#include "muster/item/queue_names.h"
#include "muster/item/redrive.h"
#include "muster/item/result_codec.h"
#include "muster/item/work_item_codec.h"
#include "muster/v1/batch.pb.h"
#include "tests/mesh/batch_service_fixture.h"

namespace muster {
namespace {

// Records the traces that the handler receives. It retries one item, and gives another one up until
// it is cured.
class TracedHandler final : public handler::Handler {
 public:
  struct Notes {
    std::atomic<bool> cured = false;
    base::Mutex mu;
    std::vector<std::optional<base::TraceContext>> traces ABSL_GUARDED_BY(mu);
  };

  explicit TracedHandler(Notes* notes) : notes_(notes) {}  // not owned

  handler::Outcome Process(const handler::WorkItem& item, handler::Results& results) override {
    {
      base::MutexLock lock(&notes_->mu);
      notes_->traces.push_back(item.trace());
    }
    if (item.index() == 5 && item.attempt() == 1) {
      return handler::Outcome::Retry(absl::Milliseconds(1), "once more");
    }
    if (item.index() == 7 && !notes_->cured) return handler::Outcome::Dead("ill");
    return counting_.Process(item, results);
  }

 private:
  Notes* const notes_;
  CountHandler counting_;
};

class TraceTest : public BatchServiceTest {
 protected:
  ~TraceTest() override {
    if (processor_ != nullptr) processor_->Stop(absl::Seconds(10)).IgnoreError();
    processor_.reset();  // before what it works with
  }

  static v1::SubmitHeader Traced(const std::string& request_id, const std::string& traceparent) {
    v1::SubmitHeader header = Header(request_id);
    header.set_traceparent(traceparent);
    return header;
  }

  v1::BatchStatus SubmitTraced(const v1::SubmitHeader& header) {
    const auto submitted =
        client::Submit(channel_, header, input::TextSource(Input(1000)), {}, base::RealClock(), {});
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    return submitted.value_or(v1::BatchStatus());
  }

  // The trace of the batch that a stream with this metadata begins.
  std::string TraceOfCall(const std::string& request_id, const v1::SubmitHeader& header,
                          const std::multimap<std::string, std::string>& metadata) {
    Upload upload(stub_.get(), metadata);
    upload.SendHeader(header);
    upload.Hear();
    return ledger_->FindByRequestId(request_id)->trace->ToTraceparent();
  }

  void RedriveAll(uint64_t batch) {
    item::LedgerBatchReopener reopener(ledger_.get(), report_client_.get());
    for (const queue::QueueId& id : item::InputQueues(kAccount, "count", 2)) {
      item::RedriveRequest request;
      request.queue = id;
      const auto redriven = item::RedriveItems(request, *queues_, reopener);
      EXPECT_TRUE(redriven.ok()) << redriven.status();
    }
    scheduler_->Advance(batch, absl::Seconds(5));
  }

  TracedHandler::Notes notes_;
  CountedStore put_by_processor_{queues_.get()};
};

TEST_F(TraceTest, EveryItemAttemptAndResultCarriesThatOfTheSubmit) {
  v1::SubmitHeader header = Traced("traced", kTraceparent);
  header.set_tracestate("a=b");
  const uint64_t batch = SubmitTraced(header).batch();
  AwaitQueued(batch, 50);
  for (const queue::QueueId& id : item::InputQueues(kAccount, "count", 2)) {
    ASSERT_TRUE(queues_->Clear(id).ok());  // for a refill
  }
  StartProcessor(&put_by_processor_, [this] { return std::make_unique<TracedHandler>(&notes_); });
  EXPECT_EQ(Watch(batch)->items_dead(), 1);
  notes_.cured = true;
  RedriveAll(batch);
  const auto last = Watch(batch);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->aggregated(), 1000);
  EXPECT_EQ(last->items_dead(), 0);
  EXPECT_EQ(last->traceparent(), kTraceparent);

  base::TraceContext trace = base::TraceContext::FromTraceparent(kTraceparent).value();
  const std::vector<std::string> results = put_by_processor_.bodies();
  for (const std::string& body : results) {
    const auto decoded = item::DecodeResults(body, blobs_.get());
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    for (const auto& result : *decoded) EXPECT_EQ(result->trace, trace);
  }
  EXPECT_FALSE(results.empty());
  trace.state = "a=b";
  const std::vector<std::string> items = counted_queues_.bodies();
  EXPECT_GE(items.size(), 100u) << "each twice";
  for (const std::string& body : items) {
    EXPECT_EQ(item::DecodeWorkItemHeader(body)->identity.trace, trace);
  }
  base::MutexLock lock(&notes_.mu);
  EXPECT_GE(notes_.traces.size(), 52u);
  for (const auto& seen : notes_.traces) EXPECT_EQ(seen, trace);
}

TEST_F(TraceTest, IsBegunForABatchWhoseSubmitterNamesNone) {
  const auto submit = [this](const std::string& request_id, double sample) {
    StopInitiator();
    trace_sample_ = sample;
    StartInitiator();
    return base::TraceContext::FromTraceparent(SubmitTraced(Header(request_id)).traceparent());
  };
  const auto all = submit("all", 1), none = submit("none", 0);
  ASSERT_TRUE(all.ok() && none.ok()) << all.status() << none.status();
  EXPECT_TRUE(all->sampled());
  EXPECT_FALSE(none->sampled());
  EXPECT_NE(all->trace_low, none->trace_low);
  EXPECT_EQ(submit("none", 1), none) << "it is decided once";
}

TEST_F(TraceTest, StaysThatOfTheFirstSubmit) {
  EXPECT_EQ(SubmitTraced(Traced("same", kTraceparent)).traceparent(), kTraceparent);
  const std::string other = absl::StrReplaceAll(kTraceparent, {{"4bf9", "0000"}});
  EXPECT_EQ(SubmitTraced(Traced("same", other)).traceparent(), kTraceparent);
  EXPECT_EQ(SubmitTraced(Header("same")).traceparent(), kTraceparent);
}

TEST_F(TraceTest, IsThatOfTheCallUnlessTheHeaderNamesOne) {
  const std::string other = absl::StrReplaceAll(kTraceparent, {{"4bf9", "0000"}});
  EXPECT_EQ(TraceOfCall("a", Header("a"), {{"traceparent", kTraceparent}, {"tracestate", "a=b"}}),
            kTraceparent);
  EXPECT_EQ(ledger_->FindByRequestId("a")->trace->state, "a=b");
  EXPECT_EQ(TraceOfCall("b", Traced("b", other), {{"traceparent", kTraceparent}}), other);
  // Metadata from libraries and proxies are not the submitter's mistake.
  EXPECT_NE(TraceOfCall("c", Header("c"), {{"traceparent", "garbage"}, {"tracestate", "a=b"}}), "");
  EXPECT_EQ(ledger_->FindByRequestId("c")->trace->state, "");
  const std::string chosen =
      TraceOfCall("d", Header("d"), {{"traceparent", kTraceparent}, {"traceparent", other}});
  EXPECT_NE(chosen, kTraceparent);
  EXPECT_NE(chosen, other);
}

}  // namespace
}  // namespace muster
