#include "router/front_door/wire_message.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/slice.h>

#include <map>
#include <optional>
#include <string>

#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/rpc/status.h"

namespace baton::router {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

struct BadText {
  std::string field;
  size_t byte = 0;
};

// The first string field whose bytes are no text. `fields` was read without
// knowing the type, so nothing has been refused yet.
std::optional<BadText> FindBadText(const UnknownFieldSet& fields,
                                   const Descriptor& type,
                                   const std::string& prefix) {
  std::map<int, int> counts;
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& value = fields.field(i);
    const FieldDescriptor* field = type.FindFieldByNumber(value.number());
    if (field == nullptr || value.type() != UnknownField::TYPE_LENGTH_DELIMITED)
      continue;
    std::string name = prefix + field->name();
    if (field->is_repeated()) {
      StrAppend(&name, "[", counts[value.number()]++, "]");
    }
    const std::string& bytes = value.length_delimited();
    if (field->type() == FieldDescriptor::TYPE_STRING) {
      if (const auto at = FindInvalidUtf8(bytes)) return BadText{name, *at};
    } else if (field->type() == FieldDescriptor::TYPE_MESSAGE) {
      UnknownFieldSet inner;
      if (!inner.ParseFromString(bytes)) continue;
      if (auto bad = FindBadText(inner, *field->message_type(), name + ".")) {
        return bad;
      }
    }
  }
  return std::nullopt;
}

absl::Status WhyUnreadable(const grpc::ByteBuffer& bytes,
                           const Descriptor& type) {
  grpc::Slice slice;
  UnknownFieldSet fields;
  if (bytes.DumpToSingleSlice(&slice).ok() &&
      fields.ParseFromArray(slice.begin(), static_cast<int>(slice.size()))) {
    if (const auto bad = FindBadText(fields, type, "")) {
      return InvalidField(bad->field,
                          StrCat("invalid UTF-8 at byte ", bad->byte));
    }
  }
  return InvalidField("request", StrCat("not a ", type.full_name(), " (got ",
                                        bytes.Length(), " bytes)"));
}

}  // namespace

absl::Status ReadMessage(const grpc::ByteBuffer& bytes,
                         google::protobuf::Message* message) {
  grpc::ByteBuffer consumed = bytes;
  if (grpc::GenericDeserialize<grpc::ProtoBufferReader,
                               google::protobuf::Message>(&consumed, message)
          .ok()) {
    return absl::OkStatus();
  }
  return WhyUnreadable(bytes, *message->GetDescriptor());
}

grpc::ByteBuffer WriteMessage(const google::protobuf::Message& message) {
  const std::string bytes = message.SerializeAsString();
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace baton::router
