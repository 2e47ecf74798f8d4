// SPDX-License-Identifier: Apache-2.0
#include "bench/rival/client.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/retail/csv_reader.h"

namespace rival {
namespace {

constexpr char kDurable[] = "workers";
constexpr int64_t kStallWaitMs = 30'000;
constexpr int64_t kExpiresNanos = 30'000'000'000;  // of a pull

void OnRefused(jsCtx*, jsPubAckErr* error, void*) {
  bench::Die(absl::StrCat("a message was not stored: ", error->ErrText));
}

}  // namespace

void Check(natsStatus status, absl::string_view what) {
  if (status == NATS_OK) return;
  bench::Die(absl::StrCat(what, ": ", natsStatus_GetText(status)));
}

absl::string_view Message::data() const {
  return {natsMsg_GetData(message_), static_cast<size_t>(natsMsg_GetDataLength(message_))};
}

// $JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>. and more
uint64_t Message::sequence() const {
  const std::vector<absl::string_view> words = absl::StrSplit(natsMsg_GetReply(message_), '.');
  uint64_t sequence = 0;
  if (words.size() != 9 || !absl::SimpleAtoi(words[5], &sequence)) {
    bench::Die("a message of no stream");
  }
  return sequence;
}

void Message::Ack() {
  Check(natsConnection_PublishString(connection_, natsMsg_GetReply(message_), "+ACK"),
        "acknowledging");
}

Consumer::Consumer(natsConnection* connection, const char* stream, int batch)
    : connection_(connection),
      pull_(absl::StrCat("$JS.API.CONSUMER.MSG.NEXT.", stream, ".", kDurable)),
      wish_(absl::StrCat("{\"batch\":", batch, ",\"expires\":", kExpiresNanos, "}")),
      batch_(batch) {
  Check(natsInbox_Create(&inbox_), "an inbox");
  Check(natsConnection_SubscribeSync(&subscription_, connection_, inbox_), "subscribing");
  Pull();
}

Consumer::~Consumer() {
  natsSubscription_Destroy(subscription_);
  natsInbox_Destroy(inbox_);
}

void Consumer::Pull() {
  Check(natsConnection_PublishRequest(connection_, pull_.c_str(), inbox_, wish_.data(),
                                      static_cast<int>(wish_.size())),
        "pulling");
  awaited_ = batch_;
}

std::vector<Message> Consumer::Fetch(int64_t patience_ms) {
  std::vector<Message> messages;
  // After the first message, Fetch takes only messages that have already arrived.
  while (Next(messages.empty() ? patience_ms : 0, &messages)) continue;
  return messages;
}

bool Consumer::Next(int64_t patience_ms, std::vector<Message>* messages) {
  natsMsg* message = nullptr;
  const natsStatus status = natsSubscription_NextMsg(&message, subscription_, patience_ms);
  if (status == NATS_TIMEOUT) return false;
  Check(status, "fetching");
  const char* text = nullptr;
  if (natsMsgHeader_Get(message, "Status", &text) == NATS_OK) {
    natsMsg_Destroy(message);
    Pull();  // the open request has expired
    return true;
  }
  messages->emplace_back(connection_, message);
  if (--awaited_ == 0) {
    // The server sends more messages while the caller works on these.
    Pull();
    return false;
  }
  return true;
}

Client::Client(const std::string& url, int64_t window) {
  Check(natsConnection_ConnectTo(&connection_, url.c_str()), "connecting");
  jsOptions options;
  jsOptions_Init(&options);
  options.PublishAsync.MaxPending = window;
  options.PublishAsync.StallWait = kStallWaitMs;
  options.PublishAsync.ErrHandler = OnRefused;
  Check(natsConnection_JetStream(&jetstream_, connection_, &options), "JetStream");
}

Client::~Client() {
  jsCtx_Destroy(jetstream_);
  natsConnection_Destroy(connection_);
}

void Client::MakeStream(const char* name, const char* subject) {
  jsStreamConfig stream;
  jsStreamConfig_Init(&stream);
  stream.Name = name;
  stream.Subjects = &subject;
  stream.SubjectsLen = 1;
  stream.Retention = js_WorkQueuePolicy;
  stream.Storage = js_FileStorage;
  Check(js_AddStream(nullptr, jetstream_, &stream, nullptr, nullptr), "making a stream");
  jsConsumerConfig consumer;
  jsConsumerConfig_Init(&consumer);
  consumer.Durable = kDurable;
  consumer.AckPolicy = js_AckExplicit;
  Check(js_AddConsumer(nullptr, jetstream_, name, &consumer, nullptr, nullptr),
        "making a consumer");
}

Consumer Client::Consume(const char* stream, int batch) {
  return Consumer(connection_, stream, batch);
}

void Client::Publish(const char* subject, absl::string_view data) {
  Check(js_PublishAsync(jetstream_, subject, data.data(), static_cast<int>(data.size()), nullptr),
        "publishing");
}

void Client::AwaitStored() {
  jsPubOptions options;
  jsPubOptions_Init(&options);
  options.MaxWait = kStallWaitMs;
  Check(js_PublishAsyncComplete(jetstream_, &options), "awaiting acknowledgements");
}

}  // namespace rival
