// Mutates a request field by field, so that most inputs are messages and reach
// the checks behind the parser.
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "proto/generation.pb.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max);

namespace baton::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Random = std::minstd_rand;

std::string Mutated(std::string text) {
  const size_t size = text.size();
  text.resize(size + 64);
  text.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(text.data()), size,
                               text.size()));
  return text;
}

template <class Number>
Number Mutated(Number number, Random& random) {
  constexpr Number kBorders[] = {Number(0),  Number(1),  Number(-1), Number(8),
                                 Number(16), Number(64), Number(512)};
  if (random() % 2 == 0) return kBorders[random() % std::size(kBorders)];
  LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(&number), sizeof(number),
                   sizeof(number));
  return number;
}

void Mutate(Message* message, Random& random, int depth);

void MutateOne(Message* message, const FieldDescriptor* field, Random& random,
               int depth) {
  const Reflection* to = message->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return to->SetInt32(message, field,
                          Mutated(to->GetInt32(*message, field), random));
    case FieldDescriptor::CPPTYPE_UINT32:
      return to->SetUInt32(message, field,
                           Mutated(to->GetUInt32(*message, field), random));
    case FieldDescriptor::CPPTYPE_UINT64:
      return to->SetUInt64(message, field,
                           Mutated(to->GetUInt64(*message, field), random));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return to->SetFloat(message, field,
                          Mutated(to->GetFloat(*message, field), random));
    case FieldDescriptor::CPPTYPE_BOOL:
      return to->SetBool(message, field, random() % 2 == 0);
    case FieldDescriptor::CPPTYPE_STRING:
      return to->SetString(message, field,
                           Mutated(to->GetString(*message, field)));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Mutate(to->MutableMessage(message, field), random, depth + 1);
    default:
      return;  // no request has one
  }
}

void MutateList(Message* message, const FieldDescriptor* field, Random& random,
                int depth) {
  const Reflection* to = message->GetReflection();
  const int size = to->FieldSize(*message, field);
  if (size > 0 && random() % 3 == 0) return to->RemoveLast(message, field);
  const int at = size > 0 ? static_cast<int>(random() % size) : 0;
  const bool add = size == 0 || random() % 2 == 0;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      if (add) return to->AddUInt32(message, field, random() % 300);
      return to->SetRepeatedUInt32(
          message, field, at,
          Mutated(to->GetRepeatedUInt32(*message, field, at), random));
    case FieldDescriptor::CPPTYPE_STRING:
      if (add) return to->AddString(message, field, Mutated("stop"));
      return to->SetRepeatedString(
          message, field, at,
          Mutated(to->GetRepeatedString(*message, field, at)));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Mutate(add ? to->AddMessage(message, field)
                        : to->MutableRepeatedMessage(message, field, at),
                    random, depth + 1);
    default:
      return;
  }
}

void Mutate(Message* message, Random& random, int depth) {
  const google::protobuf::Descriptor* type = message->GetDescriptor();
  if (depth > 4 || type->field_count() == 0) return;
  const FieldDescriptor* field =
      type->field(static_cast<int>(random() % type->field_count()));
  if (field->is_repeated()) {
    MutateList(message, field, random, depth);
  } else if (random() % 8 == 0) {
    message->GetReflection()->ClearField(message, field);
  } else {
    MutateOne(message, field, random, depth);
  }
}

}  // namespace
}  // namespace baton::fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t max, unsigned int seed) {
  baton::fuzz::Random random(seed);
  baton::v1::GenerateRequest request;
  // One in eight stays a mutation of the bytes.
  if (random() % 8 == 0 ||
      !request.ParseFromArray(data, static_cast<int>(size))) {
    return LLVMFuzzerMutate(data, size, max);
  }
  for (unsigned int n = 1 + random() % 3; n > 0; --n) {
    baton::fuzz::Mutate(&request, random, 0);
  }
  std::string bytes;
  // Serialising warns of strings that are not UTF-8, but keeps them.
  if (!request.SerializeToString(&bytes) || bytes.size() > max) return size;
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}
