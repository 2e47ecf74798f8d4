// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/gateway.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "services/queue-gateway/http/limits.h"
#include "services/queue-gateway/operations/acl.h"
#include "services/queue-gateway/operations/cors.h"
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/operations/put_message.h"
#include "services/queue-gateway/operations/service_properties.h"
#include "services/queue-gateway/protocol/error.h"
#include "services/queue-gateway/protocol/route.h"
#include "services/queue-gateway/protocol/target.h"
#include "services/queue-gateway/protocol/version.h"

namespace muster::queue_gateway {
namespace {

using auth::Operation;
using protocol::ErrorCode;
using protocol::ReplyContext;

std::string HeaderText(const http::Request& request, absl::string_view name) {
  return std::string(http::HeaderOf(request.headers, name).value_or(""));
}

// What the request itself says; "": nothing.
std::string VersionOf(const http::Request& request, const protocol::Target& target) {
  std::string version = HeaderText(request, "x-ms-version");
  if (version.empty()) version = std::string(target.Parameter("api-version").value_or(""));
  return version;
}

auth::SignedRequest Signed(const operations::Call& call) {
  auth::SignedRequest request;
  request.method = call.http.method;
  request.raw_path = call.target.raw_path;
  request.query = call.target.query;
  for (const auto& [name, value] : call.http.headers) {
    request.headers.emplace_back(absl::AsciiStrToLower(name), value);
  }
  request.account = call.resource.account;
  request.is_secondary = call.resource.is_secondary;
  request.queue = call.resource.queue;
  request.peer_ip = call.http.peer_ip;
  request.is_https = call.http.is_https;
  return request;
}

http::Reply Refused(const auth::Verdict& verdict, const ReplyContext& context) {
  protocol::Error error = *verdict.code;
  if (!verdict.detail.empty()) {
    error.details.emplace_back("AuthenticationErrorDetail", verdict.detail);
  }
  http::Reply reply = ErrorReply(error, context);
  reply.status = verdict.http_status;
  if (!verdict.www_authenticate.empty()) {
    reply.headers.emplace_back("WWW-Authenticate", verdict.www_authenticate);
  }
  return reply;
}

http::Reply Failed(const protocol::Error& error, const operations::Call& call,
                   const ReplyContext& context) {
  http::Reply reply = ErrorReply(error, context);
  if (error.code == ErrorCode::kUnsupportedHttpVerb) {
    reply.headers.emplace_back(
        "Allow", protocol::AllowedVerbs(call.http.method, call.resource, call.target));
  }
  return reply;
}

http::Reply Busy(absl::Duration wait, const ReplyContext& context) {
  http::Reply reply = ErrorReply(protocol::Error(ErrorCode::kServerBusy), context);
  reply.headers.emplace_back("Retry-After", absl::StrCat(throttle::RetryAfterSeconds(wait)));
  return reply;
}

absl::StatusOr<std::vector<operations::Deleted>> ToDeleted(
    absl::StatusOr<std::vector<absl::Status>> all) {
  MUSTER_RETURN_IF_ERROR(all.status());
  std::vector<operations::Deleted> deleted;
  deleted.reserve(all->size());
  for (absl::Status& one : *all) deleted.push_back({absl::OkStatus(), std::move(one)});
  // Not one that another call has at the moment: the engine takes no writes, and is not asked
  // again.
  const bool is_refused = std::all_of(deleted.begin(), deleted.end(), [](const auto& one) {
    return absl::IsUnavailable(one.message);
  });
  if (is_refused && deleted.size() > 1) return deleted.front().message;
  return deleted;
}

ErrorCode CodeOfRefusal(int status) {
  switch (status) {
    case 413:
      return ErrorCode::kRequestBodyTooLarge;
    case 431:
      return ErrorCode::kRequestHeadersTooLarge;
    case 501:
      return ErrorCode::kNotImplemented;
    case 503:
      return ErrorCode::kServerBusy;
    default:
      return ErrorCode::kInvalidInput;
  }
}

}  // namespace

Gateway::Begun Gateway::Begin(const http::Request& request) const {
  return {{protocol::NewRequestId(), protocol::kNewestVersion,
           HeaderText(request, "x-ms-client-request-id"), stores_.clock->Now()},
          stores_.clock->Monotonic(),
          kNoOperation,
          ""};
}

http::Reply Gateway::Handle(const http::Request& request) const {
  operations::Call call;
  call.http = request;
  Begun begun = Begin(call.http);
  auto admitted = Admit(&call, &begun);
  if (auto* const reply = std::get_if<http::Reply>(&admitted)) {
    return Finish(call.http, begun, std::move(*reply));
  }
  return ToReply(call, begun,
                 operations::RunOperation(std::get<Operation>(admitted), call, stores_));
}

void Gateway::Handle(http::Request request, std::shared_ptr<http::Exchange> exchange) const {
  const auto asked = std::make_shared<Asked>();
  asked->call.http = std::move(request);
  asked->exchange = std::move(exchange);
  asked->begun = Begin(asked->call.http);
  auto admitted = Admit(&asked->call, &asked->begun);
  if (auto* const reply = std::get_if<http::Reply>(&admitted)) {
    return asked->exchange->Answer(Finish(asked->call.http, asked->begun, std::move(*reply)));
  }
  const Operation operation = std::get<Operation>(admitted);
  if (const auto problem = operations::CheckPlace(operation, asked->call)) {
    return Answer(*asked, *problem);
  }
  if (operation == Operation::kPutMessage && gathers_) return AnswerPut(asked);
  if (operation == Operation::kDeleteMessage && gathers_) return AnswerDelete(asked);
  if (operation == Operation::kGetMessages && polls_ != nullptr) return AnswerWhenThere(asked);
  Answer(*asked, operations::RunOperation(operation, asked->call, stores_));
}

Gateway::Puts::Act Gateway::PutAll(queue::QueueStore* queues) {
  return [queues](absl::Span<const Puts::AsksOfQueue> asked) {
    using Answers = std::vector<absl::StatusOr<queue::PutResult>>;
    std::vector<absl::StatusOr<Answers>> answers;
    answers.reserve(asked.size());
    for (absl::StatusOr<std::vector<queue::PutResult>>& put : queues->PutEach(asked)) {
      if (put.ok()) {
        answers.emplace_back(
            Answers(std::make_move_iterator(put->begin()), std::make_move_iterator(put->end())));
      } else {
        answers.emplace_back(put.status());
      }
    }
    return answers;
  };
}

Gateway::Deletes::Act Gateway::DeleteAll(queue::QueueStore* queues) {
  return [queues](absl::Span<const Deletes::AsksOfQueue> asked) {
    std::vector<absl::StatusOr<std::vector<operations::Deleted>>> answers;
    answers.reserve(asked.size());
    for (absl::StatusOr<std::vector<absl::Status>>& all : queues->DeleteEach(asked)) {
      answers.push_back(ToDeleted(std::move(all)));
    }
    return answers;
  };
}

bool Gateway::IsStale(const Asked& asked) const {
  return stores_.clock->Monotonic() - asked.begun.at >= http::kStaleAfter &&
         asked.exchange->HasHungUp();
}

void Gateway::AnswerPut(const std::shared_ptr<const Asked>& asked) const {
  protocol::OrError<queue::NewMessage> message = operations::ReadPut(asked->call, stores_);
  if (!message.ok()) return Answer(*asked, message.error());
  const auto done = [this, asked](const absl::StatusOr<queue::PutResult>& put) {
    Answer(*asked, operations::ShowPut(put, asked->call));
  };
  puts_->Add(asked->call.queue(), *std::move(message), done,
             [this, asked] { return IsStale(*asked); });
}

void Gateway::AnswerDelete(const std::shared_ptr<const Asked>& asked) const {
  protocol::OrError<queue::Receipt> receipt = operations::ReadDelete(asked->call, stores_);
  if (!receipt.ok()) return Answer(*asked, receipt.error());
  const auto done = [this, asked](const operations::Deleted& deleted) {
    const bool is_over = !deleted.call.ok() || deleted.message.ok();
    if (is_over) return Answer(*asked, operations::ShowDelete(deleted, asked->call, stores_));
    // Others wait for this thread, and what follows asks the store, or tries again for a while.
    late_->Add([this, asked, deleted] {
      Answer(*asked, absl::IsUnavailable(deleted.message)
                         ? operations::DeleteMessage(asked->call, stores_)
                         : operations::ShowDelete(deleted, asked->call, stores_));
    });
  };
  deletes_->Add(asked->call.queue(), *std::move(receipt), done,
                [this, asked] { return IsStale(*asked); });
}

void Gateway::AnswerWhenThere(const std::shared_ptr<const Asked>& asked) const {
  const protocol::OrError<operations::Get> read = operations::ReadGet(asked->call, stores_);
  if (!read.ok()) return Answer(*asked, read.error());
  const operations::Get& get = *read;
  auto take = [this, get] { return operations::TakeMessages(get, stores_); };
  auto done = [this, asked](const absl::StatusOr<std::vector<queue::Message>>& messages) {
    Answer(*asked, messages.ok()
                       ? operations::Outcome(operations::ShowMessages(*messages, asked->call))
                       : operations::Outcome(protocol::FromStore(messages.status())));
  };
  const bool may_wait = get.settings.long_poll > absl::ZeroDuration();
  // Those that wait come first.
  if (!may_wait || !polls_->HasWaiters(get.queue)) {
    const auto messages = take();
    if (!may_wait || !messages.ok() || !messages->empty()) return done(messages);
  }
  const auto ticket =
      polls_->Wait(get.queue, get.settings.long_poll, std::move(take), std::move(done));
  if (ticket != 0) {
    asked->exchange->WatchPeer([polls = polls_, ticket] { polls->Abandon(ticket); });
  }
}

http::Reply Gateway::ToReply(const operations::Call& call, const Begun& begun,
                             operations::Outcome outcome) const {
  http::Reply reply =
      outcome.ok() ? *std::move(outcome) : Failed(outcome.error(), call, begun.context);
  return Finish(call.http, begun, std::move(reply));
}

http::Reply Gateway::Finish(const http::Request& request, const Begun& begun,
                            http::Reply reply) const {
  protocol::AddStandardHeaders(begun.context, &reply);
  if (!begun.account.empty()) AddCorsHeaders(request, begun.account, &reply);
  metrics_.Answered(begun.operation, reply, stores_.clock->Monotonic() - begun.at);
  return reply;
}

http::Reply Gateway::Refuse(int status, const http::Request& head) const {
  Begun begun = Begin(head);
  const auto target = protocol::ParseTarget(head.target);
  const std::string version = VersionOf(head, target.value_or(protocol::Target()));
  if (protocol::IsVersion(version)) begun.context.version = version;
  protocol::Error error(CodeOfRefusal(status));
  if (error.code == ErrorCode::kRequestBodyTooLarge) {
    error.details.emplace_back("MaxLimit", absl::StrCat(http::kMaxBodyBytes));
  }
  return Finish(head, begun, ErrorReply(error, begun.context));
}

std::variant<Operation, http::Reply> Gateway::Admit(operations::Call* admitted,
                                                    Begun* begun) const {
  ReplyContext* const context = &begun->context;
  operations::Call& call = *admitted;
  const http::Request& request = call.http;
  std::optional<protocol::Target> target = protocol::ParseTarget(request.target);
  const bool is_target = target.has_value();
  if (is_target) call.target = *std::move(target);
  call.version = VersionOf(request, call.target);
  const bool is_version = protocol::IsVersion(call.version);
  if (is_version) context->version = call.version;
  if (!is_target) return ErrorReply(protocol::Error(ErrorCode::kInvalidUri), *context);
  const auto is_account = [this](const std::string& name) {
    return authenticator_->FindAccount(name) != nullptr;
  };
  auto resource = protocol::FindResource(HeaderText(request, "host"), call.target, is_account);
  if (!resource.ok()) return ErrorReply(resource.error(), *context);
  call.resource = *std::move(resource);
  const std::string account = is_account(call.resource.account) ? call.resource.account : "";
  if (request.method == "OPTIONS") {
    begun->operation = kPreflightOperation;
    return AnswerPreflight(request, account, *context);
  }
  begun->account = account;
  if (!call.version.empty() && !is_version) {
    const protocol::Error error(ErrorCode::kInvalidHeaderValue,
                                {{"HeaderName", "x-ms-version"}, {"HeaderValue", call.version}});
    return ErrorReply(error, *context);
  }
  const auto operation = protocol::FindOperation(request.method, call.resource, call.target);
  if (!operation.ok()) return Failed(operation.error(), call, *context);
  begun->operation = NameOf(*operation);

  const auth::Verdict verdict = Authenticate(call, *operation);
  if (!verdict.ok()) {
    metrics_.Refused(verdict);
    return Refused(verdict, *context);
  }
  if (call.version.empty()) call.version = verdict.service_version;
  if (call.version.empty()) call.version = protocol::kFirstVersion;
  context->version = call.version;
  if (*operation == Operation::kGetUserDelegationKey) {
    call.caller = verdict.caller;
    call.account = authenticator_->FindAccount(call.resource.account);
  }
  const absl::Duration wait = throttle_->Admit(call.resource.account, call.resource.queue);
  if (wait > absl::ZeroDuration()) {
    metrics_.Throttled(call.queue());
    return Busy(wait, *context);
  }
  return *operation;
}

auth::Verdict Gateway::Authenticate(const operations::Call& call, auth::Operation operation) const {
  return authenticator_->Check(Signed(call), operation, [this, &call] {
    return operations::ReadAcl(call.queue(), stores_);
  });
}

http::Reply Gateway::AnswerPreflight(const http::Request& request, const std::string& account,
                                     const ReplyContext& context) const {
  absl::StatusOr<operations::ServiceProperties> properties = operations::ServiceProperties();
  // Anyone may ask, with any path: what is no account costs the store nothing, and is no error.
  if (!account.empty()) properties = operations::ReadProperties(account, stores_);
  if (!properties.ok()) return ErrorReply(protocol::FromStore(properties.status()), context);
  operations::Outcome outcome = operations::Preflight(request, *properties);
  return outcome.ok() ? *std::move(outcome) : ErrorReply(outcome.error(), context);
}

// Pages are few: the rules are read from the store each time.
void Gateway::AddCorsHeaders(const http::Request& request, const std::string& account,
                             http::Reply* reply) const {
  if (!http::HeaderOf(request.headers, "origin").has_value()) return;
  const auto properties = operations::ReadProperties(account, stores_);
  if (properties.ok()) return operations::AddCorsHeaders(request, *properties, reply);
  base::LogUnlessOk(base::kError, "the CORS rules cannot be read", properties.status());
}

}  // namespace muster::queue_gateway
