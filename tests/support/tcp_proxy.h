#ifndef BATON_TESTS_SUPPORT_TCP_PROXY_H_
#define BATON_TESTS_SUPPORT_TCP_PROXY_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"

namespace baton::testing {

// A TCP relay on a loopback device that can do what networks do to bytes.
// One thread; the methods may be called from any other.
class TcpProxy {
 public:
  struct Options {
    // Where connections go, "127.0.0.1:7000"; empty: where they were going
    // before VirtualNetwork::Redirect.
    std::string upstream = "";
    int network = -1;  // namespace it runs in; -1: the test's own
  };
  static absl::StatusOr<std::unique_ptr<TcpProxy>> Start(Options options);
  ~TcpProxy();

  uint16_t port() const { return port_; }
  std::string address() const;

  enum Direction { kToServer, kToClient };
  // Once, in the middle of the next `min_read` or more bytes that arrive
  // together this way on any connection:
  void Flip(Direction direction, size_t min_read);   // a bit of one byte
  void Stall(Direction direction, size_t min_read);  // then no byte, no end
  void End(Direction direction, size_t min_read);    // then both sides see FIN
  void Reset(Direction direction, size_t min_read);  // then both see RST
  // What was asked for and has not come is off.
  void Disarm() { act_ = Act::kNone; }
  // Of all connections, now.
  void ResetAll() { reset_all_ = true; }

  // What happened.
  uint64_t connections() const { return connections_; }
  uint64_t bytes(Direction direction) const { return bytes_[direction]; }
  uint64_t hits() const { return hits_; }  // of the four above, and resets

 private:
  enum class Act { kNone, kFlip, kStall, kEnd, kReset };
  struct Pipe {
    std::string waiting;  // read, not yet written
    bool ended = false;   // no more to read
    bool shut = false;    // the end was passed on
  };
  struct Connection {
    int client = -1, server = -1;
    Pipe pipes[2];
    bool stalled = false, over = false;
  };

  TcpProxy() = default;
  void Plan(Act act, Direction direction, size_t min_read);
  void Run();
  void Accept();
  void Relay(Connection* connection, Direction direction, short events);
  void Read(Connection* connection, Direction direction);
  void Write(Connection* connection, Direction direction);
  void Hit(Connection* connection, Direction direction, size_t arrived);
  static void Close(Connection* connection, bool reset);

  Options options_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::list<Connection> connections_list_;
  std::atomic<bool> stop_ = false, reset_all_ = false;
  std::atomic<Act> act_ = Act::kNone;
  std::atomic<Direction> direction_ = kToServer;
  std::atomic<size_t> min_read_ = 0;
  std::atomic<uint64_t> connections_ = 0, hits_ = 0;
  std::atomic<uint64_t> bytes_[2] = {0, 0};
  std::thread thread_;
};

}  // namespace baton::testing

#endif  // BATON_TESTS_SUPPORT_TCP_PROXY_H_
