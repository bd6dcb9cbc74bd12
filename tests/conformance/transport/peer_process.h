#ifndef BATON_TESTS_CONFORMANCE_TRANSPORT_PEER_PROCESS_H_
#define BATON_TESTS_CONFORMANCE_TRANSPORT_PEER_PROCESS_H_

#include <sys/types.h>

#include <string>

namespace baton::transfer {

// Another process with a TransferCore on the transport under test. It does
// what its standard input says, a line each:
//   land BLOCKS         opens a landing; answers with the ticket
//   push TICKET COUNT   opens a transfer, pushes COUNT blocks, seals if that
//                       is all of them; answers "ok"
//   events              answers with what it was told since, in short
class PeerProcess {
 public:
  PeerProcess();
  // Ends it.
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  // One line there, one line back.
  std::string Ask(const std::string& line);
  void Signal(int signal) const;

  // What the process does; called by main of the test binary.
  static int Main();
  static constexpr const char* kVariable = "BATON_TRANSPORT_PEER";

 private:
  pid_t pid_ = -1;
  int to_ = -1;
  int from_ = -1;
};

}  // namespace baton::transfer

#endif  // BATON_TESTS_CONFORMANCE_TRANSPORT_PEER_PROCESS_H_
