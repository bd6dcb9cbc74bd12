#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/strings.h"
#include "common/config/config_parser.h"
#include "common/config/config_values.h"

namespace baton {
namespace {

std::string VariableName(std::string_view option) {
  const std::string name = absl::StrReplaceAll(ToAbsl(option), {{"-", "_"}});
  return StrCat("BATON_", absl::AsciiStrToUpper(name));
}

// "--kv-pool SIZE [512MiB]"
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(36); }
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    const std::string preset = option->get_default_str();
    return StrCat(" ", option->get_type_name(),
                  preset.empty() ? "" : StrCat(" [", preset, "]"));
  }
};

}  // namespace

std::string ConfigParser::UnknownName(std::string_view name) const {
  std::vector<std::string> names{"help", "version"};
  for (const Option& option : options_) names.push_back(option.name);
  const std::string closest = ClosestName(name, names);
  return closest.empty() ? StrCat(name, ": unknown, see ", program_, " --help")
                         : StrCat(name, ": unknown, did you mean ", closest);
}

std::vector<std::string> ConfigParser::DropMissingValues(
    const std::vector<std::string>& arguments) {
  std::vector<std::string> complete;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      complete.insert(complete.end(), arguments.begin() + i, arguments.end());
      break;
    }
    // CLI11 would take the next argument for an empty value.
    if (argument.starts_with("--") && argument.ends_with("=")) {
      Option* empty = Find(argument.substr(2, argument.size() - 3));
      if (empty != nullptr && !empty->value_name.empty()) {
        empty->texts = {""};
        continue;
      }
    }
    const Option* option =
        argument.starts_with("--") ? Find(argument.substr(2)) : nullptr;
    const bool takes_value = option != nullptr && !option->value_name.empty();
    if (takes_value &&
        (i + 1 == arguments.size() || arguments[i + 1].starts_with("--"))) {
      errors_.push_back(
          StrCat(option->name, ": expected ", option->value_name, " after it"));
      Find(option->name)->failed = true;
      continue;
    }
    complete.push_back(argument);
    if (takes_value) complete.push_back(arguments[++i]);
  }
  return complete;
}

std::optional<std::string> ConfigParser::ReadArguments(
    const std::vector<std::string>& arguments) {
  CLI::App app(summary_, program_);
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "show this help");
  app.set_version_flag("--version", StrCat(program_, " ", BATON_VERSION),
                       "show the version");
  app.footer(
      "Each option may also come from a variable (BATON_NAME) or from the "
      "file\n"
      "given with --config; options beat variables, variables beat the "
      "file.\n");
  app.allow_extras();
  for (Option& option : options_) {
    std::string flag = "--" + option.name;
    if (option.short_name != 0)
      flag += StrCat(",-", std::string(1, option.short_name));
    if (option.value_name.empty()) {
      app.add_flag(flag, option.texts, option.help);
    } else {
      app.add_option(flag, option.texts, option.help)
          ->type_name(option.value_name)
          ->default_str(option.default_text)
          ->allow_extra_args(false);
    }
  }
  std::vector<std::string> pending = DropMissingValues(arguments);
  try {
    std::reverse(pending.begin(), pending.end());
    app.parse(std::move(pending));
    TakeRest(app.remaining());
  } catch (const CLI::CallForHelp&) {
    const std::string usage = StrCat(
        "[OPTIONS]", positional_name_.empty() ? "" : " ", positional_name_);
    return absl::StrReplaceAll(app.help(), {{"[OPTIONS]", usage}});
  } catch (const CLI::CallForVersion& version) {
    return StrCat(version.what(), "\n");
  } catch (const CLI::ParseError& error) {
    errors_.push_back(error.what());
  }
  for (Option& option : options_) {
    if (!option.texts.empty()) Assign(&option, option.texts, "");
  }
  return std::nullopt;
}

void ConfigParser::TakeRest(const std::vector<std::string>& rest) {
  std::vector<std::string> free;
  bool flags_ended = false;
  bool after_unknown = false;
  for (const std::string& text : rest) {
    if (!flags_ended && text == "--") {
      flags_ended = true;
    } else if (!flags_ended && text.size() > 1 && text[0] == '-' &&
               !absl::ascii_isdigit(text[1])) {
      const size_t start = text.find_first_not_of('-');
      const std::string name = text.substr(std::min(start, text.size()));
      errors_.push_back(UnknownName(name.substr(0, name.find('='))));
      after_unknown = name.find('=') == std::string::npos;
      continue;
    } else if (after_unknown && positionals_ == nullptr) {
      after_unknown = false;
    } else {
      free.push_back(text);
    }
  }
  if (positionals_ != nullptr) {
    if (free.size() < min_positionals_) {
      errors_.push_back(StrCat(positional_name_, ": required"));
    } else if (free.size() > max_positionals_) {
      errors_.push_back(StrCat(positional_name_, ": expected at most ",
                               max_positionals_, " (got ", free.size(),
                               "; put quotes around text with spaces)"));
    } else {
      *positionals_ = std::move(free);
    }
    return;
  }
  for (const std::string& text : free) {
    errors_.push_back(StrCat("unexpected argument \"", text, "\""));
  }
}

