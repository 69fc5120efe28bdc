// How --help looks: CLI11's form with more air, and with what CLI11 cannot know.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace rdmaquota {

class HelpFormatter : public CLI::Formatter {
public:
    std::string make_description(const CLI::App* app) const override {
        return CLI::Formatter::make_description(app) + "\n";
    }

    std::string make_usage(const CLI::App* app, std::string name) const override {
        auto usage = CLI::Formatter::make_usage(app, name);
        usage.erase(usage.find_last_not_of('\n') + 1);
        // What follows -- is not CLI11's; see split_off_program.
        return usage + (app->get_name() == "run" ? " -- PROGRAM [ARGUMENT]...\n" : "\n");
    }

    std::string make_footer(const CLI::App* app) const override {
        const auto footer = app->get_footer();
        return footer.empty() ? "" : "\n" + footer + "\n";
    }
};

}  // namespace rdmaquota
