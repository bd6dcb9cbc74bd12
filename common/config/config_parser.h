#ifndef BATON_COMMON_CONFIG_CONFIG_PARSER_H_
#define BATON_COMMON_CONFIG_CONFIG_PARSER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/monotonic_time.h"

namespace baton {

// Fills the typed configuration of a process. A value `--kv-pool 512MiB` may
// also come from the variable BATON_KV_POOL or from a file named by --config
// (TOML or INI, `kv-pool = "512MiB"`); flag beats variable beats file beats
// what the variable behind the pointer held before. Parsing is strict: an
// unknown flag or key is an error with a suggestion, and all errors are
// reported at once, one a line, as `name: expected X (got "Y")`.
//
//   RouterConfig config;
//   ConfigParser parser("baton-router", "Serves clients.");
//   parser.AddHostPort("listen", &config.listen, "where clients connect");
//   parser.ParseOrExit(argc, argv);
//
// --help, --version, --config and --check-config are always there. Pointers
// must outlive the parser. Not thread-safe.
class ConfigParser {
 public:
  // `program` as the user typed it: "baton-router", "baton generate".
  ConfigParser(std::string program, std::string summary);

  // Names are without dashes. Limits are inclusive.
  void AddString(std::string_view name, std::string* value,
                 std::string_view help);
  // May be given several times; in a file as an array.
  void AddStrings(std::string_view name, std::vector<std::string>* values,
                  std::string_view help);
  // --name turns it on; --name=false, variable and file say which.
  void AddSwitch(std::string_view name, bool* value, std::string_view help);
  template <class Integer>
  void AddInteger(std::string_view name, Integer* value, int64_t min,
                  int64_t max, std::string_view help) {
    AddNumber(name, std::to_string(*value), IntegerLimits(min, max), help,
              [value](double, int64_t number) {
                *value = static_cast<Integer>(number);
              });
  }
  template <class Real>
  void AddReal(std::string_view name, Real* value, double min, double max,
               std::string_view help) {
    AddNumber(name, FormatReal(*value), {min, max, false}, help,
              [value](double number, int64_t) {
                *value = static_cast<Real>(number);
              });
  }
  // The same for values that stay absent unless they are given.
  template <class Integer>
  void AddInteger(std::string_view name, std::optional<Integer>* value,
                  int64_t min, int64_t max, std::string_view help) {
    AddNumber(name, "", IntegerLimits(min, max), help,
              [value](double, int64_t number) {
                *value = static_cast<Integer>(number);
              });
  }
  template <class Real>
  void AddReal(std::string_view name, std::optional<Real>* value, double min,
               double max, std::string_view help) {
    AddNumber(name, "", {min, max, false}, help,
              [value](double number, int64_t) {
                *value = static_cast<Real>(number);
              });
  }
  void AddChoice(std::string_view name, std::string* value,
                 std::vector<std::string> allowed, std::string_view help);
  void AddByteSize(std::string_view name, uint64_t* bytes,
                   std::string_view help);
  void AddByteSize(std::string_view name, uint64_t* bytes, uint64_t min,
                   uint64_t max, std::string_view help);
  void AddDuration(std::string_view name, Duration* value,
                   std::string_view help);
  void AddDuration(std::string_view name, Duration* value, Duration min,
                   Duration max, std::string_view help);
  void AddDuration(std::string_view name, std::optional<Duration>* value,
                   std::string_view help);
  void AddHostPort(std::string_view name, std::string* value,
                   std::string_view help);
  // Comma-separated (an array in a file); duplicates are refused.
  void AddHostPorts(std::string_view name, std::vector<std::string>* values,
                    std::string_view help);
  // Arguments without a flag, at least `min` and at most `max` of them; `name`
  // is shown in the usage line.
  void AddPositional(std::string_view name, std::vector<std::string>* values,
                     size_t min, size_t max);

  // `-v` for --verbose.
  void SetShortName(std::string_view name, char letter);
  // An error `name: required (HELP)` when it is given nowhere.
  void Require(std::string_view name);
  // A rule over the values of these names, checked when each is valid by
  // itself; without names, when everything is.
  void AddCheck(std::vector<std::string> names,
                std::function<absl::Status()> check);
  void AddCheck(std::function<absl::Status()> check) {
    AddCheck({}, std::move(check));
  }

  // True when a flag, variable or file set it; meaningful after parsing.
  bool Given(std::string_view name) const;

  using Environment =
      std::function<std::optional<std::string>(const std::string&)>;
  struct Outcome {
    // Set when the process should end: 0 after --help, --version or
    // --check-config, 2 after errors.
    std::optional<int> exit_code;
    std::string output;  // for standard output
    std::string errors;  // for standard error
  };
  // `arguments` without the program's name.
  Outcome Parse(const std::vector<std::string>& arguments,
                const Environment& environment);
  // Parses the real arguments and environment; prints and exits if told to.
  void ParseOrExit(int argc, const char* const* argv);

 private:
  struct Option {
    std::string name;
    std::string value_name;  // empty for a switch
    std::string default_text;
    std::string help;
    // Receives every text given by the source that won, at least one.
    std::function<absl::Status(const std::vector<std::string>&)> assign;
    std::vector<std::string> texts;
    char short_name = 0;
    bool required = false;
    bool given = false;
    bool failed = false;
  };
  struct Check {
    std::vector<std::string> names;
    std::function<absl::Status()> run;
  };
  struct Limits {
    double min;
    double max;
    bool integer;
  };
  static Limits IntegerLimits(int64_t min, int64_t max) {
    return {static_cast<double>(min), static_cast<double>(max), true};
  }
  static std::string FormatReal(double value);
  static std::string NumberName(const Limits& limits);
  void AddNumber(std::string_view name, std::string default_text, Limits limits,
                 std::string_view help,
                 std::function<void(double, int64_t)> assign);
  Option& Add(std::string_view name, std::string value_name,
              std::string default_text, std::string_view help);
  Option& AddScalar(std::string_view name, std::string value_name,
                    std::string default_text, std::string_view help,
                    std::function<absl::Status(const std::string&)> assign);
  Option* Find(std::string_view name);
  std::string UnknownName(std::string_view name) const;

  // The text to print when --help or --version was given.
  std::optional<std::string> ReadArguments(
      const std::vector<std::string>& arguments);
  std::vector<std::string> DropMissingValues(
      const std::vector<std::string>& arguments);
  void TakeRest(const std::vector<std::string>& rest);
  void ReadEnvironment(const Environment& environment);
  void ReadFile(const std::string& path);
  void RunChecks();
  void Assign(Option* option, const std::vector<std::string>& texts,
              std::string_view source);

  const std::string program_;
  const std::string summary_;
  std::deque<Option> options_;
  std::string positional_name_;
  std::vector<std::string>* positionals_ = nullptr;
  size_t min_positionals_ = 0;
  size_t max_positionals_ = 0;
  std::vector<Check> checks_;
  std::string config_file_;
  bool check_config_ = false;
  std::vector<std::string> errors_;
};

}  // namespace baton

#endif  // BATON_COMMON_CONFIG_CONFIG_PARSER_H_
