// SPDX-License-Identifier: Apache-2.0
#include "services/host/process_metrics.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/os/file_descriptor.h"
#include "tests/fakes/telemetry/shown.h"

namespace muster::host {
namespace {

class ProcessMetricsTest : public ::testing::Test {
 protected:
  double Shown(const std::string& name) { return telemetry::Shown(registry_, name).value_or(-1); }

  telemetry::Registry registry_;
  const std::unique_ptr<telemetry::Reading> reading_ = ReadProcess(&registry_);
};

TEST_F(ProcessMetricsTest, ShowsTheCpuTimeThatGrows) {
  const double before = Shown("process_cpu_seconds_total");
  EXPECT_GE(before, 0);
  while (Shown("process_cpu_seconds_total") < before + 0.02) {
  }
}

TEST_F(ProcessMetricsTest, ShowsTheMemoryThatIsTouched) {
  const double before = Shown("process_resident_memory_bytes");
  EXPECT_GT(before, 0);
  constexpr size_t kBytes = size_t{64} << 20;
  const std::vector<char> touched(kBytes, 'x');
  EXPECT_GT(Shown("process_resident_memory_bytes"), before + kBytes / 2) << touched.back();
}

// Of so many that what libraries open and close meanwhile does not matter.
constexpr int kMany = 60;

TEST_F(ProcessMetricsTest, CountsDescriptorsAndTheirLimit) {
  const double before = Shown("process_open_fds");
  EXPECT_GE(before, 0);
  std::vector<os::FileDescriptor> files;
  for (int i = 0; i < kMany; ++i) files.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_NEAR(Shown("process_open_fds"), before + kMany, kMany / 2);
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(Shown("process_max_fds"), static_cast<double>(limit.rlim_cur));
}

TEST_F(ProcessMetricsTest, CountsThreads) {
  const double before = Shown("process_threads");
  EXPECT_GE(before, 1);
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  std::vector<std::thread> threads;
  for (int i = 0; i < kMany; ++i) threads.emplace_back([ended] { ended.wait(); });
  EXPECT_NEAR(Shown("process_threads"), before + kMany, kMany / 2);
  end.set_value();
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ProcessMetricsTest, ShowsWhenTheProcessStarted) {
  const double started = Shown("process_start_time_seconds");
  const double now = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
  EXPECT_LE(started, now + 1);  // ticks are hundredths
  EXPECT_GT(started, now - 3600);
  EXPECT_NEAR(Shown("process_start_time_seconds"), started, 0.1) << "it does not move";
}

}  // namespace
}  // namespace muster::host
