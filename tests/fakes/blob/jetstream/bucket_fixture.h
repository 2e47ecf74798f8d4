// SPDX-License-Identifier: Apache-2.0

// A server with a bucket of blobs, for tests. One suite for each program that NatsServer::Programs
// names:
//
//   INSTANTIATE_TEST_SUITE_P(Servers, MyTest, EachServer(), &ServerName);
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/blob/jetstream/jetstream_blob_store.h"
#include "tests/fakes/nats/nats_server.h"

namespace muster::blob::jetstream {

class BucketTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<JetStreamBlobStore> Open(const Options& options = Options()) {
    return JetStreamBlobStore::Open(connection_.get(), options).value();
  }

  // Returns the subjects of chunks: one for each put that has left chunks.
  std::vector<std::string> ChunkSubjects() {
    return jetstream_.Subjects("OBJ_muster", "$O.muster.C.>").value();
  }

  nats::testing::NatsServer server_{GetParam()};
  const std::unique_ptr<nats::Connection> connection_ =
      nats::Connection::Open(server_.url(), {}).value();
  nats::JetStream jetstream_{connection_.get(), absl::Seconds(10)};
};

// Returns bytes without two equal chunks; another salt gives other bytes.
inline std::string Bytes(size_t size, char salt = 0) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(salt + i % 251 + i / 65'536);
  return bytes;
}

inline auto EachServer() { return ::testing::ValuesIn(nats::testing::NatsServer::Programs()); }

inline std::string ServerName(const ::testing::TestParamInfo<std::string>& server) {
  return absl::StrCat("Server", server.index);
}

}  // namespace muster::blob::jetstream
