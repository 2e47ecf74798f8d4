// SPDX-License-Identifier: Apache-2.0

// muster stream and muster partition replay, here and on a mesh.
#include <cerrno>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/partition/checkpoint_store.h"
#include "muster/stream/event_stream_store.h"
#include "services/initiator/api/stream_service.h"
#include "tests/fakes/cli/client_fixture.h"

namespace muster::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Standard input, while it lives.
class Input {
 public:
  explicit Input(const std::string& text) : Input(std::make_unique<std::stringbuf>(text)) {}
  explicit Input(std::unique_ptr<std::streambuf> text)
      : text_(std::move(text)), before_(std::cin.rdbuf(text_.get())) {}
  ~Input() {
    std::cin.rdbuf(before_);
    std::cin.clear();
  }

 private:
  const std::unique_ptr<std::streambuf> text_;
  std::streambuf* const before_;
};

// An input whose read fails once `text` is read.
class FailingInput : public std::streambuf {
 public:
  explicit FailingInput(std::string text) : text_(std::move(text)) {
    setg(text_.data(), text_.data(), text_.data() + text_.size());
  }

 protected:
  int_type underflow() override {
    errno = EISDIR;
    throw std::ios_base::failure("read");
  }

 private:
  std::string text_;
};

class StreamCommandTest : public ClientTest {
 protected:
  StreamCommandTest() {
    rpc::ServerOptions options;
    options.addresses = {"localhost:0"};
    initiator_ = rpc::Server::Start(options, {{v1::StreamService::service_full_name(), &service_},
                                              {v1::MeshService::service_full_name(), &mesh_}})
                     .value();
  }

  const backend::DataDirUrls urls_{data_dir() + "/served"};
  std::unique_ptr<stream::EventStreamStore> events_ =
      backend::OpenEventStreamStore(urls_.stream, backend::Mode::kReadWrite, base::RealClock())
          .value();
  std::unique_ptr<sync::OptimisticSyncStore> sync_ = backend::OpenSyncStore(urls_.sync).value();
  initiator::api::StreamService service_{
      {.events = events_.get(), .sync = sync_.get()}, base::RealClock(), [] { return true; }};
};

TEST_F(StreamCommandTest, MakesFeedsReadsAndDeletesAStreamOfAServer) {
  EXPECT_EQ(RunOnServer({"stream", "create", "homes", "--partitions", "2"}).out,
            "stream homes: 2 partitions\n");
  {
    const Input lines("home-1 door open\nhome-1 door shut\nhome-2 motion\n");
    EXPECT_EQ(RunOnServer({"stream", "append", "homes", "--separator", " ", "-o", "json"}).out,
              "{\"stream\":\"homes\",\"events\":3}\n");
  }
  EXPECT_THAT(RunOnServer({"stream", "list"}).out, AllOf(HasSubstr("homes"), HasSubstr("7d")));
  EXPECT_THAT(RunOnServer({"stream", "describe", "homes", "-o", "json"}).out,
              HasSubstr("\"events\":"));
  std::string read;
  for (const char* partition : {"homes/0", "homes/1"}) {
    read += RunOnServer({"stream", "read", partition}).out;
  }
  EXPECT_THAT(read, AllOf(HasSubstr("door open"), HasSubstr("motion"), HasSubstr("home-2")));
  EXPECT_EQ(RunOnServer({"stream", "delete", "homes"}).code, kOk);
  const Done gone = RunOnServer({"stream", "describe", "homes"});
  EXPECT_EQ(gone.code, kError);
  EXPECT_THAT(gone.err, HasSubstr("muster stream list"));
}

TEST_F(StreamCommandTest, DoesTheSameInADataDirectory) {
  const std::string here = data_dir() + "/here";
  EXPECT_EQ(Run({"stream", "list", "--data-dir", here}).code, kError) << "nothing is made";
  EXPECT_EQ(Run({"stream", "create", "homes", "--data-dir", here}).code, kOk);
  {
    const Input lines("a\nb\nc\n");
    EXPECT_EQ(Run({"stream", "append", "homes", "--partition", "1", "--data-dir", here}).out,
              "appended: 3 events\n");
  }
  EXPECT_THAT(Run({"stream", "read", "homes/1", "--from", "2", "--data-dir", here}).out,
              AllOf(HasSubstr("b"), HasSubstr("c"), HasSubstr("2")));
  EXPECT_EQ(
      Run({"partition", "replay", "homes/1", "--from", "3", "--group", "store", "--data-dir", here})
          .out,
      "group store goes on at offset 3 of homes/1\n");
}

