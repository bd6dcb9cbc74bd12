#include "kv_transfer/ucx/ucx_address.h"

#include <gtest/gtest.h>

namespace baton::transfer {
namespace {

TEST(UcxAddressTest, ReadsWhatItWrites) {
  for (const std::string text : {"ucx:127.0.0.1:1", "ucx:10.1.2.3:65535",
                                 "ucx:[::1]:4791", "ucx:[fe80::7]:80"}) {
    const auto address = ParseUcxAddress(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_EQ(FormatUcxAddress(address->get()), text);
  }
}

TEST(UcxAddressTest, RefusesEverythingElse) {
  using namespace std::string_literals;
  for (const std::string& text : {""s,
                                  "ucx"s,
                                  "ucx:"s,
                                  "ucx::"s,
                                  "ucx:127.0.0.1"s,
                                  "ucx:127.0.0.1:"s,
                                  "ucx:127.0.0.1:0"s,
                                  "ucx:127.0.0.1:65536"s,
                                  "ucx:127.0.0.1:-1"s,
                                  "ucx:127.0.0.1:80x"s,
                                  "ucx:127.0.0.1:+80"s,
                                  "ucx: 127.0.0.1:80"s,
                                  "ucx:127.0.0:80"s,
                                  "ucx:localhost:80"s,
                                  "ucx:::1:80"s,
                                  "ucx:[]:80"s,
                                  "ucx:[::1:80"s,
                                  "ucx:[::1]80"s,
                                  "ucx:[127.0.0.1]:80"s,
                                  "tcp:127.0.0.1:80"s,
                                  "UCX:127.0.0.1:80"s,
                                  "ucx:127.0.0.1\0:80"s,
                                  "ucx:127.0.0.1:80\0"s,
                                  "ucx:[::1\0]:80"s,
                                  std::string(5000, 'u'),
                                  "ucx:" + std::string(4000, '1') + ":80"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseUcxAddress(text).status()))
        << text;
  }
}

TEST(UcxAddressTest, FindsTheLoopbackDevice) {
  const auto address = DeviceAddress("lo");
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_EQ(FormatUcxAddress(address->get()), "ucx:127.0.0.1:0");
  const auto with_port = DeviceAddress("nosuch0,lo:1");
  ASSERT_TRUE(with_port.ok());
  EXPECT_EQ(FormatUcxAddress(with_port->get()), "ucx:127.0.0.1:0");
}

}  // namespace
}  // namespace baton::transfer
