#include "tools/rdmaquota/complete.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "policy/policy.hpp"
#include "tools/common/devices.hpp"
#include "tools/common/terminal.hpp"

namespace rdmaquota {
namespace {

using Words = std::vector<std::string>;

Words resources() {
    Words words;
    for (const auto& row : resource_table) words.push_back(fmt::format("{}=", row.name));
    return words;
}

Words devices() {
    auto words = machine_devices();
    words.insert(words.end(), {std::string(any_device), std::string(total_device)});
    return words;
}

Words commands(const CLI::App& app) {
    Words words;
    for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; }))
        words.push_back(command->get_name());
    return words;
}

Words options(const CLI::App& app) {
    Words words;
    for (const auto* option : app.get_options())
        for (const auto& name : option->get_lnames()) words.push_back("--" + name);
    return words;
}

// The values of the option `name`; nothing where only the user knows.
Words values(const std::string& name) {
    if (name == "--limit" || name == "--tenant-limit") return resources();
    if (name == "--by") return {"tenant", "device", "process"};
    if (name == "--mode") return {"enforce", "audit", "off"};
    if (name == "--deny-errno") return {"EDQUOT", "EAGAIN", "ENOMEM"};
    return {};
}

bool takes_value(const CLI::App& command, const std::string& word) {
    const auto* option = word.starts_with("--") ? command.get_option_no_throw(word) : nullptr;
    return option != nullptr && option->get_items_expected_max() > 0;
}

// The words without options and their values.
Words positionals(const CLI::App& command, const Words& words) {
    Words found;
    for (std::size_t i = 0; i + 1 < words.size(); ++i)
        if (takes_value(command, words[i]))
            ++i;
        else if (!words[i].starts_with('-'))
            found.push_back(words[i]);
    return found;
}

Words arguments(const CLI::App& command, const Words& before) {
    const auto& name = command.get_name();
    if (name == "show" && before.empty()) return {std::string(default_tenant)};
    if (name == "completion" && before.empty()) return {"bash", "zsh", "fish"};
    if (name != "set") return {};
    return before.empty() || (before.size() == 1 && before[0] == default_tenant) ? devices() : resources();
}

const CLI::App* chosen(const CLI::App& app, const Words& words) {
    const auto names = positionals(app, words);
    const auto found = app.get_subcommands(
        [&names](const CLI::App* command) { return !names.empty() && command->get_name() == names.front(); });
    return found.empty() ? nullptr : found.front();
}

Words candidates(const CLI::App& app, const Words& words) {
    const auto* command = chosen(app, words);
    const auto& place = command == nullptr ? app : *command;
    if (words.size() > 1 && (takes_value(place, words.end()[-2]) || takes_value(app, words.end()[-2])))
        return values(words.end()[-2]);
    if (words.back().starts_with('-')) return options(place);
    if (command == nullptr) return commands(app);
    auto before = positionals(place, words);
    before.erase(before.begin(), std::find(before.begin(), before.end(), command->get_name()) + 1);
    return arguments(*command, before);
}

}  // namespace

int complete(const CLI::App& app, const std::vector<std::string>& words) {
    if (words.empty()) return 0;
    for (const auto& word : candidates(app, words))
        if (word.starts_with(words.back())) fmt::print("{}\n", printable(word));
    return 0;
}

}  // namespace rdmaquota
