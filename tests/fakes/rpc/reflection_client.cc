// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/rpc/reflection_client.h"

#include <future>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/message.h"
#include "google/protobuf/reflection.h"
#include "google/protobuf/text_format.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "gtest/gtest.h"
#include "muster/rpc/channel.h"

namespace muster::rpc {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr char kMethod[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

std::unique_ptr<Message> NewMessage(const std::string& name) {
  const auto* const type =
      google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(
          "grpc.reflection.v1alpha." + name);
  return std::unique_ptr<Message>(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
}

const FieldDescriptor* Field(const Message& message, const char* name) {
  return message.GetDescriptor()->FindFieldByName(name);
}

const Message& Sub(const Message& message, const char* name) {
  return message.GetReflection()->GetMessage(message, Field(message, name));
}

grpc::ByteBuffer Serialized(const Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

std::vector<std::string> ReflectionClient::Services() {
  const std::unique_ptr<Message> answer = Ask("list_services: ''");
  const Message& list = Sub(*answer, "list_services_response");
  std::vector<std::string> names;
  for (const Message& service :
       list.GetReflection()->GetRepeatedFieldRef<Message>(list, Field(list, "service"))) {
    names.push_back(service.GetReflection()->GetString(service, Field(service, "name")));
  }
  return names;
}

std::string ReflectionClient::FileOf(const std::string& symbol) {
  const std::unique_ptr<Message> answer = Ask("file_containing_symbol: '" + symbol + "'");
  const Message& files = Sub(*answer, "file_descriptor_response");
  const FieldDescriptor* const field = Field(files, "file_descriptor_proto");
  if (files.GetReflection()->FieldSize(files, field) == 0) return "";
  google::protobuf::FileDescriptorProto file;
  EXPECT_TRUE(file.ParseFromString(files.GetReflection()->GetRepeatedString(files, field, 0)));
  return file.name();
}

std::unique_ptr<Message> ReflectionClient::Ask(const std::string& request_text) {
  const std::unique_ptr<Message> request = NewMessage("ServerReflectionRequest");
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(request_text, request.get()));
  // One request and one answer: the stream looks like a unary call.
  const grpc::ByteBuffer sent = Serialized(*request);
  grpc::ByteBuffer received;
  CallContext context;
  std::promise<grpc::Status> done;
  grpc::GenericStub stub(channel_);
  stub.UnaryCall(&context, kMethod, grpc::StubOptions(), &sent, &received,
                 [&done](grpc::Status status) { done.set_value(std::move(status)); });
  const grpc::Status status = done.get_future().get();
  EXPECT_TRUE(status.ok()) << status.error_message();
  std::unique_ptr<Message> answer = NewMessage("ServerReflectionResponse");
  grpc::ProtoBufferReader reader(&received);
  EXPECT_TRUE(answer->ParseFromZeroCopyStream(&reader));
  return answer;
}

}  // namespace muster::rpc
