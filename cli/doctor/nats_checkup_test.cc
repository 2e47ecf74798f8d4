// SPDX-License-Identifier: Apache-2.0

// The findings of `muster doctor` about NATS servers and their streams.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/nats/connection.h"
#include "muster/nats/jetstream.h"
#include "muster/nats/server_version.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/cli/doctor_fixture.h"
#include "tests/fakes/nats/nats_server.h"

namespace muster::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(DoctorTest, SaysThatNobodyHasLookedAtTheNatsServer) {
  const Done done = RunOnServer({"doctor"});
  EXPECT_EQ(done.code, kOk);
  EXPECT_THAT(done.out,
              AllOf(HasSubstr("unknown: streams: the doctor has not checked the NATS server"),
                    HasSubstr("say --nats URL")));
}

// Runs on each server that NatsServer::Programs names.
class NatsDoctorTest : public DoctorTest, public ::testing::WithParamInterface<std::string> {
 protected:
  std::string Examine(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"doctor", "--nats", server_.url()};
    words.insert(words.end(), more.begin(), more.end());
    const Done done = RunOnServer(words);
    code_ = done.code;
    return done.out;
  }

  void Make(const std::string& stream, const std::string& subject) {
    ASSERT_TRUE(
        jetstream_.EnsureStream({{"name", stream}, {"subjects", {subject}}, {"storage", "memory"}})
            .ok());
  }

  // Opens the stores as services do.
  void OpenStores() {
    backend::Backends backends;
    ASSERT_TRUE(backends.OpenSyncStore(server_.url()).ok());
    ASSERT_TRUE(backends.OpenBlobStore(server_.url()).ok());
    const auto queues = backends.OpenQueueStore(server_.url(), backend::Mode::kReadWrite,
                                                backend::Holders::kElsewhere, base::RealClock());
    ASSERT_TRUE(queues.ok()) << queues.status();
    ASSERT_TRUE((*queues)->CreateQueue({"local", "shop-in-0"}, {}).ok());
  }

  nats::testing::NatsServer server_{GetParam()};
  const std::unique_ptr<nats::Connection> connection_ =
      nats::Connection::Open(server_.url(), {}).value();
  nats::JetStream jetstream_{connection_.get(), absl::Seconds(30)};
  int code_ = kOk;
};

TEST_P(NatsDoctorTest, FindsWhatServicesMakeSound) {
  OpenStores();
  EXPECT_THAT(Examine(), AllOf(HasSubstr("answers, and runs JetStream"),
                               HasSubstr("ok: stream KV_muster: is set as it should be\n"),
                               HasSubstr("ok: stream OBJ_muster: is set as it should be\n"),
                               HasSubstr("ok: stream MUSTER-ATTEMPTS: is set as it should be\n"),
                               HasSubstr("ok: stream MUSTER_local_shop-in-0: is set"),
                               HasSubstr("warning: acknowledgements: survive the end of"),
                               Not(HasSubstr("unknown")), Not(HasSubstr("wrong"))));
  EXPECT_EQ(code_, kOk);
  // The server keeps the notes of attempts in memory.
  ASSERT_TRUE(jetstream_.DeleteStream("MUSTER-ATTEMPTS").ok());
  EXPECT_THAT(Examine(), HasSubstr("ok: stream MUSTER-ATTEMPTS: is not there; it is made"));
}

// The doctor asked for a restart, which nothing needs.
TEST_P(NatsDoctorTest, FindsNothingWrongWithABucketThatTheNextContentMakes) {
  OpenStores();
  ASSERT_TRUE(jetstream_.DeleteStream("OBJ_muster").ok());
  EXPECT_THAT(Examine(),
              HasSubstr("ok: stream OBJ_muster: is not there; it is made with the next content "
                        "that it keeps\n"));
  EXPECT_EQ(code_, kOk);
}

TEST_P(NatsDoctorTest, FindsEachStreamThatIsSetOtherwise) {
  OpenStores();
  for (const auto& [stream, subject] : std::vector<std::pair<std::string, std::string>>{
           {"MUSTER_local_shop-in-0", "muster.queue.local.shop-in-0"},
           {"KV_muster", "$KV.muster.>"},
           {"OBJ_muster", "$O.muster.C.>"}}) {
    ASSERT_TRUE(jetstream_.DeleteStream(stream).ok());
    Make(stream, subject);
    const std::string found = Examine();
    EXPECT_EQ(code_, kError);
    const std::string wrong = absl::StrCat("wrong: stream ", stream, ": ");
    ASSERT_THAT(found, HasSubstr(wrong));
    const std::string line = found.substr(found.find(wrong));
    EXPECT_THAT(line.substr(0, line.find('\n')), HasSubstr("storage is \"memory\", not \"file\""));
  }
  nlohmann::json attempts = *jetstream_.StreamConfig("MUSTER-ATTEMPTS");
  attempts["max_bytes"] = 1024;
  ASSERT_TRUE(jetstream_.Call("STREAM.UPDATE.MUSTER-ATTEMPTS", attempts).ok());
  EXPECT_THAT(Examine(), HasSubstr("wrong: stream MUSTER-ATTEMPTS: max_bytes is 1024, not "));
}

