#include "tools/common/command_line.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <CLI/CLI.hpp>

#include <fmt/core.h>

#include "policy/file/did_you_mean.hpp"
#include "policy/printable.hpp"

namespace rdmaquota {
namespace {

constexpr const char* program_usage = " -- PROGRAM [ARGUMENT]...\n";

// Newer releases of CLI11 than Debian 12's take no positional word with a space or an equals sign in its name: the name
// has these instead, which nobody sees.
constexpr char space_in_name = '\t', equals_in_name = '\x7f';

std::string positional_name(std::string words) {
    std::replace(words.begin(), words.end(), ' ', space_in_name);
    std::replace(words.begin(), words.end(), '=', equals_in_name);
    return words;
}

std::string words_of_name(std::string name) {
    std::replace(name.begin(), name.end(), space_in_name, ' ');
    std::replace(name.begin(), name.end(), equals_in_name, '=');
    return name;
}

// CLI11's form with more air. The words of another program are none of CLI11's, so the usage is told of them.
class HelpFormatter : public CLI::Formatter {
public:
    std::string make_description(const CLI::App* app) const override {
        return CLI::Formatter::make_description(app) + "\n";
    }

    std::string make_usage(const CLI::App* app, std::string name) const override {
        auto usage = CLI::Formatter::make_usage(app, name);
        usage.erase(usage.find_last_not_of('\n') + 1);
        return usage + (app->get_prefix_command() ? program_usage : "\n");
    }

    std::string make_option_name(const CLI::Option* option, bool positional) const override {
        return words_of_name(CLI::Formatter::make_option_name(option, positional));
    }

    std::string make_footer(const CLI::App* app) const override {
        const auto footer = app->get_footer();
        return footer.empty() ? "" : "\n" + footer + "\n";
    }
};

// A value of an option by our own words: CLI11's name types and ranges.
template <class Number>
Number number_of(const std::string& text, const std::string& option, Number least, const std::string& what) {
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || !(number >= least))
        throw CLI::ValidationError(fmt::format("{} needs {}, not '{}'", option, what, printable(text)), CLI::ExitCodes::ValidationError);
    return number;
}

// "--pid" of "-p,--pid".
std::string long_name(const std::string& names) { return names.substr(names.rfind(',') + 1); }

// In our words, where CLI11's are not for people.
std::string words_of(const CLI::ParseError& error) {
    const std::string_view text = error.what();
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
        const auto extras = text.substr(std::min(text.find(": "), text.size() - 2) + 2);
        return fmt::format("{} '{}'", extras.starts_with('-') ? "unknown option" : "unexpected word", printable(extras));
    }
    const auto name = text.substr(0, text.find_first_of(": "));
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) return fmt::format("{} needs a value", name);
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr)
        return fmt::format("{} is missing", words_of_name(std::string(text.substr(0, text.rfind(" is required")))));
    return std::string(text);
}

}  // namespace

void Command::flag(const std::string& names, bool& value, const std::string& help) {
    app_.add_flag(names, value, help);
}

void Command::option(const std::string& names, const std::string& placeholder, std::string& value,
                     const std::string& help) {
    app_.add_option(names, value, help)->type_name(placeholder);
}

void Command::option(const std::string& names, const std::string& placeholder, double& value, const std::string& help) {
    const auto read = [&value, option = long_name(names)](const std::string& text) {
        value = number_of<double>(text, option, 0, "a number");
    };
    app_.add_option_function<std::string>(names, read, help)->type_name(placeholder);
}

void Command::positive(const std::string& names, const std::string& placeholder, int& value, const std::string& help) {
    const auto read = [&value, option = long_name(names)](const std::string& text) {
        value = number_of<int>(text, option, 1, "a number from 1 on");
    };
    app_.add_option_function<std::string>(names, read, help)->type_name(placeholder);
}

void Command::list(const std::string& names, const std::string& placeholder, std::vector<std::string>& values,
                   const std::string& help) {
    app_.add_option(names, values, help)->type_name(placeholder)->allow_extra_args(false)->delimiter(',');
}

void Command::optional_word(const std::string& name, std::string& value, const std::string& help) {
    app_.add_option(positional_name(name), value, help)->type_name("");
}

void Command::word(const std::string& name, std::string& value, const std::string& help) {
    app_.add_option(positional_name(name), value, help)->required()->type_name("");
}

void Command::words(const std::string& name, std::vector<std::string>& values, const std::string& help) {
    app_.add_option(positional_name(name), values, help)->required()->type_name("");
}

void Command::program(std::vector<std::string>& words) {
    app_.fallthrough(false)->prefix_command();
    line_.program_words_[&app_] = &words;
}

void Command::footer(const std::string& text) { app_.footer(text); }

void Command::action(Action action) { line_.actions_[&app_] = std::move(action); }

CommandLine::CommandLine(const std::string& name, const std::string& version, const std::string& description)
    : app_(std::make_unique<CLI::App>(description, name)) {
    app_->formatter(std::make_shared<HelpFormatter>());
    app_->set_version_flag("--version", name + " " + version);
    app_->fallthrough();
}

