#ifndef BATON_TESTS_FUZZ_QUIET_PROTOBUF_H_
#define BATON_TESTS_FUZZ_QUIET_PROTOBUF_H_

#include <google/protobuf/stubs/logging.h>

namespace baton::fuzz {

// Protobuf logs every string that is not UTF-8; here that is most of them.
inline const bool kQuietProtobuf = [] {
  google::protobuf::SetLogHandler(nullptr);
  return true;
}();

}  // namespace baton::fuzz

#endif  // BATON_TESTS_FUZZ_QUIET_PROTOBUF_H_
