// SPDX-License-Identifier: Apache-2.0
#include "services/processor/processor_role.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/base/clock.h"
#include "muster/handler/handler.h"
#include "muster/os/temp_dir.h"
#include "services/host/host_options.h"
#include "services/host/role.h"
#include "services/processor/processor.h"

namespace muster::processor {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ProcessorOptionsTest : public ::testing::Test {
 protected:
  ~ProcessorOptionsTest() override { unsetenv("MUSTER_JOB"); }

  // Returns the error in `arguments`; empty if there is none.
  std::string Parse(const std::vector<std::string>& arguments) {
    CLI::App app;
    options_ = {};
    AddProcessorOptions(&app, &options_);
    try {
      app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
    return "";
  }

  std::vector<std::string> Pools() const {
    std::vector<std::string> pools;
    for (const JobPool& pool : options_.pools) {
      pools.push_back(pool.job + ":" + std::to_string(pool.threads));
    }
    return pools;
  }

  ServiceOptions options_;
};

TEST_F(ProcessorOptionsTest, WorksForEveryJobUnlessToldOtherwise) {
  EXPECT_EQ(Parse({}), "");
  EXPECT_THAT(Pools(), IsEmpty());
  EXPECT_GE(options_.threads, 1);
}

TEST_F(ProcessorOptionsTest, MayWaitForARelease) {
  EXPECT_EQ(Parse({}), "");
  EXPECT_EQ(options_.standby, "");
  EXPECT_EQ(Parse({"--standby", "black-friday"}), "");
  EXPECT_EQ(options_.standby, "black-friday");
  EXPECT_THAT(Parse({"--standby", "black friday"}), HasSubstr("is no name of a release"));
}

TEST_F(ProcessorOptionsTest, GivesEachJobItsOwnNumberOfThreads) {
  EXPECT_EQ(Parse({"--job", "urgent=8", "--job", "bulk", "--threads", "2"}), "");
  EXPECT_THAT(Pools(), ElementsAre("urgent:8", "bulk:0"));
  EXPECT_EQ(options_.threads, 2);
}

TEST_F(ProcessorOptionsTest, TakesJobsWithCommasBetweenAlsoFromTheEnvironment) {
  EXPECT_EQ(Parse({"--job", "urgent=8,bulk=1000"}), "");
  EXPECT_THAT(Pools(), ElementsAre("urgent:8", "bulk:1000"));
  setenv("MUSTER_JOB", "nightly=3,hourly", 1);
  EXPECT_EQ(Parse({}), "");
  EXPECT_THAT(Pools(), ElementsAre("nightly:3", "hourly:0"));
}

TEST_F(ProcessorOptionsTest, RefusesAJobThatIsNamedTwice) {
  EXPECT_THAT(Parse({"--job", "bulk", "--job", "bulk=2"}), HasSubstr("job bulk is named twice"));
  EXPECT_THAT(Parse({"--job", "bulk=2,urgent,bulk=2"}), HasSubstr("'bulk=2'"));
}

TEST_F(ProcessorOptionsTest, RefusesNumbersOfWorkersThatCannotBe) {
  for (const char* pool : {"bulk=0", "bulk=-1", "bulk=1001", "bulk=", "bulk=two", "bulk=1.5",
                           "bulk=2=3", "bulk=99999999999999999999", "bulk=nan"}) {
    EXPECT_THAT(Parse({"--job", pool}), HasSubstr("1 to 1000 workers")) << pool;
  }
  EXPECT_THAT(Parse({"--job", "=2"}), HasSubstr("no job is named"));
}

TEST_F(ProcessorOptionsTest, TakesCertificatesForHandlersThatAreServers) {
  EXPECT_EQ(Parse({"--handler-tls-roots", "r.pem", "--handler-tls-cert", "c.pem",
                   "--handler-tls-key", "k.pem"}),
            "");
  EXPECT_EQ(options_.handlers.tls.roots, "r.pem");
  EXPECT_EQ(options_.handlers.tls.certificate, "c.pem");
  EXPECT_EQ(options_.handlers.tls.key, "k.pem");
  EXPECT_THAT(Parse({"--handler-tls-cert", "c.pem"}), HasSubstr("--handler-tls-key"));
  EXPECT_THAT(Parse({"--handler-tls-key", "k.pem"}), HasSubstr("--handler-tls-cert"));
}

TEST_F(ProcessorOptionsTest, TakesWhatCommandsMayRun) {
  EXPECT_EQ(Parse({}), "");
  EXPECT_FALSE(options_.handlers.programs.has_value());
  EXPECT_EQ(Parse({"--handler-programs", "/srv/billing", "--handler-programs", "any,bin/*"}), "");
  EXPECT_THAT(
      options_.handlers.programs->entries(),
      ElementsAre("/srv/billing", "any", (std::filesystem::current_path() / "bin/*").string()));
  setenv("MUSTER_HANDLER_PROGRAMS", "/srv/a,/srv/b", 1);
  EXPECT_EQ(Parse({}), "");
  unsetenv("MUSTER_HANDLER_PROGRAMS");
  EXPECT_THAT(options_.handlers.programs->entries(), ElementsAre("/srv/a", "/srv/b"));
}

TEST_F(ProcessorOptionsTest, TakesTheBoundsOfHandlerPrograms) {
  EXPECT_EQ(Parse({}), "");
  EXPECT_EQ(options_.handlers.bounds.memory_bytes, std::nullopt);
  EXPECT_EQ(options_.handlers.bounds.file_bytes, 1u << 30);
  EXPECT_EQ(options_.handlers.bounds.processes, 1024u);
  EXPECT_EQ(Parse({"--handler-env", "DB_URL,DB_PASSWORD", "--handler-memory", "2GiB",
                   "--handler-file-size", "none", "--handler-processes", "0"}),
            "");
  const ProgramBounds& bounds = options_.handlers.bounds;
  EXPECT_THAT(bounds.passed_variables, ElementsAre("DB_URL", "DB_PASSWORD"));
  EXPECT_EQ(bounds.memory_bytes, uint64_t{2} << 30);
  EXPECT_EQ(bounds.file_bytes, 0u);
  EXPECT_EQ(bounds.processes, 0u);
  for (const char* const wrong : {"DB_PASSWORD=0pen-sesame", "DB_URL, DB_PASSWORD", ""}) {
    EXPECT_THAT(Parse({"--handler-env", wrong}),
                AllOf(HasSubstr("the names of variables alone"), Not(HasSubstr("0pen-sesame"))))
        << wrong;
  }
  EXPECT_THAT(Parse({"--handler-memory", "much"}), HasSubstr("--handler-memory"));
  EXPECT_THAT(Parse({"--handler-memory", "0"}), HasSubstr("none"));
  EXPECT_THAT(Parse({"--handler-processes", "-1"}), HasSubstr("--handler-processes"));
}

TEST_F(ProcessorOptionsTest, TakesThemFromTheEnvironmentToo) {
  setenv("MUSTER_HANDLER_TLS_ROOTS", "r.pem", 1);
  EXPECT_EQ(Parse({}), "");
  unsetenv("MUSTER_HANDLER_TLS_ROOTS");
  EXPECT_EQ(options_.handlers.tls.roots, "r.pem");
}

// `muster up` opens all its roles again when a later one could not be opened: the process ended.
TEST(ProcessorRoleTest, StaysOpenWhenItIsOpenedAgain) {
  const os::TempDir dir;
  const backend::DataDirUrls urls(dir.path());
  const auto queues = backend::OpenQueueStore(urls.queue, backend::Mode::kReadWrite,
                                              backend::Holders::kInProcess, base::RealClock());
  const auto sync = backend::OpenSyncStore(urls.sync);
  const auto blobs = backend::OpenBlobStore(urls.blobs);
  const auto bus = backend::OpenTriggerBus("local:");
  const auto heartbeats = backend::OpenHeartbeatBus("local:");
  const host::Stores stores{queues->get(), sync->get(),       blobs->get(),
                            bus->get(),    heartbeats->get(), "localhost:1"};
  host::HostOptions host(host::kProcessor);
  host.instance = "processor-1";
  const handler::HandlerRegistry handlers;
  ProcessorRole role(&handlers, host, {}, base::RealClock());
  EXPECT_TRUE(role.Open(stores, nullptr).ok());
  EXPECT_TRUE(role.Open(stores, nullptr).ok());
  role.Drain(absl::ZeroDuration());
  role.Close();
}

}  // namespace
}  // namespace muster::processor
