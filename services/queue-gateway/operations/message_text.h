// SPDX-License-Identifier: Apache-2.0

// The text of messages, on its way in and out.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "services/queue-gateway/operations/call.h"
#include "services/queue-gateway/protocol/error.h"

namespace muster::queue_gateway::operations {

// Of UTF-8, as Azure has it; larger contents belong into a blob.
inline constexpr size_t kMaxTextBytes = size_t{64} << 10;

// The text in the request's body, <QueueMessage><MessageText>: opaque, it stays as it is.
// InvalidXmlDocument; RequestBodyTooLarge: the text is longer than kMaxTextBytes. Md5Mismatch: the
// body is not what Content-MD5 says.
protocol::OrError<std::string> TextOf(const Call& call);
// The same for the dialect of 2008, whose body is the message: any bytes.
protocol::OrError<std::string> RawTextOf(const Call& call);

// A stored message as <MessageText> shows it. The dialect of 2008 gets base64; others get the text
// as it is, and base64 only of bytes that XML cannot carry, which came by that dialect.
std::string ShownText(absl::string_view body, bool is_2008);

}  // namespace muster::queue_gateway::operations
