// SPDX-License-Identifier: Apache-2.0

// A gRPC handler server for tests, whose side of each call is a lambda.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "muster/handler/grpc/grpc_handler.h"
#include "muster/handler/sample_item.h"
#include "muster/rpc/server.h"
#include "muster/v1/handler_service.grpc.pb.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"

namespace muster::handler::grpc {

// Returns the answer that counts everything, with a row {k: key, m: 1}.
inline v1::HandlerAnswer OkAnswer(const std::string& item, const std::string& key = "k") {
  v1::HandlerAnswer answer;
  answer.set_item(item);
  v1::GroupPartial& group = *answer.mutable_ok()->add_groups();
  group.set_group("g");
  v1::PartialRow& row = *group.add_rows();
  row.add_keys(key);
  row.add_measures("1");
  return answer;
}

// The server's side of one call.
class Talk {
 public:
  using Stream = ::grpc::ServerReaderWriter<v1::WorkResponse, v1::WorkRequest>;

  Talk(int number, ::grpc::ServerContext* context, Stream* stream)
      : number_(number), context_(context), stream_(stream) {}

  int number() const { return number_; }  // number of the call, from 1
  bool cancelled() const { return context_->IsCancelled(); }

  // Returns the next request; nullopt when the processor has ended its side, or the call is
  // cancelled.
  std::optional<v1::WorkRequest> Next() {
    v1::WorkRequest request;
    if (!stream_->Read(&request)) return std::nullopt;
    return request;
  }
  v1::Hello Hello() { return Next().value_or(v1::WorkRequest()).hello(); }
  std::string Item() { return Next().value_or(v1::WorkRequest()).item().item(); }

  void Ready(int concurrency = 1, const std::string& version = "1") {
    v1::WorkResponse response;
    response.mutable_ready()->set_version(version);
    response.mutable_ready()->set_concurrency(concurrency);
    stream_->Write(response);
  }
  void Say(const v1::WorkResponse& response) { stream_->Write(response); }
  void Answer(v1::HandlerAnswer answer) {
    v1::WorkResponse response;
    *response.mutable_answer() = std::move(answer);
    stream_->Write(response);
  }

  // Sends Hello and Ready.
  void Begin(int concurrency = 1) {
    Hello();
    Ready(concurrency);
  }
  // Answers all items until the requests end.
  ::grpc::Status ServeAll() {
    while (std::optional<v1::WorkRequest> request = Next()) {
      if (request->has_item()) Answer(OkAnswer(request->item().item(), absl::StrCat(number_)));
    }
    return ::grpc::Status::OK;
  }
  // Waits until the call is over.
  void AwaitEnd() {
    while (Next().has_value()) {
    }
  }

 private:
  const int number_;
  ::grpc::ServerContext* const context_;
  Stream* const stream_;
};

class TestHandlers final : public v1::HandlerService::Service {
 public:
  using Side = std::function<::grpc::Status(Talk&)>;

  explicit TestHandlers(Side side) : side_(std::move(side)) {}

  ::grpc::Status Work(::grpc::ServerContext* context, Talk::Stream* stream) override {
    int number = 0;
    {
      base::MutexLock lock(&mu_);
      number = ++calls_;
    }
    Talk talk(number, context, stream);
    return side_(talk);
  }

  int calls() {
    base::MutexLock lock(&mu_);
    return calls_;
  }

 private:
  const Side side_;
  base::Mutex mu_;
  int calls_ ABSL_GUARDED_BY(mu_) = 0;
};

class GrpcHandlerTest : public ::testing::Test {
 protected:
  GrpcHandlerTest() {
    options_.first_hold_back = absl::ZeroDuration();
    options_.processor = "processor-1";
  }
  ~GrpcHandlerTest() override {
    handler_.reset();
    factory_ = nullptr;
  }

  void Serve(TestHandlers::Side side) {
    service_ = std::make_unique<TestHandlers>(std::move(side));
    rpc::ServerOptions options;
    options.addresses = {"localhost:0"};
    server_ =
        rpc::Server::Start(options, {{v1::HandlerService::service_full_name(), service_.get()}})
            .value();
    options_.address = server_->addresses().front();
  }
  void UseFakeClock() { options_.clock = &clock_; }

  // Waits until the handler sleeps towards exactly this time from now.
  void AwaitAlarmIn(absl::Duration delay) {
    while (clock_.NextDeadline() != clock_.Monotonic() + delay) base::LetOthersRun();
  }

  std::unique_ptr<handler::Handler> MakeHandler() {
    if (factory_ == nullptr) factory_ = GrpcHandlerFactory(options_);
    return factory_(schema_).value();
  }

  handler::ItemContext Context(uint32_t index = 7) const {
    handler::ItemContext context;
    context.batch = 1;
    context.index = index;
    context.stop_token = stop_.get_token();
    return context;
  }

  // Processes items one after the other, with one handler.
  handler::Outcome Process(uint32_t index = 7,
                           std::vector<std::vector<std::string>> rows = {{"a"}, {"b"}}) {
    if (handler_ == nullptr) handler_ = MakeHandler();
    return ProcessWith(*handler_, handler::SampleItem(std::move(rows), Context(index)));
  }
  // Processes an item on another thread, with its own handler.
  std::future<handler::Outcome> ProcessBeside(uint32_t index = 7) {
    return std::async(std::launch::async, [this, index, own = MakeHandler()] {
      return ProcessWith(*own, handler::SampleItem({{"a"}, {"b"}}, Context(index)));
    });
  }
  handler::Outcome ProcessWith(handler::Handler& handler, const handler::SampleItem& item) {
    handler::Results results(&schema_, item.size());
    handler::Outcome outcome = handler.Process(item.get(), results);
    base::MutexLock lock(&mu_);
    counted_ = results.counted();
    rejections_ = results.rejections();
    keys_.clear();
    for (const auto& partial : results.TakePartials()) {
      for (const auto& row : partial.rows) keys_.push_back(row.keys[0]);
    }
    return outcome;
  }

  // The results of the last item.
  int64_t counted() {
    base::MutexLock lock(&mu_);
    return counted_;
  }
  std::vector<std::string> keys() {
    base::MutexLock lock(&mu_);
    return keys_;
  }
  std::vector<handler::Rejection> rejections() {
    base::MutexLock lock(&mu_);
    return rejections_;
  }

  const handler::JobSchema schema_{
      .job = "bills",
      .revision = "abc",
      .columns = {"amount"},
      .groups = {{"g", {"k"}, {{"m", handler::MeasureSchema::Type::kInt, 0}}}}};
  base::FakeClock clock_;
  std::stop_source stop_;
  GrpcOptions options_;
  std::unique_ptr<TestHandlers> service_;
  std::unique_ptr<rpc::Server> server_;  // before its service
  handler::HandlerFactory factory_;
  std::unique_ptr<handler::Handler> handler_;

  base::Mutex mu_;
  int64_t counted_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<std::string> keys_ ABSL_GUARDED_BY(mu_);
  std::vector<handler::Rejection> rejections_ ABSL_GUARDED_BY(mu_);
};

using Kind = handler::Outcome::Kind;

}  // namespace muster::handler::grpc
