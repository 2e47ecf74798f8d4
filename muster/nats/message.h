// What travels over a NATS connection.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::nats {

struct Header {
  std::string name;
  std::string value;
};

// To be sent. The data outlives the call that sends it.
struct Outgoing {
  std::string subject;
  std::vector<Header> headers = {};
  absl::string_view data = "";
};

// Statuses of messages that the server itself sends, in the manner of HTTP.
enum ServerStatus {
  kNoMessages = 404,
  kRequestTimeout = 408,
  kConflict = 409,
  kNoResponders = 503,
};

struct Incoming {
  std::string subject;
  std::string reply;  // where an answer goes; "" when none is wanted
  std::string data;
  int status = 0;           // a ServerStatus where the server itself speaks, else 0
  std::string description;  // what the server says then
};

}  // namespace muster::nats
