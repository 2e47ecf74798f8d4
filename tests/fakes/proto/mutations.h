// SPDX-License-Identifier: Apache-2.0

// MutationsOf: the messages that differ from a sound one in one place, for tests of those who read
// messages from outside.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "google/protobuf/message.h"

namespace muster::proto::testing {

struct Mutation {
  std::string what;  // the field and what became of it, for the message of a failing test
  std::string body;  // the serialized message
};

// Each field of `sound`, at any depth, once without its value and once with each value of its type
// that readers find hard: the bounds of numbers, empty and long texts, paths, control characters,
// texts that are almost numbers; of a repeated field also one element more, less, and many. Then
// `random` bodies in which single bytes have changed, or which are cut short. The same for the same
// seed.
std::vector<Mutation> MutationsOf(const google::protobuf::Message& sound, int random,
                                  uint32_t seed);

}  // namespace muster::proto::testing