// Each line became an event without a key, and nobody was told.
TEST_F(StreamCommandTest, RefusesASeparatorThatIsEmpty) {
  ASSERT_TRUE(events_->Create("homes", {.partitions = 1}).ok());
  const Input lines("home-1 door open\n");
  const Done refused = RunOnServer({"stream", "append", "homes", "--separator", ""});
  EXPECT_EQ(refused.code, kUsage);
  EXPECT_THAT(refused.err, HasSubstr("--separator: an empty text ends no key"));
  EXPECT_EQ(events_->Extent("homes", 0).value().count(), 0);
}

// It said that one event was appended, and four were, some of them from behind the bad line.
TEST_F(StreamCommandTest, ALineThatIsNoEventIsNamedAndNothingBehindItIsAppended) {
  ASSERT_TRUE(events_->Create("homes", {.partitions = 2}).ok());
  const Input lines("a:1\nb:2\n" + std::string(2000, 'k') + ":3\nc:4\nd:5\n");
  const Done failed = RunOnServer({"stream", "append", "homes", "--separator", ":"});
  EXPECT_EQ(failed.code, kError);
  EXPECT_THAT(failed.err, HasSubstr("appended: 2 events; failed: line 3: key of an event: 2000"));
  EXPECT_EQ(events_->Extent("homes", 0)->count() + events_->Extent("homes", 1)->count(), 2);
}

// A directory was taken for an empty input: "appended: 0 events", and the exit code of a success.
TEST_F(StreamCommandTest, AnInputThatCannotBeReadIsNoEnd) {
  ASSERT_TRUE(events_->Create("homes", {.partitions = 1}).ok());
  const Input lines(std::make_unique<FailingInput>("one\ntwo\nhalf of thr"));
  const Done failed = RunOnServer({"stream", "append", "homes"});
  EXPECT_EQ(failed.code, kError);
  EXPECT_EQ(failed.out, "");
  EXPECT_THAT(failed.err, HasSubstr("appended: 2 events; failed: standard input: Is a directory"));
  EXPECT_EQ(events_->Extent("homes", 0)->count(), 2);
}

TEST_F(StreamCommandTest, ShowsBytesThatAreNoText) {
  ASSERT_TRUE(events_->Create("raw", {.partitions = 1}).ok());
  ASSERT_TRUE(events_->Append("raw", 0, {{.body = std::string("\xff\x00", 2)}}).ok());
  EXPECT_THAT(RunOnServer({"stream", "read", "raw/0", "-o", "json"}).out,
              HasSubstr("\"body_base64\":\"/wA=\""));
}

// They were base64 beside others that are text, and nothing told the one from the other.
TEST_F(StreamCommandTest, ShowsPropertiesThatAreNoTextApart) {
  ASSERT_TRUE(events_->Create("raw", {.partitions = 1}).ok());
  const stream::Properties properties = {{"kind", "door"}, {"seal", "\xff\xfe"}};
  ASSERT_TRUE(events_->Append("raw", 0, {{.body = "x", .properties = properties}}).ok());
  EXPECT_THAT(
      RunOnServer({"stream", "read", "raw/0", "-o", "json"}).out,
      HasSubstr("\"properties\":{\"kind\":\"door\"},\"properties_base64\":{\"seal\":\"//4=\"}"));
}

// Its option took it, and then the command failed: only retention has no end.
TEST_F(StreamCommandTest, AWaitForEverIsNoOption) {
  ASSERT_TRUE(events_->Create("raw", {.partitions = 1}).ok());
  const Done refused = RunOnServer({"stream", "read", "raw/0", "--wait", "forever"});
  EXPECT_EQ(refused.code, kUsage);
  EXPECT_THAT(refused.err, HasSubstr("--wait: 'forever' is no time like 30s"));
  EXPECT_EQ(RunOnServer({"stream", "create", "kept", "--retention", "forever"}).code, kOk);
}

TEST_F(StreamCommandTest, MovesTheCheckpointOfAGroup) {
  ASSERT_TRUE(events_->Create("homes", {.partitions = 1}).ok());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(events_->Append("homes", 0, {{.body = "x"}}).ok());
  EXPECT_EQ(RunOnServer({"partition", "replay", "homes/0", "--from", "3", "--group", "store"}).out,
            "group store goes on at offset 3 of homes/0\n");
  EXPECT_EQ(partition::CheckpointStore(sync_.get(), "homes/store").Read(0).value().offset, 3);
  const Done beyond =
      RunOnServer({"partition", "replay", "homes/0", "--from", "7", "--group", "store"});
  EXPECT_EQ(beyond.code, kError);
  EXPECT_THAT(beyond.err, HasSubstr("its end is 6"));
  EXPECT_EQ(RunOnServer({"partition", "replay", "homes", "--from", "1", "--group", "g"}).code,
            kError);
  EXPECT_THAT(RunOnServer({"partition", "replay", "homes/9", "--from", "1", "--group", "g"}).err,
              Not(HasSubstr("goes on")));
}

}  // namespace
}  // namespace muster::cli
