#include "common/config/config_parser.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/host_port.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/config/config_values.h"

namespace baton {
namespace {

absl::Status Expected(std::string_view what, std::string_view got) {
  return absl::InvalidArgumentError(
      StrCat("expected ", what, " (got \"", got.substr(0, 200), "\")"));
}

absl::Status OutOfRange(const std::string& got, const std::string& min,
                        const std::string& max) {
  return absl::InvalidArgumentError(
      StrCat("out of range (got ", got, ", allowed ", min, "..", max, ")"));
}

}  // namespace

ConfigParser::ConfigParser(std::string program, std::string summary)
    : program_(std::move(program)), summary_(std::move(summary)) {
  AddString("config", &config_file_, "read options from this TOML or INI file");
  AddSwitch("check-config", &check_config_,
            "report errors in the configuration and exit");
}

ConfigParser::Option& ConfigParser::Add(std::string_view name,
                                        std::string value_name,
                                        std::string default_text,
                                        std::string_view help) {
  BATON_CHECK(Find(name) == nullptr);
  Option& option = options_.emplace_back();
  option.name = std::string(name);
  option.value_name = std::move(value_name);
  option.default_text = std::move(default_text);
  option.help = std::string(help);
  return option;
}

ConfigParser::Option& ConfigParser::AddScalar(
    std::string_view name, std::string value_name, std::string default_text,
    std::string_view help,
    std::function<absl::Status(const std::string&)> assign) {
  Option& option =
      Add(name, std::move(value_name), std::move(default_text), help);
  option.assign =
      [assign = std::move(assign)](const std::vector<std::string>& texts) {
        return assign(texts.back());
      };
  return option;
}

void ConfigParser::AddString(std::string_view name, std::string* value,
                             std::string_view help) {
  AddScalar(name, "TEXT", *value, help, [value](const std::string& text) {
    *value = text;
    return absl::OkStatus();
  });
}

void ConfigParser::AddStrings(std::string_view name,
                              std::vector<std::string>* values,
                              std::string_view help) {
  Add(name, "TEXT", absl::StrJoin(*values, ","), StrCat(help, " (repeatable)"))
      .assign = [values](const std::vector<std::string>& texts) {
    *values = texts;
    return absl::OkStatus();
  };
}

void ConfigParser::AddSwitch(std::string_view name, bool* value,
                             std::string_view help) {
  AddScalar(name, "", "", help, [value](const std::string& text) {
    return absl::SimpleAtob(text, value) ? absl::OkStatus()
                                         : Expected("true or false", text);
  });
}

std::string ConfigParser::FormatReal(double value) { return StrCat(value); }

std::string ConfigParser::NumberName(const Limits& limits) {
  if (!limits.integer) {
    return StrCat("number in [", limits.min, ", ", limits.max, "]");
  }
  // In full: a double of some size would lose its last digits.
  return StrCat("integer in [", static_cast<int64_t>(limits.min), ", ",
                static_cast<int64_t>(limits.max), "]");
}

void ConfigParser::AddNumber(std::string_view name, std::string default_text,
                             Limits limits, std::string_view help,
                             std::function<void(double, int64_t)> assign) {
  AddScalar(name, limits.integer ? "N" : "X", std::move(default_text), help,
            [limits, assign = std::move(assign)](const std::string& text) {
              double number = 0;
              int64_t integer = 0;
              const bool valid = limits.integer
                                     ? absl::SimpleAtoi(text, &integer)
                                     : absl::SimpleAtod(text, &number);
              if (limits.integer) number = static_cast<double>(integer);
              if (!valid || !(number >= limits.min && number <= limits.max)) {
                return Expected(NumberName(limits), text);
              }
              assign(number, integer);
              return absl::OkStatus();
            });
}

void ConfigParser::AddChoice(std::string_view name, std::string* value,
                             std::vector<std::string> allowed,
                             std::string_view help) {
  std::string value_name = absl::StrJoin(allowed, "|");
  AddScalar(name, std::move(value_name), *value, help,
            [value, allowed = std::move(allowed)](const std::string& text) {
              for (const std::string& choice : allowed) {
                if (choice != text) continue;
                *value = text;
                return absl::OkStatus();
              }
              return Expected(StrCat("one of ", absl::StrJoin(allowed, ", ")),
                              text);
            });
}

void ConfigParser::AddByteSize(std::string_view name, uint64_t* bytes,
                               std::string_view help) {
  AddScalar(name, "SIZE", FormatByteSize(*bytes), help,
            [bytes](const std::string& text) {
              BATON_ASSIGN_OR_RETURN(*bytes, ParseByteSize(text));
              return absl::OkStatus();
            });
}

void ConfigParser::AddDuration(std::string_view name, Duration* value,
                               std::string_view help) {
  AddScalar(name, "TIME", FormatDuration(*value), help,
            [value](const std::string& text) {
              BATON_ASSIGN_OR_RETURN(*value, ParseDuration(text));
              return absl::OkStatus();
            });
}

void ConfigParser::AddByteSize(std::string_view name, uint64_t* bytes,
                               uint64_t min, uint64_t max,
                               std::string_view help) {
  AddScalar(name, "SIZE", FormatByteSize(*bytes), help,
            [bytes, min, max](const std::string& text) -> absl::Status {
              BATON_ASSIGN_OR_RETURN(const uint64_t parsed,
                                     ParseByteSize(text));
              if (parsed < min || parsed > max) {
                return OutOfRange(FormatByteSize(parsed), FormatByteSize(min),
                                  FormatByteSize(max));
              }
              *bytes = parsed;
              return absl::OkStatus();
            });
}

void ConfigParser::AddDuration(std::string_view name, Duration* value,
                               Duration min, Duration max,
                               std::string_view help) {
  AddScalar(name, "TIME", FormatDuration(*value), help,
            [value, min, max](const std::string& text) -> absl::Status {
              BATON_ASSIGN_OR_RETURN(const Duration parsed,
                                     ParseDuration(text));
              if (parsed < min || parsed > max) {
                return OutOfRange(FormatDuration(parsed), FormatDuration(min),
                                  FormatDuration(max));
              }
              *value = parsed;
              return absl::OkStatus();
            });
}

void ConfigParser::AddDuration(std::string_view name,
                               std::optional<Duration>* value,
                               std::string_view help) {
  AddScalar(name, "TIME", "", help, [value](const std::string& text) {
    BATON_ASSIGN_OR_RETURN(*value, ParseDuration(text));
    return absl::OkStatus();
  });
}

void ConfigParser::AddHostPort(std::string_view name, std::string* value,
                               std::string_view help) {
  AddScalar(name, "HOST:PORT", *value, help, [value](const std::string& text) {
    BATON_ASSIGN_OR_RETURN(const HostPort parsed, ParseHostPort(text));
    *value = parsed.ToString();
    return absl::OkStatus();
  });
}

void ConfigParser::AddHostPorts(std::string_view name,
                                std::vector<std::string>* values,
                                std::string_view help) {
  Add(name, "HOST:PORT,..", absl::StrJoin(*values, ","), help).assign =
      [values](const std::vector<std::string>& texts) {
        BATON_ASSIGN_OR_RETURN(*values,
                               ParseHostPortList(absl::StrJoin(texts, ",")));
        return absl::OkStatus();
      };
}

void ConfigParser::AddPositional(std::string_view name,
                                 std::vector<std::string>* values, size_t min,
                                 size_t max) {
  positional_name_ = std::string(name);
  positionals_ = values;
  min_positionals_ = min;
  max_positionals_ = max;
}

void ConfigParser::SetShortName(std::string_view name, char letter) {
  BATON_CHECK(Find(name) != nullptr);
  Find(name)->short_name = letter;
}

void ConfigParser::Require(std::string_view name) {
  BATON_CHECK(Find(name) != nullptr);
  Find(name)->required = true;
}

void ConfigParser::AddCheck(std::vector<std::string> names,
                            std::function<absl::Status()> check) {
  for (const std::string& name : names) BATON_CHECK(Find(name) != nullptr);
  checks_.push_back({std::move(names), std::move(check)});
}

bool ConfigParser::Given(std::string_view name) const {
  const Option* option = const_cast<ConfigParser*>(this)->Find(name);
  BATON_CHECK(option != nullptr);
  return option->given;
}

ConfigParser::Option* ConfigParser::Find(std::string_view name) {
  for (Option& option : options_) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

}  // namespace baton
