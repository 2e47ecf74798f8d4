// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/proto/mutations.h"

#include <functional>
#include <limits>
#include <memory>
#include <random>

namespace muster::proto::testing {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kMany = 70;  // more than results that travel together, and than measures of a group

// Sets one field of a message to each hard value in turn, and tells of each.
class FieldMutator {
 public:
  using Tell = std::function<void(const std::string& what)>;

  FieldMutator(Message* message, const FieldDescriptor* field, Tell tell)
      : message_(message),
        field_(field),
        reflection_(message->GetReflection()),
        sound_(message->New()),
        tell_(std::move(tell)) {
    sound_->CopyFrom(*message);
  }

  void Run() {
    Try("left out", [this] { reflection_->ClearField(message_, field_); });
    if (field_->is_repeated()) RepeatFirst();
    SetValues();
  }

 private:
  void Try(const std::string& what, const std::function<void()>& change) {
    change();
    tell_(what);
    message_->CopyFrom(*sound_);
  }

  void RepeatFirst() {
    const int size = reflection_->FieldSize(*message_, field_);
    if (size == 0) return;
    Try("without its last", [this] { reflection_->RemoveLast(message_, field_); });
    for (const int times : {1, kMany}) {
      Try("with its first repeated", [&] {
        for (int i = 0; i < times; ++i) AddFirstAgain();
      });
    }
  }

  void AddFirstAgain() {
    switch (field_->cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        reflection_->AddMessage(message_, field_)
            ->CopyFrom(sound_->GetReflection()->GetRepeatedMessage(*sound_, field_, 0));
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        reflection_->AddString(message_, field_,
                               sound_->GetReflection()->GetRepeatedString(*sound_, field_, 0));
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
        reflection_->AddUInt32(message_, field_,
                               sound_->GetReflection()->GetRepeatedUInt32(*sound_, field_, 0));
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        reflection_->AddUInt64(message_, field_,
                               sound_->GetReflection()->GetRepeatedUInt64(*sound_, field_, 0));
        break;
      default:
        break;  // no message of a queue has others
    }
  }

  // Of a repeated field: of its first element, or of a new one.
  template <typename Value, typename Set, typename SetFirst, typename Add>
  void SetTo(const std::string& what, const Value& value, Set set, SetFirst set_first, Add add) {
    Try(what, [&] {
      if (!field_->is_repeated()) {
        (reflection_->*set)(message_, field_, value);
      } else if (reflection_->FieldSize(*message_, field_) > 0) {
        (reflection_->*set_first)(message_, field_, 0, value);
      } else {
        (reflection_->*add)(message_, field_, value);
      }
    });
  }

  template <typename Number, typename Set, typename SetFirst, typename Add>
  void SetNumbers(Set set, SetFirst set_first, Add add) {
    using Limits = std::numeric_limits<Number>;
    for (const Number value : {Number{0}, Number{1}, Number{2}, Number{1000}, Limits::max(),
                               static_cast<Number>(Limits::max() / 2 + 1), Limits::min()}) {
      SetTo("set to " + std::to_string(value), value, set, set_first, add);
    }
  }

  void SetTexts() {
    std::vector<std::string> texts = {"",
                                      "x",
                                      "../x",
                                      "/",
                                      "a/b",
                                      ".hidden",
                                      "batch-1-item-0",
                                      "-",
                                      "1,25",
                                      "1e9",
                                      "NaN",
                                      "-0.0",
                                      "7",
                                      "1.23456",
                                      std::string(60, '9'),
                                      std::string(3, '\0'),
                                      "line\nbreak\x1b[2J",
                                      std::string(16, 'x'),
                                      std::string(5000, 'x')};
    if (field_->type() == FieldDescriptor::TYPE_BYTES) texts.push_back("\xff\xfe");
    for (const std::string& text : texts) {
      SetTo("set to '" + text.substr(0, 20) + "' of " + std::to_string(text.size()) + " bytes",
            text, &Reflection::SetString, &Reflection::SetRepeatedString, &Reflection::AddString);
    }
  }

  void SetValues() {
    switch (field_->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        SetNumbers<int32_t>(&Reflection::SetInt32, &Reflection::SetRepeatedInt32,
                            &Reflection::AddInt32);
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        SetNumbers<int64_t>(&Reflection::SetInt64, &Reflection::SetRepeatedInt64,
                            &Reflection::AddInt64);
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
        SetNumbers<uint32_t>(&Reflection::SetUInt32, &Reflection::SetRepeatedUInt32,
                             &Reflection::AddUInt32);
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        SetNumbers<uint64_t>(&Reflection::SetUInt64, &Reflection::SetRepeatedUInt64,
                             &Reflection::AddUInt64);
        break;
      case FieldDescriptor::CPPTYPE_ENUM:
        SetNumbers<int>(&Reflection::SetEnumValue, &Reflection::SetRepeatedEnumValue,
                        &Reflection::AddEnumValue);
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        SetTexts();
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        Try("set to an empty message", [this] {
          if (field_->is_repeated()) {
            reflection_->AddMessage(message_, field_);
          } else {
            reflection_->MutableMessage(message_, field_)->Clear();
          }
        });
        break;
      default:
        break;
    }
  }

  Message* const message_;
  const FieldDescriptor* const field_;
  const Reflection* const reflection_;
  const std::unique_ptr<Message> sound_;
  const Tell tell_;
};

// `tell` gets the path of each field below `message`, and what became of it.
void MutateEach(Message* message, const std::string& path, const FieldMutator::Tell& tell) {
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = message->GetDescriptor()->field(i);
    const std::string name = path + field->name();
    FieldMutator(message, field, [&](const std::string& what) { tell(name + " " + what); }).Run();
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const Reflection* const reflection = message->GetReflection();
    if (field->is_repeated()) {
      if (reflection->FieldSize(*message, field) == 0) continue;
      MutateEach(reflection->MutableRepeatedMessage(message, field, 0), name + ".", tell);
    } else if (reflection->HasField(*message, field)) {
      MutateEach(reflection->MutableMessage(message, field), name + ".", tell);
    }
  }
}

}  // namespace

std::vector<Mutation> MutationsOf(const google::protobuf::Message& sound, int random,
                                  uint32_t seed) {
  std::vector<Mutation> mutations;
  const std::unique_ptr<Message> message(sound.New());
  message->CopyFrom(sound);
  MutateEach(message.get(), "", [&](const std::string& what) {
    mutations.push_back({what, message->SerializeAsString()});
  });
  const std::string body = sound.SerializeAsString();
  std::mt19937 draw(seed);
  for (int i = 0; i < random; ++i) {
    const size_t place = draw() % body.size();
    Mutation& mutation = mutations.emplace_back();
    if (draw() % 4 == 0) {
      mutation = {"cut after " + std::to_string(place) + " bytes", body.substr(0, place)};
    } else {
      mutation = {"byte " + std::to_string(place) + " changed", body};
      mutation.body[place] = static_cast<char>(draw());
    }
  }
  return mutations;
}

}  // namespace muster::proto::testing
