// SPDX-License-Identifier: Apache-2.0

// Random calls, held against a model that keeps all events in memory.
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/conformance/stream/event_stream_conformance.h"
#include "tests/fakes/base/test_seed.h"

namespace muster::stream::conformance {

bool LinkModelTests() { return true; }

namespace {

constexpr int kSteps = 150;
constexpr int kPartitions = 2;

// The partitions of the streams that are there: their events, from offset 1 on.
using Model = std::map<std::string, std::vector<std::vector<NewEvent>>>;

class Dice {
 public:
  explicit Dice(uint32_t seed) : random_(seed) {}

  int UpTo(int most) { return std::uniform_int_distribution<int>(0, most)(random_); }
  std::string Bytes(int most) {
    std::string bytes(static_cast<size_t>(UpTo(most)), '\0');
    for (char& byte : bytes) byte = static_cast<char>(UpTo(255));
    return bytes;
  }
  NewEvent AnEvent() {
    NewEvent event{Bytes(8), Bytes(200), {}};
    for (int i = UpTo(2); i > 0; --i) event.properties[Bytes(4)] = Bytes(4);
    return event;
  }

 private:
  std::mt19937 random_;
};

bool Same(const Event& is, const NewEvent& expected) {
  return is.key == expected.key && is.body == expected.body && is.properties == expected.properties;
}

// A store under random calls, and what it should hold.
class ModelledStore {
 public:
  ModelledStore(StoreHome* home, std::unique_ptr<EventStreamStore> store)
      : home_(home), store_(std::move(store)) {}

  void Step(Dice* dice) {
    const std::string stream = dice->UpTo(3) == 0 ? "b" : "a";
    const int partition = dice->UpTo(kPartitions - 1);
    const int what = dice->UpTo(99);
    if (what < 2) {
      store_.reset();
      store_ = home_->Open();
    } else if (what < 4) {
      EXPECT_EQ(store_->Delete(stream).ok(), model_.erase(stream) == 1);
    } else if (what < 14) {
      EXPECT_TRUE(store_->Create(stream, {.partitions = kPartitions}).ok());
      model_.try_emplace(stream, kPartitions);
    } else if (what < 60) {
      TryAppend(stream, partition, dice);
    } else {
      TryRead(stream, partition, dice);
    }
  }

 private:
  void TryAppend(const std::string& stream, int partition, Dice* dice) {
    std::vector<NewEvent> events;
    for (int i = dice->UpTo(4); i >= 0; --i) events.push_back(dice->AnEvent());
    const absl::StatusOr<int64_t> offset = store_->Append(stream, partition, events);
    const auto found = model_.find(stream);
    ASSERT_EQ(offset.ok(), found != model_.end()) << offset.status();
    if (!offset.ok()) return;
    std::vector<NewEvent>& log = found->second[static_cast<size_t>(partition)];
    EXPECT_EQ(*offset, static_cast<int64_t>(log.size()) + 1);
    log.insert(log.end(), events.begin(), events.end());
  }

  void TryRead(const std::string& stream, int partition, Dice* dice) {
    const auto found = model_.find(stream);
    const absl::StatusOr<PartitionExtent> extent = store_->Extent(stream, partition);
    ASSERT_EQ(extent.ok(), found != model_.end()) << extent.status();
    if (!extent.ok()) return;
    const std::vector<NewEvent>& log = found->second[static_cast<size_t>(partition)];
    ASSERT_EQ(extent->count(), static_cast<int64_t>(log.size()));
    const int place = dice->UpTo(static_cast<int>(log.size()) + 1);
    const auto reader = store_->OpenReader(stream, partition, place + 1);
    ASSERT_TRUE(reader.ok()) << reader.status();
    const bool is_beyond = place > static_cast<int>(log.size());
    const bool is_at_end = place == static_cast<int>(log.size());
    const int max_events = dice->UpTo(9) + 1;
    const auto events =
        (*reader)->Next(max_events, is_at_end ? absl::ZeroDuration() : absl::Minutes(2));
    ASSERT_EQ(events.ok(), !is_beyond) << events.status();
    if (!events.ok()) return;
    ASSERT_EQ(events->empty(), is_at_end);
    ASSERT_LE(static_cast<int>(events->size()), max_events);
    for (size_t i = 0; i < events->size(); ++i) {
      EXPECT_EQ((*events)[i].offset, place + 1 + static_cast<int64_t>(i));
      EXPECT_TRUE(Same((*events)[i], log.at(static_cast<size_t>(place) + i)));
    }
  }

  StoreHome* const home_;  // not owned
  std::unique_ptr<EventStreamStore> store_;
  Model model_;
};

}  // namespace

TEST_P(EventStreamConformance, DoesAsTheModelDoes) {
  const uint32_t seed = base::testing::TestSeed();
  SCOPED_TRACE(absl::StrCat("MUSTER_TEST_SEED=", seed));
  Dice dice(seed);
  ModelledStore store(home_.get(), std::move(store_));
  for (int step = 0; step < kSteps && !HasFailure(); ++step) {
    SCOPED_TRACE(absl::StrCat("step ", step));
    store.Step(&dice);
  }
}

}  // namespace muster::stream::conformance
