#ifndef BATON_ROUTER_CLIENT_CLI_SERVED_TEXT_H_
#define BATON_ROUTER_CLIENT_CLI_SERVED_TEXT_H_

#include <string>

#include "common/base/monotonic_time.h"
#include "proto/generation.pb.h"

namespace baton::cli {

// What the client's own clock saw of one answer.
struct ClientTimes {
  Duration first_token{};  // sent to first token
  Duration total{};        // sent to end of stream
};

// How a request was served, for people: who, which phases took how long, what
// moved, how many tokens. Three or four lines, each ended by a line feed.
std::string FormatServed(const v1::Served& served, const v1::Usage& usage,
                         const ClientTimes& times);

// "1.5 MiB", "17.3 KiB", "12 B".
std::string HumanBytes(uint64_t bytes);

}  // namespace baton::cli

#endif  // BATON_ROUTER_CLIENT_CLI_SERVED_TEXT_H_
