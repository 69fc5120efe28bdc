// A program's command line: what it accepts, its help, its error messages and what a shell may complete.
//
// A façade over CLI11, whose headers cost each file seven seconds: only command_line.cpp includes them. Values are
// written to the variables that were passed, which must live until run() returns.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "policy/result.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rdmaquota {

// What a command does once its line is read; returns the exit status.
using Action = std::function<int()>;

class CommandLine;

// The whole program, or one of its commands. A light handle; the CommandLine owns what it stands for.
class Command {
public:
    // `names` as in "-f,--follow"; `placeholder` is what the help shows for the value.
    void flag(const std::string& names, bool& value, const std::string& help);
    void option(const std::string& names, const std::string& placeholder, std::string& value, const std::string& help);
    void option(const std::string& names, const std::string& placeholder, double& value, const std::string& help);
    void positive(const std::string& names, const std::string& placeholder, int& value, const std::string& help);
    // May be repeated, and takes several values with commas between them.
    void list(const std::string& names, const std::string& placeholder, std::vector<std::string>& values,
              const std::string& help);

    // Positional words, in the order in which they are declared.
    void optional_word(const std::string& name, std::string& value, const std::string& help);
    void word(const std::string& name, std::string& value, const std::string& help);
    void words(const std::string& name, std::vector<std::string>& values, const std::string& help);  // at least one
    // Another program's words: all after "--", or all from the first word on that is no option, as they stand.
    void program(std::vector<std::string>& words);

    void footer(const std::string& text);  // below the help
    void action(Action action);

private:
    friend class CommandLine;
    Command(CommandLine& line, CLI::App& app) : line_(line), app_(app) {}
    CommandLine& line_;
    CLI::App& app_;
};

class CommandLine {
public:
    CommandLine(const std::string& name, const std::string& version, const std::string& description);
    CommandLine(CommandLine&&) = delete;
    ~CommandLine();

    Command top_level();  // the program itself, for options that stand before or after a command's name
    // Adds a command; a program with commands needs one of them on its line.
    Command command(const std::string& name, const std::string& description);

    // Reads the arguments (without argv[0]) and returns the status of the chosen action, 0 when help or the version was
    // asked for and printed, or the error in one line. Actions may throw.
    Result<int> run(std::vector<std::string> arguments);

    // For completion. The command "" is the program itself.
    std::vector<std::string> commands() const;
    std::vector<std::string> options(const std::string& command) const;  // the long ones, as in "--json"
    bool takes_value(const std::string& command, const std::string& option) const;  // false for words but long options

private:
    friend class Command;
    const CLI::App& app(const std::string& command) const;
    void turn_help_around(std::vector<std::string>& arguments) const;
    std::vector<std::string> split_off_program(std::vector<std::string>& arguments);
    Result<void> read(const std::vector<std::string>& arguments);
    Result<void> take_program(const std::vector<std::string>& after_dashes);
    Error unknown_command(const std::vector<std::string>& arguments) const;
    Error wrong(const std::string& what) const;
    CLI::App& chosen() const;

    std::unique_ptr<CLI::App> app_;
    std::map<const CLI::App*, Action> actions_;
    std::map<const CLI::App*, std::vector<std::string>*> program_words_;  // of commands that take another program's words
    bool printed_ = false;  // help or version
};

}  // namespace rdmaquota
