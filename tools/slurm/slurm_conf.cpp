#include "tools/slurm/slurm_conf.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rdmaquota {
namespace {

constexpr int deepest = 8;  // a file may include itself
constexpr int most_files = 100;
constexpr std::size_t most_bytes = 4 << 20;  // of a file

using Values = std::map<std::string, std::string>;  // by key in lower case

std::string lower_case(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

// {"Key", "=", "Value", ...}; of "Include FILE" the two.
std::vector<std::string> words_of(const std::string& line) {
    std::string spaced;
    for (const char c : line.substr(0, line.find('#'))) {
        if (c == '=') spaced += " = ";
        else if (c != '"') spaced += c;
    }
    std::istringstream text(spaced);
    std::vector<std::string> words;
    for (std::string word; text >> word;) words.push_back(std::move(word));
    return words;
}

// A line that ends with '\' goes on in the next.
bool take_line(std::istream& file, std::string& line) {
    if (!std::getline(file, line)) return false;
    for (std::string next; line.ends_with('\\') && std::getline(file, next);) line.replace(line.size() - 1, 1, next);
    return true;
}

// Of a regular file only: a FIFO or a device would block, or end never. Too long a file is cut off.
std::string text_of(const std::filesystem::path& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};  // to open a device may do something already
    const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) return {};
    std::string text;
    if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
        char buffer[4096];
        for (ssize_t bytes; text.size() < most_bytes && (bytes = ::read(fd, buffer, sizeof buffer)) > 0;)
            text.append(buffer, static_cast<std::size_t>(bytes));
    }
    ::close(fd);
    return text;
}

void read(const std::filesystem::path& path, int depth, int& files, Values& values) {
    if (++files > most_files) return;
    std::istringstream file(text_of(path));
    for (std::string line; take_line(file, line);) {
        const auto words = words_of(line);
        if (words.size() > 1 && lower_case(words[0]) == "include" && words[1] != "=") {
            if (depth < deepest) read(path.parent_path() / words[1], depth + 1, files, values);
            continue;
        }
        for (std::size_t i = 0; i + 2 < words.size(); ++i)
            if (words[i + 1] == "=") values[lower_case(words[i])] = words[i + 2];
    }
}

Values read(const std::string& path) {
    Values values;
    int files = 0;
    read(path, 0, files, values);
    return values;
}

}  // namespace

int slurms_timeout(const std::string& conf, Stage stage) {
    auto values = read(conf);
    const auto both = std::atoi(values["prologepilogtimeout"].c_str());
    const auto own = std::atoi(values[stage == Stage::prolog ? "prologtimeout" : "epilogtimeout"].c_str());
    if (both <= 0 || own <= 0) return std::max({both, own, 0});
    return std::min(both, own);
}

std::string slurms_tracking(const std::string& conf) { return read(conf)["proctracktype"]; }

}  // namespace rdmaquota