TEST_P(NatsDoctorTest, TellsOfAConsumerThatAnAdministratorHasPaused) {
  if (jetstream_.ApiLevel().value() == 0) GTEST_SKIP() << "the server is older than 2.11";
  OpenStores();
  ASSERT_TRUE(jetstream_
                  .Call("CONSUMER.PAUSE.MUSTER_local_shop-in-0.workers",
                        {{"pause_until", "2100-01-01T00:00:00Z"}})
                  .ok());
  EXPECT_THAT(Examine(),
              AllOf(HasSubstr("warning: consumer of stream MUSTER_local_shop-in-0: is paused"),
                    HasSubstr("nats consumer resume MUSTER_local_shop-in-0 workers")));
}

TEST_P(NatsDoctorTest, LooksAtTheBucketThatTheServicesHave) {
  OpenStores();
  EXPECT_THAT(Examine({"--bucket", "other"}), HasSubstr("wrong: stream KV_other: "));
  EXPECT_EQ(code_, kError);
}

TEST_P(NatsDoctorTest, TellsTheServersVersionAndWhatItMeansForAcknowledgements) {
  OpenStores();
  const std::string address = nats::AddressesIn(server_.url()).front();
  const std::string version = nats::ServerVersion(address, absl::Seconds(30)).value();
  const std::string named = absl::StrCat("ok: NATS server ", address, ": has version ", version);
  const std::string process = Examine(), power = Examine({"--ack-survives", "power"});
  EXPECT_THAT(process, HasSubstr(named));
  if (nats::CanSyncAlways(version)) {
    EXPECT_EQ(code_, kOk);
    EXPECT_THAT(process, HasSubstr("a power cut only where it has sync_interval: always; set"));
    EXPECT_THAT(power, HasSubstr("ok: acknowledgements: are said to survive a power cut: they do"));
  } else {
    EXPECT_EQ(code_, kError);
    EXPECT_THAT(process, HasSubstr("a power cut never with this version; run 2.10 or later"));
    EXPECT_THAT(power, HasSubstr(absl::StrCat("wrong: acknowledgements: are said to survive a "
                                              "power cut, which server version ",
                                              version, " cannot promise; run nats-server 2.10")));
  }
}

INSTANTIATE_TEST_SUITE_P(Servers, NatsDoctorTest,
                         ::testing::ValuesIn(nats::testing::NatsServer::Programs()),
                         [](const auto& server) { return absl::StrCat("Server", server.index); });

// A cluster whose servers have reached max_file_store goes on to answer for its streams.
TEST_F(DoctorTest, SaysThatNoServerLeadsAStream) {
  using nats::testing::NatsServer;
  const NatsServer server(NatsServer::Programs().front(), "", NatsServer::Persistence::kNone);
  const auto api = nats::Connection::Open(server.url(), {}).value();
  const auto answer = [](absl::string_view subject) {
    if (absl::StrContains(subject, "STREAM.NAMES")) {
      return R"({"streams": ["MUSTER_local_shop-in-0"], "total": 1})";
    }
    if (absl::StrContains(subject, "CONSUMER.INFO")) {
      return R"({"error": {"code": 503, "err_code": 10008, "description": "unavailable"}})";
    }
    return R"({"config": {}, "cluster": {"name": "c", "replicas": [{"name": "b"}]}})";
  };
  const auto answers =
      api->Subscribe(
             "$JS.API.>",
             [&](const nats::Incoming& request) {
               EXPECT_TRUE(
                   api->Publish({.subject = request.reply, .data = answer(request.subject)}).ok());
             })
          .value();
  ASSERT_TRUE(api->Flush(absl::Seconds(10)).ok());
  const Done done = RunOnServer({"doctor", "--nats", server.url()});
  EXPECT_EQ(done.code, kError);
  for (const absl::string_view wrong :
       {"stream KV_muster: none of its servers leads it; see the logs of the NATS servers",
        "stream MUSTER_local_shop-in-0: none of its servers leads it; see the logs",
        "consumer of stream MUSTER_local_shop-in-0: CONSUMER.INFO"}) {
    EXPECT_THAT(done.out, HasSubstr(absl::StrCat("wrong: ", wrong)));
  }
  EXPECT_THAT(done.out, AllOf(HasSubstr("max_file_store"), Not(HasSubstr("is set as it should"))));
}

TEST_F(DoctorTest, SaysThatANatsServerDoesNotAnswerOrStoresNothing) {
  using nats::testing::NatsServer;
  NatsServer nats(NatsServer::Programs().front(), "", NatsServer::Persistence::kNone);
  EXPECT_THAT(RunOnServer({"doctor", "--nats", nats.url()}).out,
              HasSubstr("runs no JetStream for us; start it with JetStream"));
  nats.Kill();
  const Done done = RunOnServer({"doctor", "--nats", nats.url()});
  EXPECT_EQ(done.code, kError);
  EXPECT_THAT(done.out, HasSubstr(absl::StrCat("wrong: NATS server ", nats.url())));
}

}  // namespace
}  // namespace muster::cli
