// SPDX-License-Identifier: Apache-2.0
#include "bench/queue_bench/beanstalkd.h"

#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/queue_bench/bodies.h"
#include "bench/queue_bench/check.h"

namespace muster::queue_bench {
namespace {

// Reads the next answer, and returns the part that follows `word`.
std::string Expect(Connection& connection, absl::string_view word) {
  const std::string line = connection.ReadLine();
  if (!absl::StartsWith(line, word)) {
    Die(absl::StrCat("beanstalkd answered '", line, "', not ", word));
  }
  return line.substr(word.size());
}

// Reads "RESERVED <id> <bytes>", then the body; answers the id.
std::string ReadReserved(Connection& connection) {
  const std::string rest = Expect(connection, "RESERVED ");
  const std::vector<std::string> fields = absl::StrSplit(rest, ' ');
  size_t bytes = 0;
  if (fields.size() != 2 || !absl::SimpleAtoi(fields[1], &bytes) || bytes != kBodyBytes) {
    Die("beanstalkd: a body is not whole");
  }
  connection.Skip(bytes + 2);  // and its \r\n
  return fields[0];
}

}  // namespace

Beanstalkd::Beanstalkd(int port) {
  for (int caller = 0; caller < kCallers; ++caller) {
    connections_.push_back(std::make_unique<Connection>(port));
  }
}

void Beanstalkd::Put(int caller, std::vector<std::string> bodies) {
  Connection& connection = *connections_[static_cast<size_t>(caller)];
  std::string commands;
  // Priority 0, no delay, reserved for 600 s.
  for (const std::string& body : bodies) {
    absl::StrAppend(&commands, "put 0 0 600 ", body.size(), "\r\n", body, "\r\n");
  }
  connection.Send(commands);
  for (size_t i = 0; i < bodies.size(); ++i) Expect(connection, "INSERTED ");
}

void Beanstalkd::Take(int count) {
  Connection& connection = *connections_.front();
  std::string commands;
  // Enough messages are ready: a wait would mean that some were lost.
  for (int i = 0; i < count; ++i) absl::StrAppend(&commands, "reserve-with-timeout 0\r\n");
  connection.Send(commands);
  commands.clear();
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&commands, "delete ", ReadReserved(connection), "\r\n");
  }
  connection.Send(commands);
  for (int i = 0; i < count; ++i) Expect(connection, "DELETED");
}

}  // namespace muster::queue_bench