CommandLine::~CommandLine() = default;

Command CommandLine::top_level() { return {*this, *app_}; }

Command CommandLine::command(const std::string& name, const std::string& description) {
    app_->require_subcommand(1);
    auto* command = app_->add_subcommand(name, description);
    command->footer("");  // not the program's, which it would inherit
    return {*this, *command};
}

CLI::App& CommandLine::chosen() const {
    const auto commands = app_->get_subcommands();
    return commands.empty() ? *app_ : *commands.front();
}

// `help` and `help COMMAND` are --help and COMMAND --help.
void CommandLine::turn_help_around(std::vector<std::string>& arguments) const {
    const auto names = commands();
    const auto is_command = [&](const std::string& word) { return std::find(names.begin(), names.end(), word) != names.end(); };
    if (arguments.empty() || arguments.front() != "help" || names.empty() || arguments.size() > 2) return;
    const auto command = arguments.size() == 2 ? arguments[1] : std::string();
    if (command.empty()) arguments = {"--help"};
    else if (is_command(command)) arguments = {command, "--help"};
    else arguments = {command};  // which is no command, and is told so
}

Result<int> CommandLine::run(std::vector<std::string> arguments) {
    turn_help_around(arguments);
    const auto after_dashes = split_off_program(arguments);
    if (const auto done = read(arguments); !done) return Error{done.error()};
    if (printed_) return 0;
    if (const auto taken = take_program(after_dashes); !taken) return Error{taken.error()};
    const auto action = actions_.find(&chosen());
    return action == actions_.end() ? 0 : action->second();
}

// CLI11 must not see another program's words: it would take arguments such as "[a,b]" apart.
std::vector<std::string> CommandLine::split_off_program(std::vector<std::string>& arguments) {
    const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
    const bool takes_program = std::any_of(program_words_.begin(), program_words_.end(), [&](const auto& entry) {
        return std::find(arguments.begin(), dashes, entry.first->get_name()) != dashes;
    });
    if (dashes == arguments.end() || !takes_program) return {};
    std::vector<std::string> after(dashes + 1, arguments.end());
    arguments.erase(dashes, arguments.end());
    return after;
}

// CLI11 has exit codes of its own, and several lines for one error.
Result<void> CommandLine::read(const std::vector<std::string>& arguments) {
    try {
        app_->parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // as CLI11 wants them
    } catch (const CLI::ParseError& error) {
        printed_ = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
        if (printed_) app_->exit(error);
        if (printed_) return {};
        if (&chosen() == app_.get() && error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError))
            return unknown_command(arguments);
        return wrong(words_of(error));
    }
    return {};
}

// What CLI11 left over came before "--", or there was none.
Result<void> CommandLine::take_program(const std::vector<std::string>& after_dashes) {
    const auto takes = program_words_.find(&chosen());
    if (takes == program_words_.end()) return {};
    auto words = takes->first->remaining();
    if (!words.empty() && words.front().starts_with('-'))
        return wrong(fmt::format("unknown option '{}'", words.front()));
    if (!words.empty() && !after_dashes.empty()) words.emplace_back("--");
    words.insert(words.end(), after_dashes.begin(), after_dashes.end());
    *takes->second = std::move(words);
    return {};
}

Error CommandLine::wrong(const std::string& what) const {
    const auto& command = chosen();
    const auto name = &command == app_.get() ? app_->get_name() : app_->get_name() + " " + command.get_name();
    return Error{fmt::format("{}; see '{} --help'", what, name)};
}

Error CommandLine::unknown_command(const std::vector<std::string>& arguments) const {
    const auto names = commands();
    const std::vector<std::string_view> known(names.begin(), names.end());
    for (auto word = arguments.begin(); word != arguments.end(); ++word) {
        if (!word->starts_with('-')) return wrong(fmt::format("unknown command '{}'{}", *word, did_you_mean(*word, known)));
        const auto* option = app_->get_option_no_throw(*word);
        if (option != nullptr && option->get_expected_max() > 0 && std::next(word) != arguments.end()) ++word;
    }
    return wrong("no command is given");
}

const CLI::App& CommandLine::app(const std::string& command) const {
    return command.empty() ? *app_ : *app_->get_subcommand(command);
}

std::vector<std::string> CommandLine::commands() const {
    std::vector<std::string> names;
    for (const auto* command : app_->get_subcommands([](const CLI::App*) { return true; }))
        names.push_back(command->get_name());
    return names;
}

std::vector<std::string> CommandLine::options(const std::string& command) const {
    std::vector<std::string> names;
    for (const auto* option : app(command).get_options())
        for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    return names;
}

bool CommandLine::takes_value(const std::string& command, const std::string& option) const {
    if (!option.starts_with("--")) return false;
    const auto* found = app(command).get_option_no_throw(option);
    return found != nullptr && found->get_items_expected_max() > 0;
}

}  // namespace rdmaquota