void ConfigParser::Assign(Option* option, const std::vector<std::string>& texts,
                          std::string_view source) {
  option->given = true;
  const absl::Status status = option->assign(texts);
  if (status.ok()) return;
  option->failed = true;
  errors_.push_back(StrCat(option->name,
                           source.empty() ? "" : StrCat(" (", source, ")"),
                           ": ", status.message()));
}

void ConfigParser::ReadEnvironment(const Environment& environment) {
  for (Option& option : options_) {
    if (option.given) continue;
    const std::string variable = VariableName(option.name);
    const auto value = environment(variable);
    if (value.has_value()) Assign(&option, {*value}, variable);
  }
}

void ConfigParser::ReadFile(const std::string& path) {
  std::error_code ignored;
  std::vector<CLI::ConfigItem> items;
  if (std::filesystem::is_directory(path, ignored)) {
    errors_.push_back(StrCat("config: ", path, " is a directory"));
    return;
  }
  try {
    items = CLI::ConfigTOML().from_file(path);
  } catch (const CLI::Error& error) {
    errors_.push_back(StrCat("config: ", error.what()));
    return;
  }
  std::set<std::string> seen;
  for (const CLI::ConfigItem& item : items) {
    if (item.name == "--" || item.name == "++") continue;
    const std::string key = absl::StrReplaceAll(item.fullname(), {{"_", "-"}});
    Option* option = Find(key);
    if (option == nullptr || key == "config" || key == "check-config") {
      errors_.push_back(StrCat(UnknownName(key), " (", path, ")"));
    } else if (!seen.insert(key).second) {
      errors_.push_back(StrCat(key, " (", path, "): given twice"));
    } else if (!option->given) {
      Assign(option,
             item.inputs.empty() ? std::vector<std::string>{""} : item.inputs,
             path);
    }
  }
}

void ConfigParser::RunChecks() {
  const bool clean = errors_.empty();
  for (const Check& check : checks_) {
    const bool possible =
        clean || (!check.names.empty() &&
                  std::none_of(check.names.begin(), check.names.end(),
                               [this](const std::string& name) {
                                 return Find(name)->failed;
                               }));
    if (!possible) continue;
    const absl::Status status = check.run();
    if (!status.ok()) errors_.push_back(std::string(status.message()));
  }
}

ConfigParser::Outcome ConfigParser::Parse(
    const std::vector<std::string>& arguments, const Environment& environment) {
  errors_.clear();
  for (Option& option : options_) {
    option.failed = false;
    option.texts.clear();
  }
  if (auto text = ReadArguments(arguments)) return {0, *std::move(text), ""};
  ReadEnvironment(environment);
  if (!config_file_.empty()) ReadFile(config_file_);
  for (Option& option : options_) {
    if (option.required && !option.given) {
      option.failed = true;
      errors_.push_back(StrCat(option.name, ": required (", option.help, ")"));
    }
  }
  RunChecks();
  if (!errors_.empty()) {
    std::string text;
    for (const std::string& error : errors_) {
      StrAppend(&text, program_, ": ", error, "\n");
    }
    StrAppend(&text, "See ", program_, " --help\n");
    return {2, "", std::move(text)};
  }
  if (check_config_) return {0, "configuration is valid\n", ""};
  return {};
}

void ConfigParser::ParseOrExit(int argc, const char* const* argv) {
  const Outcome outcome =
      Parse({argv + std::min(argc, 1), argv + argc},
            [](const std::string& name) -> std::optional<std::string> {
              const char* value = std::getenv(name.c_str());
              if (value == nullptr) return std::nullopt;
              return std::string(value);
            });
  std::fputs(outcome.output.c_str(), stdout);
  std::fputs(outcome.errors.c_str(), stderr);
  if (outcome.exit_code.has_value()) std::exit(*outcome.exit_code);
}

}  // namespace baton
