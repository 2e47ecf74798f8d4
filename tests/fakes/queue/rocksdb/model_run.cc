// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/queue/rocksdb/model_run.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster::queue::rocksdb {

ModelStore::ModelStore() : dir_(root_ / "0") {
  env_.sync_for_real = false;
  Open(false);
}

ModelStore::~ModelStore() = default;

void ModelStore::Reopen(Ending ending, int kept_percent, bool holders_in_process) {
  const std::string next = root_ / absl::StrCat(++reopens_);
  if (ending == Ending::kKill) std::filesystem::copy(dir_, next);
  if (ending == Ending::kPowerCut) env_.CopyAsAfterPowerCut(dir_, next, kept_percent);
  // Late writes of the old store go to a directory that is not used any more.
  store_.reset();
  if (ending != Ending::kOrderly) dir_ = next;
  env_.fail_appends = env_.fail_syncs = false;
  Open(holders_in_process);
}

void ModelStore::Open(bool holders_in_process) {
  Options options;
  options.clock = &clock_;
  options.env = &env_;
  options.holders_in_process = holders_in_process;
  auto store = RocksDbQueueStore::Open(dir_, options);
  if (!store.ok()) RC_FAIL(absl::StrCat("the store does not open: ", store.status().ToString()));
  store_ = *std::move(store);
}

namespace {

template <typename T>
using Each = absl::StatusOr<std::vector<T>>;

std::vector<queue::Receipt> EngineReceipts(const auto& chosen) {
  std::vector<queue::Receipt> receipts;
  for (const auto& given : chosen) receipts.push_back(given.engine);
  return receipts;
}

std::vector<queue::Receipt> ModelReceipts(const auto& chosen) {
  std::vector<queue::Receipt> receipts;
  for (const auto& given : chosen) receipts.push_back(given.model);
  return receipts;
}

}  // namespace

template <typename Answer, typename VerbOfModel>
void ModelRun::Check(const Answer& answer, const VerbOfModel& verb, Answer* expected) {
  ++call_;
  const std::string given = Show(&names_, start_, Show::kEngine)(answer);
  std::string rejected;
  std::vector<World> next;
  for (World& world : worlds_) {
    world.model.At(store_->clock()->Now(), call_);
    World done = world;
    const Answer own = verb(&done.model);
    const std::string text = Show(&names_, start_, Show::kModel)(own);
    if (!Split(given, text, std::move(world), std::move(done), &next)) {
      absl::StrAppend(&rejected, "\n  model:  ", text);
    } else if (expected != nullptr) {
      *expected = own;
    }
  }
  if (next.empty()) {
    RC_FAIL(absl::StrCat("call ", call_,
                         " answers what no model of the queue does\n  engine: ", given, rejected));
  }
  worlds_ = std::move(next);
  DropEqualWorlds();
}

ModelRun::ModelRun(ModelStore* store, queue::QueueId queue)
    : store_(store), queue_(std::move(queue)), start_(store->clock()->Now()), worlds_(1) {
  Command create;
  create.verb = Verb::kCreate;
  Do(create);
}

void ModelRun::Do(const Command& command) {
  if (command.verb == Verb::kReopen) return Reopen(command);
  if (command.disk == Disk::kWorks || !store_->CanReopen()) return Run(command);
  disk_ = command.disk;
  store_->env()->fail_appends = disk_ == Disk::kRefusesWrites;
  store_->env()->fail_syncs = disk_ == Disk::kRefusesSyncs;
  Run(command);
  disk_ = Disk::kWorks;
  Reopen(command);
}

void ModelRun::Run(const Command& command) {
  switch (command.verb) {
    case Verb::kPass:
      return store_->clock()->Advance(command.wait);
    case Verb::kPut:
      return Put(command);
    case Verb::kReceive:
      return Receive(command.count, std::max(command.wait, absl::Milliseconds(1)));
    case Verb::kPeek:
      return Peek(command.count);
    case Verb::kDelete:
      return Delete(command);
    case Verb::kBeginAttempt:
      return BeginAttempt(command);
    case Verb::kUpdate:
      return Update(command);
    case Verb::kDeadLetter:
      return DeadLetter(command);
    case Verb::kListPoison:
      return ListPoison();
    case Verb::kRedrive:
      return Redrive(command);
    default:
      return RunOnQueue(command);
  }
}

