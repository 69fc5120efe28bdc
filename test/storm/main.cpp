// storm [--seconds N] [--seed S]: all storms; the last line is 'N passed, N failed'.
#include <cstdlib>
#include <exception>
#include <string_view>

#include <time.h>

#include "storm.hpp"

int main(int argc, char** argv) {
    double seconds = 20;
    auto seed = static_cast<unsigned>(time(nullptr));
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::string_view(argv[i]) == "--seconds") seconds = std::atof(argv[i + 1]);
        if (std::string_view(argv[i]) == "--seed") seed = static_cast<unsigned>(std::atol(argv[i + 1]));
    }
    try {
        storm::aimed_storm();
        storm::surroundings_storm();
        storm::random_storm(seconds, seed);
    } catch (const std::exception& error) {
        storm::check(false, "all storms could be set up", error.what());
    }
    return storm::finish();
}
