#ifndef BATON_ROUTER_CLIENT_CLI_COMMAND_H_
#define BATON_ROUTER_CLIENT_CLI_COMMAND_H_

#include <string>

#include "absl/status/status.h"

namespace baton::cli {

inline constexpr char kDefaultRouter[] = "127.0.0.1:7000";

// Subcommands of `baton`. argv[0] is the subcommand's name; the result is the
// exit status of the process: 0 done, 1 failed, 2 wrong arguments, 130
// interrupted.
int RunUp(int argc, const char* const* argv);
int RunChat(int argc, const char* const* argv);
int RunGenerate(int argc, const char* const* argv);
int RunTokenize(int argc, const char* const* argv);
int RunStatus(int argc, const char* const* argv);
int RunBench(int argc, const char* const* argv);
int RunToken(int argc, const char* const* argv);

// What the user should read and do about a failed call to the router at
// `address`: the message, wrong fields one a line, and the next step.
std::string Advice(const absl::Status& status, const std::string& address);

// Prints Advice on standard error; returns the exit status.
int Fail(const absl::Status& status, const std::string& address);

// Folder of the running binary, where its siblings are.
std::string BinaryFolder();
// What to type to run `baton` again: "baton" when the shell would find this
// binary, else its path from the current folder.
std::string ProgramToType();
// Replaces the process by the sibling `name`; returns only when it cannot, as
// NotFound when there is no such file.
absl::Status ExecSibling(const std::string& name, const char* const* arguments);

}  // namespace baton::cli

#endif  // BATON_ROUTER_CLIENT_CLI_COMMAND_H_