void ModelRun::RunOnQueue(const Command& command) {
  const queue::Metadata metadata = {{"shift", absl::StrCat(command.which % 2)}};
  queue::QueueStore* const engine = store_->store();
  switch (command.verb) {
    case Verb::kStats:
      return Check(engine->Stats(queue_), [](Model* model) { return model->Stats(); });
    case Verb::kPurgePoison:
      return Check(engine->PurgePoison(queue_), [](Model* model) { return model->PurgePoison(); });
    case Verb::kClear:
      return Check(engine->Clear(queue_), [](Model* model) { return model->Clear(); });
    case Verb::kSetMetadata:
      return Check(engine->SetMetadata(queue_, metadata),
                   [&](Model* model) { return model->SetMetadata(metadata); });
    case Verb::kCreate:
      return Check(engine->CreateQueue(queue_, metadata),
                   [&](Model* model) { return model->Create(metadata); });
    case Verb::kDestroy:
      return Destroy();
    default:
      RC_FAIL("not a verb of a queue");
  }
}

bool ModelRun::Split(const std::string& given, const std::string& expected, World before,
                     World after, std::vector<World>* next) const {
  if (after.model.must_be_durable() && disk_ == Disk::kWorks) {
    after.earlier.clear();
  } else if (!(after.model == before.model)) {
    after.earlier.push_back(before.model);
  }
  const bool unknown = disk_ != Disk::kWorks && absl::StrContains(given, "UNAVAILABLE");
  if (!unknown && given != expected) return false;
  next->push_back(std::move(after));
  // A call that is refused as a whole writes only a counter, and no error is reported if that write
  // fails.
  const bool refused = disk_ != Disk::kWorks && !absl::StrContains(given, "ok");
  if (unknown || refused) next->push_back(std::move(before));
  return true;
}

void ModelRun::DropEqualWorlds() {
  std::vector<World> different;
  for (World& world : worlds_) {
    const auto is_same = [&](const World& other) {
      return other.model == world.model && other.earlier == world.earlier;
    };
    if (std::none_of(different.begin(), different.end(), is_same)) {
      different.push_back(std::move(world));
    }
  }
  worlds_ = std::move(different);
}

void ModelRun::Put(const Command& command) {
  std::vector<queue::NewMessage> messages(command.count);
  for (queue::NewMessage& message : messages) {
    message.body = NewText();
    message.delay = command.which < 4 ? absl::ZeroDuration() : command.wait;
    message.ttl = std::max(command.ttl, message.delay + absl::Seconds(1));
    if (command.dedup > 0) {
      message.dedup_id = absl::StrCat("id", (command.dedup + (&message - messages.data())) % 3);
    }
  }
  const Each<queue::PutResult> put = store_->store()->Put(queue_, messages);
  for (size_t i = 0; put.ok() && i < put->size(); ++i) {
    if (!(*put)[i].duplicate) names_.Bind((*put)[i].message_id, messages[i].body);
  }
  Each<queue::PutResult> expected;
  Check(
      put, [&](Model* model) { return model->Put(messages); }, &expected);
  for (size_t i = 0; put.ok() && i < put->size(); ++i) {
    if (!(*put)[i].duplicate) Remember((*put)[i].receipt, (*expected)[i].receipt);
  }
}

void ModelRun::Receive(int count, absl::Duration visibility) {
  const queue::ReceiveOptions options{count, visibility};
  const Each<queue::Message> received = store_->store()->Receive(queue_, options);
  for (size_t i = 0; received.ok() && i < received->size(); ++i) {
    names_.Bind((*received)[i].message_id, (*received)[i].body);
  }
  Each<queue::Message> expected;
  Check(
      received, [&](Model* model) { return model->Receive(options); }, &expected);
  for (size_t i = 0; received.ok() && i < received->size(); ++i) {
    Remember((*received)[i].receipt, (*expected)[i].receipt);
  }
}

void ModelRun::Peek(int count) {
  const Each<queue::Message> shown = store_->store()->Peek(queue_, count);
  for (size_t i = 0; shown.ok() && i < shown->size(); ++i) {
    names_.Bind((*shown)[i].message_id, (*shown)[i].body);
  }
  Check(shown, [&](Model* model) { return model->Peek(count); });
}

void ModelRun::Delete(const Command& command) {
  const std::vector<Given> chosen = Choose(command);
  Check(store_->store()->Delete(queue_, EngineReceipts(chosen)),
        [&](Model* model) { return model->Delete(ModelReceipts(chosen)); });
}

void ModelRun::BeginAttempt(const Command& command) {
  const std::vector<Given> chosen = Choose(command);
  Check(store_->store()->BeginAttempt(queue_, EngineReceipts(chosen)),
        [&](Model* model) { return model->BeginAttempt(ModelReceipts(chosen)); });
}

