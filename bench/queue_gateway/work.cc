// SPDX-License-Identifier: Apache-2.0
#include "bench/queue_gateway/work.h"

#include <random>

#include "absl/strings/str_cat.h"

namespace muster::gateway_bench {
namespace {

// More bodies than fit into a cache, so that no side gains by having seen one before.
constexpr int kBodies = 4096;

std::string QueueOf(const Scale& scale, int64_t number) {
  return absl::StrCat("/", scale.prefix, "-", number % scale.queues);
}

// The texts of all elements of that name.
std::vector<std::string> All(absl::string_view document, absl::string_view name) {
  const std::string begin = absl::StrCat("<", name, ">");
  const std::string end = absl::StrCat("</", name, ">");
  std::vector<std::string> texts;
  size_t at = 0;
  while ((at = document.find(begin, at)) != absl::string_view::npos) {
    at += begin.size();
    texts.emplace_back(document.substr(at, document.find(end, at) - at));
  }
  return texts;
}

void Expect(const Reply& reply, int status) {
  if (reply.status != status) {
    Die(absl::StrCat("status ", reply.status, " instead of ", status, ": ", reply.body));
  }
}

}  // namespace

std::optional<Request> CreateWork::Begin(int) {
  if (begun_ == scale_.queues) return std::nullopt;
  return Request{"PUT", QueueOf(scale_, begun_++), {}, ""};
}

void CreateWork::OnReply(int, const Reply& reply) {
  if (reply.status != 204) Expect(reply, 201);
  ++done_;
}

PutWork::PutWork(const Scale& scale) : scale_(scale) {
  constexpr absl::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::mt19937_64 noise(1);  // NOLINT(cert-msc51-cpp): the same bodies in each run
  for (int i = 0; i < kBodies; ++i) {
    std::string text(static_cast<size_t>(scale.text_bytes), '\0');
    for (char& c : text) c = kLetters[noise() % kLetters.size()];
    bodies_.push_back(
        absl::StrCat("<QueueMessage><MessageText>", text, "</MessageText></QueueMessage>"));
  }
}

std::optional<Request> PutWork::Begin(int) {
  if (begun_ == scale_.messages) return std::nullopt;
  const int64_t number = begun_++;
  return Request{"POST",
                 absl::StrCat(QueueOf(scale_, number), "/messages"),
                 {},
                 bodies_[static_cast<size_t>(number % kBodies)]};
}

void PutWork::OnReply(int, const Reply& reply) {
  Expect(reply, 201);
  ++done_;
}

TakeWork::TakeWork(const Scale& scale)
    : scale_(scale), takers_(static_cast<size_t>(scale.connections)) {}

std::optional<Request> TakeWork::Begin(int connection) {
  if (begun_ >= scale_.messages) return std::nullopt;
  Taker& taker = takers_[static_cast<size_t>(connection)];
  begun_ += scale_.get;
  taker.queue = absl::StrCat(QueueOf(scale_, gets_++), "/messages");
  taker.is_deleting = false;
  // No lease ends while the load runs.
  return Request{"GET",
                 taker.queue,
                 {{"numofmessages", absl::StrCat(scale_.get)}, {"visibilitytimeout", "3600"}},
                 ""};
}

std::optional<Request> TakeWork::GoOn(int connection) {
  Taker& taker = takers_[static_cast<size_t>(connection)];
  if (taker.held.empty()) return std::nullopt;
  taker.is_deleting = true;
  Held held = std::move(taker.held.back());
  taker.held.pop_back();
  return Request{"DELETE", std::move(held.path), {{"popreceipt", std::move(held.receipt)}}, ""};
}

void TakeWork::OnReply(int connection, const Reply& reply) {
  Taker& taker = takers_[static_cast<size_t>(connection)];
  if (taker.is_deleting) {
    Expect(reply, 204);
    ++done_;
    return;
  }
  Expect(reply, 200);
  const std::vector<std::string> ids = All(reply.body, "MessageId");
  const std::vector<std::string> receipts = All(reply.body, "PopReceipt");
  if (ids.empty() || ids.size() != receipts.size()) Die("a get had no messages");
  if (All(reply.body, "MessageText").front().size() != static_cast<size_t>(scale_.text_bytes)) {
    Die("a message came back with another length");
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    taker.held.push_back({absl::StrCat(taker.queue, "/", ids[i]), receipts[i]});
  }
}

}  // namespace muster::gateway_bench
