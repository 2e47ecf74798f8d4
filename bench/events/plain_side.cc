// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/events/side.h"
#include "nats/nats.h"

namespace event_bench {
namespace {

constexpr int64_t kPatienceMs = 30'000;
// Of what has arrived and is not read yet; the ordered consumer's flow control keeps it below.
constexpr int kPendingMessages = 1 << 20;
constexpr int kPendingBytes = 512 << 20;

void CheckNats(natsStatus status, absl::string_view what) {
  if (status != NATS_OK) Die(absl::StrCat(what, ": ", natsStatus_GetText(status)));
}

void OnRefused(jsCtx*, jsPubAckErr* error, void*) {
  Die(absl::StrCat("an event was not stored: ", error->ErrText));
}

// A connection, as a process has one.
class NatsProcess {
 public:
  explicit NatsProcess(const std::string& url) {
    CheckNats(natsConnection_ConnectTo(&connection_, url.c_str()), "connecting");
  }
  ~NatsProcess() { natsConnection_Destroy(connection_); }
  NatsProcess(const NatsProcess&) = delete;
  NatsProcess& operator=(const NatsProcess&) = delete;

  // One for each thread: completion of asynchronous publishes is a context's.
  jsCtx* MakeContext() const {
    jsOptions options;
    jsOptions_Init(&options);
    options.PublishAsync.ErrHandler = OnRefused;
    jsCtx* context = nullptr;
    CheckNats(natsConnection_JetStream(&context, connection_, &options), "a context");
    return context;
  }

 private:
  natsConnection* connection_ = nullptr;
};

class Plain final : public Side {
 public:
  Plain(const std::string& url, bool is_guarded) : is_guarded_(is_guarded), producers_(url) {
    for (int i = 0; i < kGroups; ++i) groups_.push_back(std::make_unique<NatsProcess>(url));
  }

  void Make(int round) override {
    round_ = round;
    jsCtx* const context = producers_.MakeContext();
    for (int i = 0; i < kProducers; ++i) {
      const std::string name = NameOf(i), subject = SubjectOf(i);
      const char* subjects[] = {subject.c_str()};
      jsStreamConfig config;
      jsStreamConfig_Init(&config);
      config.Name = name.c_str();
      config.Subjects = subjects;
      config.SubjectsLen = 1;
      CheckNats(js_AddStream(nullptr, context, &config, nullptr, nullptr), "making a stream");
    }
    jsCtx_Destroy(context);
  }

  void Remove() override {
    jsCtx* const context = producers_.MakeContext();
    for (int i = 0; i < kProducers; ++i) {
      CheckNats(js_DeleteStream(context, NameOf(i).c_str(), nullptr, nullptr), "removing a stream");
    }
    jsCtx_Destroy(context);
  }

  void Append(int producer, int64_t events, int batch) override {
    jsCtx* const context = producers_.MakeContext();
    const std::string subject = SubjectOf(producer);
    for (int64_t number = 1; number <= events; ++number) {
      const std::string body = BodyOf(number);
      if (batch == 1) {
        CheckNats(js_Publish(nullptr, context, subject.c_str(), body.data(),
                             static_cast<int>(body.size()), nullptr, nullptr),
                  "publishing");
        continue;
      }
      CheckNats(Publish(context, subject, body, number, batch), "publishing");
      if (number % batch == 0 || number == events) {
        CheckNats(js_PublishAsyncComplete(context, nullptr), "waiting for acknowledgements");
      }
    }
    jsCtx_Destroy(context);
  }

  void Read(int group, int partition, int64_t events) override {
    jsCtx* const context = groups_[static_cast<size_t>(group)]->MakeContext();
    jsSubOptions options;
    jsSubOptions_Init(&options);
    options.Ordered = true;
    natsSubscription* subscription = nullptr;
    CheckNats(js_SubscribeSync(&subscription, context, SubjectOf(partition).c_str(), nullptr,
                               &options, nullptr),
              "subscribing");
    natsSubscription_SetPendingLimits(subscription, kPendingMessages, kPendingBytes);
    for (int64_t number = 1; number <= events; ++number) {
      natsMsg* message = nullptr;
      CheckNats(natsSubscription_NextMsg(&message, subscription, kPatienceMs), "reading");
      CheckBody({natsMsg_GetData(message), static_cast<size_t>(natsMsg_GetDataLength(message))},
                number);
      natsMsg_Destroy(message);
    }
    natsSubscription_Destroy(subscription);
    jsCtx_Destroy(context);
  }

 private:
  // As muster does: each event of a batch on condition that the one before it is the last.
  natsStatus Publish(jsCtx* context, const std::string& subject, const std::string& body,
                     int64_t number, int batch) const {
    jsPubOptions options;
    jsPubOptions_Init(&options);
    const std::string id = absl::StrCat(subject, " ", number);
    const std::string before = absl::StrCat(subject, " ", number - 1);
    if (is_guarded_) options.MsgId = id.c_str();
    if (is_guarded_ && number % batch != 1) options.ExpectLastMsgId = before.c_str();
    return js_PublishAsync(context, subject.c_str(), body.data(), static_cast<int>(body.size()),
                           &options);
  }

  std::string NameOf(int partition) const { return absl::StrCat("PLAIN_", round_, "_", partition); }
  std::string SubjectOf(int partition) const {
    return absl::StrCat("plain.", round_, ".", partition);
  }

  const bool is_guarded_;
  const NatsProcess producers_;
  std::vector<std::unique_ptr<NatsProcess>> groups_;
  int round_ = 0;
};

}  // namespace

std::unique_ptr<Side> PlainSide(const std::string& url, bool is_guarded) {
  return std::make_unique<Plain>(url, is_guarded);
}

}  // namespace event_bench