void ModelRun::Update(const Command& command) {
  const std::vector<Given> chosen = Choose(command);
  std::vector<queue::UpdateRequest> requests, own;
  for (const Given& given : chosen) {
    queue::UpdateRequest& request = requests.emplace_back();
    request.receipt = given.engine;
    request.visibility = command.wait;
    request.attempt_ended = command.attempt_ended;
    request.refund_attempt = command.attempt_ended && command.dedup > 0;
    if (command.count == 2) request.body = NewText();
    own.push_back(request);
    own.back().receipt = given.model;
  }
  const auto updated = store_->store()->Update(queue_, requests);
  Each<absl::StatusOr<queue::UpdateResult>> expected;
  Check(
      updated, [&](Model* model) { return model->Update(own); }, &expected);
  for (size_t i = 0; updated.ok() && i < updated->size(); ++i) {
    if ((*updated)[i].ok()) Remember((*updated)[i]->receipt, (*expected)[i]->receipt);
  }
}

void ModelRun::DeadLetter(const Command& command) {
  std::vector<queue::DeadLetterRequest> requests, own;
  for (const Given& given : Choose(command)) {
    queue::DeadLetterRequest& request = requests.emplace_back();
    request = {given.engine, {NewText(), command.count, "holder", absl::Time()}};
    own.push_back({given.model, request.cause});
  }
  Check(store_->store()->DeadLetter(queue_, requests),
        [&](Model* model) { return model->DeadLetter(own); });
}

// Lists in pages of two.
void ModelRun::ListPoison() {
  Each<queue::PoisonMessage> all = std::vector<queue::PoisonMessage>();
  for (size_t before = 0; all.ok(); before = all->size()) {
    const std::string after = all->empty() ? "" : all->back().message_id;
    const auto page = store_->store()->ListPoison(queue_, after, 2);
    if (!page.ok()) {
      all = page.status();
      break;
    }
    all->insert(all->end(), page->begin(), page->end());
    if (all->size() == before) break;
  }
  for (size_t i = 0; all.ok() && i < all->size(); ++i) {
    names_.Bind((*all)[i].message_id, (*all)[i].body);
  }
  Check(all, [](Model* model) { return model->ListPoison(); });
}

// Redrives the oldest messages, or the messages of the receipts that `which` selects; not all of
// them are poison.
void ModelRun::Redrive(const Command& command) {
  std::vector<std::string> ids, own;
  if (command.attempt_ended) {
    for (const Given& given : Choose(command)) {
      own.push_back(std::vector<std::string>(absl::StrSplit(given.model, '#')).front());
      ids.push_back(names_.IdOf(own.back()));
    }
  }
  Check(store_->store()->Redrive(queue_, ids, command.count),
        [&](Model* model) { return model->Redrive(own, command.count); });
}

void ModelRun::Destroy() {
  Check(store_->store()->DeleteQueue(queue_), [](Model* model) { return model->Destroy(); });
  // A later queue of this name may answer for these receipts by the sequences that it has assigned
  // by then.
  receipts_.clear();
}

void ModelRun::Reopen(const Command& command) {
  if (!store_->CanReopen()) return;
  store_->Reopen(command.ending, command.kept_percent, command.holders_in_process);
  std::vector<World> next;
  for (World& world : worlds_) {
    if (command.ending == Ending::kPowerCut) {
      for (Model& model : world.earlier) next.push_back({std::move(model), {}});
    }
    next.push_back({std::move(world.model), {}});
  }
  for (World& world : next) {
    world.model.At(store_->clock()->Now(), call_);
    world.model.Reopen(command.holders_in_process);
  }
  worlds_ = std::move(next);
  DropEqualWorlds();
}

void ModelRun::LookAtEverything() {
  Check(store_->store()->Stats(queue_), [](Model* model) { return model->Stats(); });
  Check(store_->store()->GetMetadata(queue_), [](Model* model) { return model->GetMetadata(); });
  Peek(32);
  ListPoison();
}

void ModelRun::Finish() {
  LookAtEverything();
  store_->clock()->Advance(absl::Hours(1));
  LookAtEverything();
  // Checks the messages behind the first 32, too.
  for (int i = 0; i < 4; ++i) Receive(32, absl::Minutes(1));
  LookAtEverything();
  Destroy();
}

std::vector<ModelRun::Given> ModelRun::Choose(const Command& command) const {
  std::vector<Given> chosen;
  std::set<std::string> messages;
  for (int i = 0; i < command.count; ++i) {
    const size_t back = static_cast<size_t>(command.which + i) + 1;
    if (back > receipts_.size()) break;
    const Given& given = receipts_[receipts_.size() - back];
    const std::vector<std::string> parts = absl::StrSplit(given.model, '#');
    if (messages.insert(parts.front()).second) chosen.push_back(given);
  }
  return chosen;
}

void ModelRun::Remember(const queue::Receipt& engine, const queue::Receipt& model) {
  receipts_.push_back({engine, model});
}

std::string ModelRun::NewText() { return absl::StrCat("m", texts_++); }

}  // namespace muster::queue::rocksdb
